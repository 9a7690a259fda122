//go:build conformance

package conformance

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

var libraryLine = regexp.MustCompile(`incidents at (http://[^/\s]+)/incidents`)

// startLibrary runs `hourthree incidents serve` and returns where it serves.
// With the test it is told to end, and has to.
func startLibrary(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(routerBin, append([]string{"incidents", "serve", "--listen", "127.0.0.1:0"}, args...)...)
	var said tail
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the library ended with %v\n%s", err, said.String())
			}
		case <-time.After(15 * time.Second):
			_ = cmd.Process.Kill()
			t.Error("the library does not end")
		}
	})
	var at string
	eventually(t, time.Minute, "the library says where it serves", func() bool {
		if m := libraryLine.FindStringSubmatch(said.String()); m != nil {
			at = m[1]
		}
		return at != ""
	})
	return at
}

// looked is what the browser saw of a page.
type looked struct {
	URL, Scheme, Text string
	Width             int
	Found             []struct {
		Rule, Impact string
		Where        []string
	}
	Complaints, Elsewhere []string
	Wide                  bool
	Overlaps              int
}

// TestIncidentPages opens the library in a real browser, as wide as a desk's
// and a phone's, light and dark. The pictures are kept with `go test -artifacts`.
func TestIncidentPages(t *testing.T) {
	at := startLibrary(t)
	type view struct {
		Width  int    `json:"width"`
		Scheme string `json:"scheme"`
	}
	desk, phone := view{1280, "light"}, view{390, "dark"}
	for path, views := range map[string][]view{
		"": {desk, phone}, "/HT-0001": {desk, phone}, "/HT-0002": {desk}, "/HT-0052": {phone}, "?q=retry+storm&cause=oom": {phone},
		"/topics": {phone}, "/topics/cause/retry-amplification": {desk}, "/HT-9999": {desk},
	} {
		job, err := json.Marshal(map[string]any{"url": at + "/incidents" + path, "views": views, "pictures": t.ArtifactDir()})
		if err != nil {
			t.Fatal(err)
		}
		var pages []looked
		if err := json.Unmarshal([]byte(run(t, job, "node", filepath.Join(clientsDir, "pages.mjs"))), &pages); err != nil || len(pages) != len(views) {
			t.Fatalf("%d views: %v", len(pages), err)
		}
		for _, p := range pages {
			p.check(t)
		}
	}
}

func (p looked) check(t *testing.T) {
	t.Helper()
	for _, f := range p.Found {
		if f.Impact == "serious" || f.Impact == "critical" {
			t.Errorf("%s, %d wide, %s: axe: %s at %v", p.URL, p.Width, p.Scheme, f.Rule, f.Where)
		}
	}
	lost := strings.HasSuffix(p.URL, "9999") // the browser complains of the status
	if len(p.Elsewhere) > 0 || p.Wide || p.Overlaps > 0 || len(p.Complaints) > 0 && !lost {
		t.Errorf("%s, %d wide, %s: asks %v, complaints %v, wider than the window: %v, labels over each other: %d", p.URL, p.Width, p.Scheme, p.Elsewhere, p.Complaints, p.Wide, p.Overlaps)
	}
	if strings.HasSuffix(p.URL, "/HT-0001") {
		for _, want := range []string{"Internal retry storm", "UNCONFIRMED", "hourthree drill run azure-2026-05-29", "seemed recovered"} {
			if !strings.Contains(p.Text, want) {
				t.Errorf("%s does not show %q", p.URL, want)
			}
		}
	}
}

// TestIncidentsDocument: software that is not ours accepts the OpenAPI
// document, and the operator's listener serves the same library.
func TestIncidentsDocument(t *testing.T) {
	r := startRouter(t, conf{"providers": conf{"sim": conf{"type": "simulated"}}, "models": conf{"m": order("sim/m")}})
	status, doc, _ := get(t, r.admin+"/api/incidents/openapi.json")
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	var said struct {
		Valid   bool
		Version string
		Errors  json.RawMessage
	}
	if err := json.Unmarshal([]byte(run(t, doc, "node", filepath.Join(clientsDir, "openapi.mjs"))), &said); err != nil {
		t.Fatal(err)
	}
	if !said.Valid || said.Version != "3.1" {
		t.Errorf("version %s: %s", said.Version, said.Errors)
	}
	for path, want := range map[string]string{"/incidents/HT-0001": "Internal retry storm", "/api/incidents/HT-0001": `"ledger":`} {
		if status, body, _ := get(t, r.admin+path); status != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d", path, status)
		}
	}
}
