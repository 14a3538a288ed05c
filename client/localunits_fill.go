package client

import "time"

// fill creates holds when they are needed. It runs on the filler's goroutine.
func (l *LocalUnits) fill() {
	defer close(l.filled)
	for {
		select {
		case <-l.wakeFiller:
			l.refill()
		case <-l.closing:
			return
		}
	}
}

// refill creates one hold, if a hold is needed. It tries until the service answers, or until the LocalUnits is
// closed.
func (l *LocalUnits) refill() {
	for units := l.nextSize(); units > 0; {
		hold := &localHold{id: "local-" + NewKey(), size: units}
		op := l.newHold(hold)
		answer := l.untilAnswered(op)
		if answer == nil { // Close was called
			l.abandon(hold, op)
			return
		}
		units = l.answered(hold, answer)
	}
}

// nextSize waits until there are fewer than maxHolds holds, and returns the size of the next hold. It returns 0 if no
// hold is needed.
func (l *LocalUnits) nextSize() int64 {
	slow := time.AfterFunc(awayAfter, func() { l.setAway(nil) })
	defer slow.Stop()
	for {
		l.mu.Lock()
		wanted, full, size := l.filling && !l.closed, len(l.holds) >= maxHolds, int64(0)
		if wanted && !full {
			size = l.sizing.next(l.stats.Taken, l.now())
		}
		l.mu.Unlock()
		if !wanted || !full {
			return size
		}
		select {
		case <-l.wakeFiller: // a hold has ended
		case <-l.closing:
		}
	}
}

// newHold returns the operation that creates a hold. The operation's key is the hold's id.
func (l *LocalUnits) newHold(h *localHold) *operation {
	o := &l.options
	return newOperation("/v1/holds", h.id, struct {
		Tenant  string       `json:"tenant"`
		HoldID  string       `json:"hold_id"`
		Items   []amountItem `json:"items"`
		Subject string       `json:"subject,omitempty"`
		TTL     int64        `json:"ttl_seconds"`
	}{o.Tenant, h.id, []amountItem{{o.Meter, h.size}}, o.Subject, int64(o.TTL / time.Second)})
}

// untilAnswered sends op until the service answers it. It returns nil if the LocalUnits is closed before the answer.
func (l *LocalUnits) untilAnswered(op *operation) *opAnswer {
	l.mu.Lock()
	l.asking = op
	l.mu.Unlock()
	for {
		slow := time.AfterFunc(awayAfter, func() { l.setAway(op) })
		answer, err := l.send(op)
		slow.Stop()
		if err == nil {
			return answer
		}
		l.setAway(op)
		timer := time.NewTimer(op.wait)
		select {
		case <-timer.C:
		case <-l.closing:
			timer.Stop()
			return nil
		}
	}
}

// setAway records that the service does not answer op, unless op was answered meanwhile. If op is nil, the filler
// waits for the service to answer a capture.
func (l *LocalUnits) setAway(op *operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.filling && l.asking == op {
		l.away = true
		l.announce()
	}
}

// answered records the service's answer to a request for a hold. If the service denied the hold because fewer units
// remain, it returns the size of a smaller hold to request. Otherwise it returns 0.
func (l *LocalUnits) answered(h *localHold, a *opAnswer) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away, l.asking = false, nil
	if a.refused() {
		units := int64(0)
		if a.exhausted() {
			units = l.sizing.smaller(a.Available)
		}
		if units == 0 {
			l.deny(a)
		}
		return units
	}
	h.lasts(a.end, l.options.TTL)
	h.reset = a.reset
	l.holds = append(l.holds, h)
	l.sizing.missing, l.sizing.known, l.sizing.remaining = 0, true, a.item().Remaining
	l.denial, l.filling = nil, false
	l.announce()
	wake(l.wakeSettler)
	return 0
}

// deny records the service's denial. During deniedPause, a Take gets this denial if too few units are held. The caller
// holds the lock.
func (l *LocalUnits) deny(a *opAnswer) {
	l.denial = &LocalDenial{Reason: ErrExhausted, Status: a.status, Code: a.Code, Detail: a.Detail, RetryAfter: a.after}
	l.deniedUntil = l.now() + deniedPause
	l.sizing.missing, l.sizing.known, l.sizing.remaining = 0, a.exhausted(), a.Available
	l.filling = false
	l.announce()
}

// abandon passes a hold to the settler if Close was called before the request for the hold was answered. The service
// may have created the hold. The settler returns its units.
func (l *LocalUnits) abandon(h *localHold, op *operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.filling = false
	if op.tries > 0 {
		h.size, h.ending = 0, true
		l.holds = append(l.holds, h)
	}
	l.announce()
}

// amountItem is an item of a request.
type amountItem struct {
	Meter  string `json:"meter"`
	Amount int64  `json:"amount"`
}
