package incident

import (
	"testing"
	"time"
)

func TestOpen(t *testing.T) {
	l, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	if len(l.All()) < 100 {
		t.Errorf("%d records", len(l.All()))
	}
}

func TestScratch(t *testing.T) {
	l, _ := Open()
	for _, x := range l.Word("oom") { t.Log(x.Facet, x.Slug, x.Records) }
	s, err := l.Topic(Cause, "retry-amplification")
	t.Log(err, len(s.Records), s.Together, s.Conditions)
	st := l.Stats()
	t.Logf("%+v", st)
	_, err = l.List(Filter{Words: map[Facet][]string{Cause: {"retry-amp"}}})
	t.Log(err)
	p, n, err := Page(l.All(), "", 3); t.Log(len(p), n, err)
	p, n, err = Page(l.All(), n, 3); t.Log(p[0].ID, n, err)
	d := decode("x.yaml", Scaffold("ACME-0001", "a \"title\"", time.Now()), &Record{})
	t.Log(d.faults)
}
