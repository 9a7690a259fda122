package attempt

import (
	"context"
	"sync/atomic"

	"github.com/hourthree/hourthree/internal/fault"
)

// vigil keeps a probe going when its caller leaves before the answer has begun.
// A target that answers later than most of its callers wait would never prove
// itself otherwise: each probe would go to one of them and end with it. The
// probe's own timers bound it, and its lease once its caller is gone. What else
// ends the call while the caller is there ends it still.
//
// A nil vigil is that of a call which ends with its caller.
type vigil struct {
	ctx    context.Context // of the call
	end    context.CancelCauseFunc
	caller context.Context
	stop   func() bool
	begun  atomic.Bool // the answer has begun: the caller's leaving ends the call again
}

// keepVigil begins the vigil of a call for caller, and has left called when that
// one leaves first, with what ends the call from then on. It is to be closed.
func keepVigil(caller context.Context, left func(end func(error))) *vigil {
	v := &vigil{caller: caller}
	v.ctx, v.end = context.WithCancelCause(context.WithoutCancel(caller))
	v.stop = context.AfterFunc(caller, func() {
		if c := cause(caller, nil); v.begun.Load() || c != fault.ErrClientGone {
			v.end(c)
			return
		}
		left(v.end)
	})
	return v
}

func (v *vigil) close() {
	v.stop()
	v.end(nil)
}

// over says that the answer has begun.
func (v *vigil) over() {
	if v == nil {
		return
	}
	v.begun.Store(true)
	if v.alone() {
		v.end(fault.ErrClientGone)
	}
}

// alone reports that the caller has left.
func (v *vigil) alone() bool {
	return v != nil && v.caller.Err() != nil && cause(v.caller, nil) == fault.ErrClientGone
}
