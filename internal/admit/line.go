package admit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hourthree/hourthree/internal/queue"
)

// Line is where requests wait for one of the targets that may serve them: few,
// not for long, in the order that package queue gives them. Whoever frees
// something calls Notify, and one of those who wait for it is woken; where a
// rate has to be waited out, the line wakes one when it is time. It is safe for
// concurrent use; the lock is never held while anybody waits or tries.
type Line struct {
	room    func(queue.Key) (free bool, when time.Time)
	waiting atomic.Int64 // in line

	mu     sync.Mutex
	queue  *queue.Queue
	alarms []alarm // what becomes free by time alone
	timer  *time.Timer
	rings  time.Time // when it does, zero when it is not set
}

type alarm struct {
	key queue.Key
	at  time.Time
}

// Waiter is one request in line. It is used once.
type Waiter struct {
	// Promised are the keys that others have just been told of, or are to have
	// first: set for each try, which is to leave them alone.
	Promised []queue.Key

	Flow     string // the workload
	Caller   uint64 // hash of a caller without one, who is dealt a flow in place of Flow; 0 for none
	Priority queue.Priority
	Cost     int64       // tokens expected
	Luck     float64     // what it has drawn, see queue.Item
	Lease    *Lease      // what it holds while it waits
	Deadline time.Time   // the request's own, zero for none
	Keys     []queue.Key // what may serve it
	Kin      queue.Kin   // of those that are denied alike
	// Denied tells why the last try found the key of no use; nil for a reason
	// that is the request's own. It is called under the line's lock.
	Denied func(queue.Key) queue.Denial

	item queue.Item
	wake chan struct{} // holds at most one signal
}

// NewLine returns an empty line. room says whether a key is free, that is has
// room for one more, and when time alone will make room, or more of it; zero for
// never. It is called under the line's lock and may not call the line.
func NewLine(c queue.Config, room func(queue.Key) (free bool, when time.Time)) *Line {
	return &Line{room: room, queue: queue.New(c)}
}

// Reconfigure changes the bounds for those who come from now on.
func (l *Line) Reconfigure(c queue.Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.Reconfigure(c)
}

// Waiting is the number of requests in line and the bytes they hold.
func (l *Line) Waiting() (requests int, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.Waiting()
}

// Empty reports that nobody waits. It takes no lock.
func (l *Line) Empty() bool { return l.waiting.Load() == 0 }

// Taken returns those of the keys at which a newcomer that tried at once would
// overtake somebody: others of its class or of a more important one wait for them,
// and they are not known to be free for anybody.
func (l *Line) Taken(keys []queue.Key, p queue.Priority) (taken []queue.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, k := range keys {
		if l.queue.Ahead(k, p) && !l.open(now, k) {
			taken = append(taken, k)
		}
	}
	return taken
}

// open reports that the key is there for a newcomer that others are ahead of: it
// is free and was offered to all of them in vain. What is free and has not been
// offered is now.
func (l *Line) open(now time.Time, k queue.Key) bool {
	switch {
	case l.queue.Promised(k) || !l.check(now, k):
		return false
	case l.queue.Vain(k):
		return true
	}
	l.tell(now, k)
	return false
}

// Notify says that something has been freed.
func (l *Line) Notify(k queue.Key) {
	if l.Empty() { // whoever joins from now on looks by itself
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.offer(time.Now(), k)
}

// offer tells one who wants the key, when there is room for it.
func (l *Line) offer(now time.Time, k queue.Key) {
	if l.queue.Wanted(k) && l.check(now, k) {
		l.tell(now, k)
	}
}

// tell tells one who wants the key that it is free.
func (l *Line) tell(now time.Time, k queue.Key) {
	if it := l.queue.Next(now, k); it != nil {
		l.wake(it)
	}
	l.sweep()
}

// check reports that there is room for the key, and sees to it that it is offered
// when time has made some.
func (l *Line) check(now time.Time, k queue.Key) bool {
	free, when := l.room(k)
	if when.After(now) {
		l.alarm(k, when)
	}
	return free
}

// wake signals those who have been told something. It never blocks: each of
// them had no signal before.
func (l *Line) wake(items ...*queue.Item) {
	for _, it := range items {
		it.Owner.(*Waiter).wake <- struct{}{}
	}
}

// sweep wakes those who have been thrown out, offers what is not held for one
// any more and keeps the count.
func (l *Line) sweep() {
	l.wake(l.queue.Gone()...)
	for _, k := range l.queue.Released() {
		l.offer(time.Now(), k)
	}
	n, _ := l.queue.Waiting()
	l.waiting.Store(int64(n))
}

// WaitFor waits until try returns true, and says Dispatched then; else it says
// why not: the line is full, the wait is over, somebody else had to have the
// place, or ctx ended. try runs on the caller's goroutine: at once when
// something is free that is of no use to the others, and after each signal. A
// signal that does not help goes to the next whom the denial does not concern,
// and so does one that reaches a request as it leaves, also by a panic in try.
func (l *Line) WaitFor(ctx context.Context, w *Waiter, try func() bool) queue.Fate {
	look, fate := l.join(w)
	if fate != queue.Waiting {
		return fate
	}
	defer l.leave(w)
	if look && try() {
		l.served(w)
		return queue.Dispatched
	}
	timer := time.NewTimer(time.Until(w.item.Until()))
	defer timer.Stop()
	for {
		select {
		case <-w.wake:
		case <-timer.C:
			return queue.Expired
		case <-ctx.Done():
			return queue.Removed
		}
		if fate := l.heard(w); fate != queue.Told {
			return fate
		}
		if try() {
			l.served(w)
			return queue.Dispatched
		}
		l.pass(w)
	}
}

// join puts w in line. look says that it may try once. What was freed just
// before it came and told nobody is offered.
func (l *Line) join(w *Waiter) (look bool, fate queue.Fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if w.Caller != 0 {
		w.Flow = l.queue.Shard(w.Priority, w.Caller)
	}
	w.wake = make(chan struct{}, 1)
	w.item = queue.Item{
		Flow: w.Flow, Priority: w.Priority, Cost: w.Cost, Luck: w.Luck, Bytes: w.Lease.Bytes(), Deadline: w.Deadline,
		Keys: w.Keys, Kin: w.Kin, Owner: w,
	}
	fate = l.queue.Push(now, &w.item)
	l.sweep()
	if fate != queue.Waiting {
		return false, fate
	}
	for _, k := range w.Keys {
		if l.open(now, k) {
			look = true
		} else {
			w.Promised = append(w.Promised, k)
		}
	}
	return look, fate
}

// heard is what w was woken for.
func (l *Line) heard(w *Waiter) queue.Fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.Promised = l.queue.Try(&w.item, w.Promised[:0])
	if w.item.Fate() == queue.Told && !time.Now().Before(w.item.Until()) {
		return queue.Expired
	}
	return w.item.Fate()
}

// served takes w out of line. What is left of what it was told of is offered to
// the next: one signal may stand for more than one slot.
func (l *Line) served(w *Waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, told := time.Now(), w.item.Fate() == queue.Told
	l.wake(l.queue.Done(now, &w.item)...)
	if told {
		l.offer(now, w.item.Key())
	}
	l.sweep()
}

// pass hands on what did not help w, unless somebody else has taken it.
func (l *Line) pass(w *Waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, k := time.Now(), w.item.Key()
	var d queue.Denial
	if w.Denied != nil {
		d = w.Denied(k)
	}
	if l.check(now, k) {
		l.wake(l.queue.Pass(now, &w.item, d)...)
	} else {
		l.wake(l.queue.Spent(now, &w.item, d)...)
	}
	l.sweep()
}

// leave takes w out of line if it is still there.
func (l *Line) leave(w *Waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, fate := time.Now(), queue.Removed
	if !now.Before(w.item.Until()) {
		fate = queue.Expired
	}
	l.wake(l.queue.Remove(now, &w.item, fate)...)
	l.sweep()
}

// Settle corrects what w was charged to the tokens that it really used.
func (l *Line) Settle(w *Waiter, actual int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.Settle(w.Priority, w.Flow, w.Cost, actual)
}

// alarm has the key offered at a time.
func (l *Line) alarm(k queue.Key, when time.Time) {
	for i := range l.alarms {
		if l.alarms[i].key == k {
			l.alarms[i].at = when
			l.set(when)
			return
		}
	}
	l.alarms = append(l.alarms, alarm{k, when})
	l.set(when)
}

// set has the alarms looked at no later than when.
func (l *Line) set(when time.Time) {
	if !l.rings.IsZero() && !when.Before(l.rings) {
		return
	}
	l.rings = when
	if l.timer == nil {
		l.timer = time.AfterFunc(time.Until(when), l.ring)
	} else {
		l.timer.Reset(time.Until(when))
	}
}

// ring offers what has become free by time.
func (l *Line) ring() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.rings = time.Time{}
	due := l.alarms
	l.alarms = nil
	for _, a := range due {
		if now.Before(a.at) {
			l.alarm(a.key, a.at)
		} else {
			l.offer(now, a.key)
		}
	}
}
