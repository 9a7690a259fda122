package notify

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/detect"
)

var start = time.Date(2026, 5, 29, 9, 20, 0, 0, time.UTC)

// about an outage, at a time.
func outage(id string, at time.Time, event string, state detect.State) Notice {
	n := Notice{At: at, Kind: OfOutage, Event: event, Subject: id, Severity: Critical, Title: id + " " + event, Text: "text", Outage: &Outage{ID: id, State: string(state), Onset: start}}
	if event == "ended" {
		n.Outage.Ended = &at
	}
	n.seal()
	return n
}

func action(subject string, at time.Time) Notice {
	n, _ := Change{At: at, Who: "ops", What: "quarantine", Subject: subject, Why: "why"}.Notice()
	return n
}

// sent takes everything that may go now, and has it delivered.
func sent(b *Book, now time.Time) (out []*Message) {
	for {
		m, _ := b.Next(now)
		if m == nil {
			return out
		}
		out = append(out, m)
		b.Done(now, Outcome{Delivered: true}, 0.5)
	}
}

func titles(ms []*Message) (out []string) {
	for _, m := range ms {
		out = append(out, m.Title)
	}
	return out
}

// TestFlapping: an outage that goes to and fro is told of once a minute for each
// state, what was left out is in the next message, and the last state arrives.
func TestFlapping(t *testing.T) {
	b := &Book{Retries: 3}
	got, told := 0, 0
	for i := range 300 { // five minutes
		now := start.Add(time.Duration(i) * time.Second)
		state := detect.Degraded
		if i%2 == 1 {
			state = detect.Improving
		}
		b.Offer(now, outage("O-1", now, "state", state))
		for _, m := range sent(b, now) {
			got, told = got+1, told+1+len(m.Also)+m.Untold
		}
	}
	if got > 12 || got < 8 {
		t.Errorf("%d messages in five minutes of flapping", got)
	}
	if told += b.Stats().Waiting + len(b.waiting[0].Also) + b.waiting[0].Untold; told != 300 {
		t.Errorf("%d of 300 notices are in a message", told)
	}
	end := start.Add(301 * time.Second)
	b.Offer(end, outage("O-1", end, "ended", detect.Verified))
	if m := sent(b, end.Add(apart)); len(m) == 0 || m[len(m)-1].Event != "ended" {
		t.Errorf("the end does not arrive: %v", titles(m))
	}
}

func TestSameNoticeOnce(t *testing.T) {
	b := &Book{}
	n := outage("O-1", start, "opened", detect.Degraded)
	for range 3 {
		b.Offer(start, n)
	}
	if m := sent(b, start); len(m) != 1 || b.Stats().Duplicates != 2 {
		t.Errorf("%v, %+v", titles(m), b.Stats())
	}
	b.Offer(start.Add(time.Hour), n)
	if m := sent(b, start.Add(time.Hour)); len(m) != 0 {
		t.Errorf("again: %v", titles(m))
	}
}

// TestRoom: what finds no room is counted, and outages stay longest.
func TestRoom(t *testing.T) {
	b := &Book{}
	b.Offer(start, outage("O-1", start, "opened", detect.Degraded))
	for i := range room + 10 {
		b.Offer(start, action(fmt.Sprint("w", i), start))
	}
	if s := b.Stats(); s.Waiting != room || s.Dropped != 11 {
		t.Errorf("%+v", s)
	}
	if m := sent(b, start); m[0].Subject != "O-1" || m[1].Subject != "w11" {
		t.Errorf("%v", titles(m))
	}
}

// TestRetry: pauses grow up to their bound, what the receiver asks for is kept
// within bounds, a refusal is final, and a message is given up in the end.
func TestRetry(t *testing.T) {
	b := &Book{Retries: 4}
	b.Offer(start, action("w", start))
	now := start
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
		m, _ := b.Next(now)
		if m == nil || m.Tries != i+1 {
			t.Fatalf("try %d: %+v", i+1, m)
		}
		b.Done(now, Outcome{Again: true}, 1)
		if m, wait := b.Next(now); m != nil || wait != want {
			t.Errorf("after try %d: %v, wait %s", i+1, m, wait)
		}
		now = now.Add(want)
	}
	m, _ := b.Next(now)
	b.Done(now, Outcome{Again: true}, 1)
	if s := b.Stats(); m == nil || s.Failed != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
	if d := pauseOf(2, time.Hour, 0); d != longestAsked {
		t.Errorf("an hour was asked for: %s", d)
	}
	if d := pauseOf(2, 10*time.Second, 0); d != 10*time.Second {
		t.Errorf("ten seconds were asked for: %s", d)
	}
	if d := pauseOf(1000, 0, 1); d != longestPause {
		t.Errorf("after a thousand failures: %s", d)
	}
	now = now.Add(time.Hour)
	b.Offer(now, action("x", now))
	b.Next(now)
	b.Done(now, Outcome{}, 1)
	if s := b.Stats(); s.Refused != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

// TestNewerReplacesWhatFails: what is tried again in vain gives way to the newer
// message of its subject, which tells of it.
func TestNewerReplacesWhatFails(t *testing.T) {
	b := &Book{Retries: 100}
	b.Offer(start, outage("O-1", start, "opened", detect.Degraded))
	b.Next(start)
	b.Offer(start, outage("O-1", start, "source", detect.Degraded)) // while the first is under way
	b.Done(start, Outcome{Again: true}, 0)
	end := start.Add(time.Hour)
	b.Offer(end, outage("O-1", end, "ended", detect.Unverified))
	m := sent(b, end)
	if len(m) != 1 || m[0].Event != "ended" || len(m[0].Also) != 2 || m[0].Also[0].Event != "opened" {
		t.Errorf("%v, %+v", titles(m), m[0].Also)
	}
}

// TestRenew: an open outage is told again and again, as it last stood, until it ends.
func TestRenew(t *testing.T) {
	b := &Book{Retries: 1, Renew: renewEvery}
	b.Offer(start, outage("O-1", start, "opened", detect.Degraded))
	sent(b, start)
	for i := 1; i <= 10; i++ {
		now := start.Add(time.Duration(i) * renewEvery)
		m := sent(b, now)
		if len(m) != 1 || !m[0].Renewal {
			t.Fatalf("minute %d: %v", i, titles(m))
		}
		if _, wait := b.Next(now); wait != renewEvery {
			t.Errorf("minute %d: the next in %s", i, wait)
		}
	}
	end := start.Add(11 * time.Minute)
	b.Offer(end, outage("O-1", end, "ended", detect.Verified))
	if m := sent(b, end); len(m) != 1 || m[0].Renewal || m[0].Event != "ended" {
		t.Errorf("%v", titles(m))
	}
	if m, wait := b.Next(end.Add(time.Hour)); m != nil || wait != 0 {
		t.Errorf("%+v after the end, %s", m, wait)
	}
	if s := b.Stats(); s.Delivered != 2 || s.Renewed != 10 {
		t.Errorf("%+v", s)
	}
}

func TestHurry(t *testing.T) {
	b := &Book{Retries: 5}
	b.Offer(start, outage("O-1", start, "opened", detect.Degraded))
	sent(b, start)
	b.Offer(start, outage("O-1", start.Add(time.Second), "opened", detect.Degraded)) // held for a minute
	b.Hurry = true
	m, _ := b.Next(start)
	if m == nil {
		t.Fatal("what is held is not sent at the end")
	}
	b.Done(start, Outcome{Again: true}, 1)
	if m, wait := b.Next(start); m != nil || wait != 0 || b.Stats().Failed != 1 {
		t.Errorf("%v, %s, %+v", m, wait, b.Stats())
	}
}

// TestBook: whatever comes and whatever becomes of it, nothing is lost uncounted, no
// state of an outage is told twice within a minute, the room is kept, and of every
// outage the last notice arrives when the receiver is well.
func TestBook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &Book{Retries: rapid.IntRange(0, 4).Draw(t, "retries")}
		if rapid.Bool().Draw(t, "alerts") {
			b.Renew = renewEvery
		}
		now, offered := start, int64(0)
		told := map[string]time.Time{}
		latest, arrived := map[string]string{}, map[string]string{}
		check := func() {
			s := b.Stats()
			if sum := s.Delivered + s.Refused + s.Failed + s.Dropped + s.Merged + s.Duplicates + int64(s.Waiting); sum != offered {
				t.Fatalf("%d offered, %d accounted for: %+v", offered, sum, s)
			}
			if len(b.waiting) > room+1 || len(b.seen) > maxSeen || len(b.marks) > maxMarks || len(b.open) > maxOutages {
				t.Fatalf("out of bounds: %d, %d, %d, %d", len(b.waiting), len(b.seen), len(b.marks), len(b.open))
			}
		}
		step := func(o Outcome, random float64) {
			m, _ := b.Next(now)
			if m == nil {
				return
			}
			if last, ok := told[m.limited()]; ok && m.Tries == 1 && !m.Renewal && now.Sub(last) < apart {
				t.Fatalf("%q is told twice within %s", m.Title, now.Sub(last))
			}
			if m.Tries == 1 && !m.Renewal {
				told[m.limited()] = now
			}
			if o.Delivered {
				arrived[m.Subject] = m.ID
			}
			b.Done(now, o, random)
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { check() },
			"offer": func(t *rapid.T) {
				id := rapid.SampledFrom([]string{"O-1", "O-2", "O-3"}).Draw(t, "outage")
				event := rapid.SampledFrom([]string{"opened", "source", "state", "wave", "ended"}).Draw(t, "event")
				state := rapid.SampledFrom([]detect.State{detect.Degraded, detect.Improving, detect.Unverified, detect.Verified}).Draw(t, "state")
				n := outage(id, now, event, state)
				if slices.Contains(b.seen, n.ID) {
					n.ID = latest[id] // the same again
				}
				b.Offer(now, n)
				offered++
				latest[id] = n.ID
			},
			"many": func(t *rapid.T) {
				for i := range rapid.IntRange(1, room).Draw(t, "n") {
					b.Offer(now, action(fmt.Sprint(offered, i), now))
					offered++
				}
			},
			"time": func(t *rapid.T) { now = now.Add(time.Duration(rapid.Int64Range(0, int64(3*time.Minute)).Draw(t, "d"))) },
			"send": func(t *rapid.T) {
				o := rapid.SampledFrom([]Outcome{{Delivered: true}, {Again: true}, {Again: true, After: time.Hour}}).Draw(t, "outcome")
				step(o, rapid.Float64Range(0, 0.999).Draw(t, "random"))
			},
		})
		b.Renew, b.Retries = 0, 1000
		failed, dropped := b.Stats().Failed, b.Stats().Dropped
		for range 10 {
			now = now.Add(longestAsked)
			for range room + 2 {
				step(Outcome{Delivered: true}, 0)
			}
		}
		check()
		if s := b.Stats(); s.Waiting != 0 || s.Failed != failed || s.Dropped != dropped {
			t.Fatalf("%+v", s)
		}
		for id, want := range latest {
			if failed == 0 && dropped == 0 && arrived[id] != want {
				t.Fatalf("of %s the last notice has not arrived", id)
			}
		}
	})
}
