package client

import (
	"fmt"
	"slices"
	"time"
)

// settle runs on the settler's goroutine. It captures, extends and releases holds, and debits late units. It sends
// one operation at a time. It ends when the LocalUnits is closed and has no more work, or when Close gives up.
func (l *LocalUnits) settle() {
	defer close(l.settled)
	closing, filled := l.closing, l.filled
	for l.attempt.Err() == nil {
		h, op, due := l.nextOperation()
		if op != nil {
			if answer, err := l.send(op); err == nil {
				l.done(h, op, answer)
			}
			continue
		}
		if filled == nil && l.clear() {
			return
		}
		timer := time.NewTimer(due)
		select {
		case <-timer.C:
		case <-l.wakeSettler:
		case <-closing:
			closing = nil
		case <-filled:
			filled = nil
		case <-l.attempt.Done():
		}
		timer.Stop()
	}
	<-l.filled
}

// clear reports whether there are neither holds nor late units.
func (l *LocalUnits) clear() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.holds) == 0 && l.late == 0
}

// nextOperation returns the operation to send now and its hold, which is nil for a debit. If no operation can be sent
// now, it returns the time until the next operation is due.
func (l *LocalUnits) nextOperation() (h *localHold, op *operation, due time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	due = l.options.TTL
	for _, h := range l.holds {
		if h.op == nil || h.op.do == actionExtend && now >= h.stop {
			do, wait := h.next(now, &l.options, l.closed)
			if do == actionWait {
				due = min(due, wait-now)
				continue
			}
			h.op = l.change(h, do)
		}
		if h.op.retry <= now {
			return h, h.op, 0
		}
		due = min(due, h.op.retry-now)
	}
	if l.debit == nil && l.late > 0 {
		l.debit = l.newDebit()
	}
	if l.debit != nil {
		if l.debit.retry <= now {
			return nil, l.debit, 0
		}
		due = min(due, l.debit.retry-now)
	}
	return nil, nil, max(due, 0)
}

// retryNow lets the next attempts of all unanswered operations start at once. The caller holds the lock.
func (l *LocalUnits) retryNow() {
	for _, h := range l.holds {
		if h.op != nil {
			h.op.retry = 0
		}
	}
	if l.debit != nil {
		l.debit.retry = 0
	}
}

// change returns the operation for an action on a hold. The operation's key is the hold's id with the number of the
// operation.
func (l *LocalUnits) change(h *localHold, do action) *operation {
	h.changes++
	verb := map[action]string{actionCapture: "capture", actionFinish: "capture", actionRelease: "release", actionExtend: "extend"}[do]
	body := struct {
		Tenant string       `json:"tenant"`
		Items  []amountItem `json:"items,omitempty"`
		Final  bool         `json:"final,omitempty"`
		TTL    int64        `json:"ttl_seconds,omitempty"`
	}{Tenant: l.options.Tenant}
	switch do {
	case actionExtend:
		body.TTL = int64(l.options.TTL / time.Second)
		h.touched = false
	case actionRelease:
		h.ending = true
	case actionCapture, actionFinish:
		h.asked = h.taken
		body.Items = []amountItem{{l.options.Meter, h.taken - h.captured}}
		body.Final = do == actionFinish
		h.ending = h.ending || body.Final
	case actionWait:
	}
	op := newOperation("/v1/holds/"+h.id+"/"+verb, fmt.Sprintf("%s-%d", h.id, h.changes), body)
	op.do = do
	if len(body.Items) > 0 {
		op.amount = body.Items[0].Amount
	}
	return op
}

// newDebit returns the debit of all late units. If the balance has fewer units, the debit takes only these.
func (l *LocalUnits) newDebit() *operation {
	l.debits++
	op := newOperation("/v1/debits", fmt.Sprintf("%s-%d", l.id, l.debits), struct {
		Tenant  string       `json:"tenant"`
		Items   []amountItem `json:"items"`
		Subject string       `json:"subject,omitempty"`
		Mode    string       `json:"mode"`
	}{l.options.Tenant, []amountItem{{l.options.Meter, l.late}}, l.options.Subject, "best_effort"})
	op.amount = l.late
	return op
}

// done records the service's answer to an operation on a hold, or to a debit if h is nil.
func (l *LocalUnits) done(h *localHold, op *operation, a *opAnswer) {
	if a.refused() && (h == nil || !a.ended() && !a.exhausted()) {
		// Only an operator can remove the cause of this refusal, for example a revoked key or a suspended tenant. The
		// operation is sent again after the waits of Backoff.
		l.postpone(op, a.after)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case h == nil:
		l.late -= op.amount
		l.debit = nil
		l.stats.Debited += a.item().Charged
		l.stats.Shortfall += a.item().Shortfall
	case a.refused():
		// The hold ended at the service before all units that were taken from it were captured.
		l.late += h.taken - h.captured
		l.remove(h)
	case op.do == actionExtend:
		h.op = nil
		h.lasts(a.end, l.options.TTL)
	default:
		h.op = nil
		h.captured += op.amount
		l.stats.Captured += op.amount
		if op.do != actionCapture {
			l.remove(h)
		}
	}
}

func (l *LocalUnits) remove(h *localHold) {
	l.holds = slices.DeleteFunc(l.holds, func(other *localHold) bool { return other == h })
	wake(l.wakeFiller) // the filler may wait until there are fewer holds
}
