package notify

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hourthree/hourthree/internal/detect"
)

// flushFor bounds the last deliveries when the router stops or a webhook goes.
const flushFor = 5 * time.Second

// Settings are those of one webhook. They are not changed once they were given.
type Settings struct {
	URL       string // a secret
	Format    Format
	Kinds     []Kind            // that are told; all where there are none
	Headers   map[string]string // secrets
	Labels    map[string]string // added to every message, and to every alert
	Timeout   time.Duration     // of one try
	Retries   int
	Dashboard string // for links
	Router    string // the name under which this router appears
}

// Options are what a notifier needs. Dial takes the place of the system's network,
// for tests; nil for not.
type Options struct {
	Version string
	Random  func() float64 // from [0,1), for concurrent use
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	Log     *slog.Logger
}

func (o Options) validate() error {
	if o.Random == nil || o.Log == nil {
		return errors.New("notify: random and log are required")
	}
	return nil
}

// Notifier tells webhooks.
type Notifier struct {
	opt Options
	wg  sync.WaitGroup

	mu     sync.Mutex
	hooks  map[string]*hook
	story  story
	closed bool
}

// New makes a notifier that tells nobody yet.
func New(opt Options) (*Notifier, error) {
	if err := opt.validate(); err != nil {
		return nil, err
	}
	return &Notifier{opt: opt, hooks: map[string]*hook{}}, nil
}

// Use replaces the webhooks. One that keeps its name keeps what waits for it; one that
// goes is sent what waits, for a few seconds.
func (n *Notifier) Use(all map[string]Settings) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	for name, h := range n.hooks {
		if _, ok := all[name]; !ok {
			delete(n.hooks, name)
			h.end()
		}
	}
	for name, s := range all {
		h := n.hooks[name]
		if h == nil {
			h = newHook(name, n)
			n.hooks[name] = h
			h.use(&s)
			n.wg.Go(h.run)
		} else if !reflect.DeepEqual(*h.settings.Load(), s) {
			h.use(&s)
		}
	}
}

// Tell gives a notice to every webhook that wants it. It never waits.
func (n *Notifier) Tell(what Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell(what)
}

func (n *Notifier) tell(what Notice) {
	now := time.Now()
	for _, h := range n.hooks {
		if kinds := h.settings.Load().Kinds; len(kinds) == 0 || slices.Contains(kinds, what.Kind) || what.Kind == OfTest {
			h.offer(now, what)
		}
	}
}

// Noticed tells of an outage.
func (n *Notifier) Noticed(d detect.Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if what, ok := n.story.tell(d); ok {
		n.tell(what)
	}
}

// Close sends what waits, for a few seconds, and ends. It is safe to call twice.
func (n *Notifier) Close() {
	n.mu.Lock()
	n.closed = true
	for name, h := range n.hooks {
		delete(n.hooks, name)
		h.end()
	}
	n.mu.Unlock()
	n.wg.Wait()
}

// Reading is what became of the messages to one webhook.
type Reading struct {
	Webhook string
	Stats
}

// Stats lists the webhooks by name.
func (n *Notifier) Stats() []Reading {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []Reading
	for _, name := range slices.Sorted(maps.Keys(n.hooks)) {
		h := n.hooks[name]
		h.mu.Lock()
		out = append(out, Reading{name, h.book.Stats()})
		h.mu.Unlock()
	}
	return out
}

// hook is one webhook. Its goroutine sends; whoever has something to tell puts it into
// the book, under a lock that is never held while something is sent.
type hook struct {
	name     string
	opt      *Options
	log      *slog.Logger
	client   *http.Client
	settings atomic.Pointer[Settings]
	wake     chan struct{} // there may be something to do
	stop     chan struct{} // what waits is tried once, and that is all
	ctx      context.Context
	cancel   context.CancelFunc
	failing  bool // of the goroutine

	mu   sync.Mutex
	book Book
}

func newHook(name string, n *Notifier) *hook {
	h := &hook{name: name, opt: &n.opt, log: n.opt.Log.With("component", "notify", "webhook", name), client: newClient(n.opt.Dial), wake: make(chan struct{}, 1), stop: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// use takes settings for the next try on.
func (h *hook) use(s *Settings) {
	h.settings.Store(s)
	h.mu.Lock()
	h.book.Retries, h.book.Renew = s.Retries, 0
	if s.Format == Alertmanager {
		h.book.Renew = renewEvery
	}
	h.mu.Unlock()
	h.poke()
}

func (h *hook) offer(now time.Time, n Notice) {
	h.mu.Lock()
	h.book.Offer(now, n)
	h.mu.Unlock()
	h.poke()
}

func (h *hook) poke() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// end has the goroutine send what waits and leave, within its time also if it hangs
// in a try. It is called once.
func (h *hook) end() {
	close(h.stop)
	time.AfterFunc(flushFor, h.cancel)
}

// run sends until the end.
func (h *hook) run() {
	defer h.client.CloseIdleConnections()
	defer h.cancel()
	last := false
	for {
		m, wait := h.next(last)
		switch {
		case m != nil:
			a := post(h.ctx, h.client, h.settings.Load(), m, h.opt)
			h.mu.Lock()
			h.book.Done(time.Now(), a.Outcome, h.opt.Random())
			h.mu.Unlock()
			h.say(a)
		case last:
			return
		case !h.rest(wait):
			last = true
		}
	}
}

func (h *hook) next(last bool) (*Message, time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.book.Hurry = last
	return h.book.Next(time.Now())
}

// rest waits for something to do, and reports whether there may be more to come.
func (h *hook) rest(wait time.Duration) bool {
	var due <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-h.wake:
	case <-due:
	case <-h.stop:
		return false
	}
	return true
}

// say logs once that deliveries fail, and once that they work again.
func (h *hook) say(a answer) {
	if failing := !a.Delivered; failing != h.failing {
		h.failing = failing
		if failing {
			h.log.Warn("webhook fails; serving goes on", "reason", a.Reason)
		} else {
			h.log.Info("webhook works again")
		}
	}
}

// Delivery is how a single message went.
type Delivery struct {
	Delivered bool
	Status    string // "" where there was no answer
	Reason    string // why it was not delivered
	Took      time.Duration
}

// Send makes one try of one message, by the version and the dial function alone.
func Send(ctx context.Context, opt Options, s Settings, what Notice) Delivery {
	client := newClient(opt.Dial)
	defer client.CloseIdleConnections()
	began := time.Now()
	a := post(ctx, client, &s, &Message{Notice: what}, &opt)
	return Delivery{a.Delivered, a.Status, a.Reason, time.Since(began)}
}
