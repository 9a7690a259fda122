package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Setting is what the control endpoint changes; what is absent stays.
type Setting struct {
	Fault *Fault `json:"fault,omitempty"`
	Shape *Shape `json:"shape,omitempty"`
}

func (s *Server) serveControl(l net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /set", func(w http.ResponseWriter, r *http.Request) {
		var set Setting
		if err := json.NewDecoder(r.Body).Decode(&set); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if set.Shape != nil {
			s.SetShape(*set.Shape)
		}
		if set.Fault != nil {
			s.Set(*set.Fault)
		}
	})
	mux.HandleFunc("GET /books", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(s.Meter.Books(time.Now()))
	})
	return (&http.Server{Handler: mux, ReadHeaderTimeout: time.Second}).Serve(l)
}

// Control is the far end of a Server's control endpoint.
type Control struct{ addr string }

// NewControl speaks to the control endpoint at addr.
func NewControl(addr string) *Control { return &Control{addr} }

var controlClient = &http.Client{Timeout: 5 * time.Second}

// Set changes the fault, the shape or both.
func (c *Control) Set(s Setting) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	resp, err := controlClient.Post("http://"+c.addr+"/set", "application/json", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("set the upstream: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("set the upstream: %s", resp.Status)
	}
	return nil
}

// Books fetches the counts so far.
func (c *Control) Books() (Books, error) {
	var b Books
	resp, err := controlClient.Get("http://" + c.addr + "/books")
	if err != nil {
		return b, fmt.Errorf("read the upstream's books: %w", err)
	}
	defer resp.Body.Close()
	return b, json.NewDecoder(resp.Body).Decode(&b)
}
