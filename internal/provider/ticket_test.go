package provider

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/admit"
)

// ticket is leave to make calls, until the test ends.
func ticket(t testing.TB) *admit.Ticket {
	t.Helper()
	ticket, refusal := admit.NewLedger(1 << 20).Admit(admit.Ask{Now: time.Now()})
	if ticket == nil {
		t.Fatal(refusal)
	}
	t.Cleanup(func() { ticket.Leave(time.Now(), admit.Use{}) })
	return ticket
}

// I13: without leave from admission nothing is sent.
func TestNoTicketNoCall(t *testing.T) {
	trip := tripper(func(*http.Request) (*http.Response, error) {
		t.Error("a call was made")
		return nil, errors.New("no")
	})
	p, err := New(Spec{Name: "a", Type: OpenAI, APIKey: "k"}, Deps{RoundTripper: trip})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Request(t.Context(), Call{Method: http.MethodPost, Path: "/chat/completions", Model: "m", Bytes: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	left := ticket(t)
	left.Leave(time.Now(), admit.Use{})
	for _, bad := range []*admit.Ticket{nil, new(admit.Ticket), left} {
		if _, err := p.RoundTrip(bad, out); !errors.Is(err, errNoTicket) {
			t.Errorf("%v", err)
		}
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
