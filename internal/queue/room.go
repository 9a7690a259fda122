package queue

import "time"

// When the queue is full, a newcomer takes the place of what matters less. That
// is work of a less important class, the least important first; and in its own
// class, work of a flow that would still take more of the queue than the
// newcomer's own flow will. Of a class the flow that takes most of the queue
// gives way, and of a flow the item that would be served last. One who is trying
// is left alone.

// share is the part of the queue that so much takes: of its length or of its
// bytes, whichever is more.
func (q *Queue) share(n int, bytes int64) float64 {
	return max(float64(n)/float64(q.config.Length), float64(bytes)/float64(q.config.Bytes))
}

// admit makes room for a newcomer, or says why there is none.
func (q *Queue) admit(now time.Time, it *Item) Fate {
	c := q.config
	switch {
	case c.Length <= 0 || c.Bytes <= 0 || c.Wait <= 0:
		return RefusedOff
	case it.Bytes > c.Bytes:
		return RefusedBytes
	case !it.Deadline.IsZero() && !now.Before(it.Deadline):
		return Expired
	}
	why := q.fits(it)
	if why == Waiting {
		return why
	}
	q.Expire(now)
	own := q.classes[it.Priority].flow(it.Flow)
	mine := q.share(own.n+1, own.bytes+it.Bytes)
	if !q.yields(it, own, mine) {
		return q.fits(it)
	}
	for why = q.fits(it); why != Waiting; why = q.fits(it) {
		v := q.victim(it.Priority, own, mine)
		if v == nil {
			return why
		}
		q.drop(now, v, Evicted)
	}
	return Waiting
}

func (q *Queue) fits(it *Item) Fate {
	switch {
	case q.n >= q.config.Length:
		return RefusedLength
	case it.Bytes > q.config.Bytes-q.bytes:
		return RefusedBytes
	}
	return Waiting
}

// yields reports that those who may be evicted hold enough bytes, so that
// nobody goes in vain.
func (q *Queue) yields(it *Item, own *flow, mine float64) bool {
	free := q.config.Bytes - q.bytes
	for p := it.Priority; p < NumPriorities; p++ {
		for _, f := range q.classes[p].ring {
			switch {
			case p > it.Priority:
				free += f.bytes
			case f != own:
				free += max(0, f.bytes-int64(mine*float64(q.config.Bytes)))
			}
		}
	}
	return it.Bytes <= free
}

// victim is the item that matters least.
func (q *Queue) victim(p Priority, own *flow, mine float64) *Item {
	for c := NumPriorities - 1; c > p; c-- {
		if v := q.largest(c, nil, 0); v != nil {
			return v
		}
	}
	return q.largest(p, own, mine)
}

// largest is the last of the flow that takes most of the queue, and more than
// least.
func (q *Queue) largest(p Priority, except *flow, least float64) (v *Item) {
	for _, f := range q.classes[p].ring {
		if f == except {
			continue
		}
		share := q.share(f.n, f.bytes)
		if share <= least {
			continue
		}
		if last := f.last(); last != nil {
			v, least = last, share
		}
	}
	return v
}

// last is who of the flow would be served last, of those who are not told.
func (f *flow) last() (last *Item) {
	newest := !f.load.stands
	for _, l := range f.lanes {
		it := l.begin(newest)
		for it != nil && it.fate == Told {
			it = it.after(newest)
		}
		if it != nil && (last == nil || newest == (it.seq > last.seq)) {
			last = it
		}
	}
	return last
}

// Expire drops everybody whose time is over: see Gone. It walks the queue only
// when somebody's may be.
func (q *Queue) Expire(now time.Time) {
	if q.n == 0 || now.Before(q.earliest) {
		return
	}
	late := q.late[:0]
	q.earliest = time.Time{}
	q.each(func(it *Item) {
		switch {
		case it.fate == Waiting && !now.Before(it.until):
			late = append(late, it)
		case it.until.Before(q.earliest) || q.earliest.IsZero():
			q.earliest = it.until
		}
	})
	for _, it := range late {
		q.drop(now, it, Expired)
	}
	q.late = late
}

func (q *Queue) each(visit func(*Item)) {
	for p := range q.classes {
		for _, f := range q.classes[p].ring {
			for _, l := range f.lanes {
				for it := l.first; it != nil; it = it.next {
					visit(it)
				}
			}
		}
	}
}
