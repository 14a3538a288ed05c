package client

import (
	"errors"
	"slices"
	"time"
)

const (
	// After undecidedMax calls in a row without a decision, calls that may fail open pass at once, without a request.
	// Only one call per probeEvery is still sent. So an outage does not delay every request of a backend until its
	// deadline.
	undecidedMax = 5
	probeEvery   = time.Second
)

// decision is a call that asks the service for a decision.
type decision struct {
	operation, tenant string
	items             []Item
	options           []Option
}

// failsOpen reports whether the call passes if the service does not decide.
func (c *Client) failsOpen(d *decision, o *callOptions) bool {
	if o.failOpen != nil {
		return *o.failOpen
	}
	return len(d.items) > 0 && !slices.ContainsFunc(d.items, func(item Item) bool {
		return !slices.Contains(c.options.FailOpen, item.Meter) && !slices.Contains(c.options.FailOpen, AllMeters)
	})
}

// decide calls work, which sends a request to the service. If the service does not decide and the call may fail open,
// decide returns open() instead.
func decide[T any](c *Client, d decision, work func() (*T, error), open func() *T) (*T, error) {
	o, err := c.optionsOf(d.options)
	if err != nil {
		return nil, err
	}
	mayPass := c.failsOpen(&d, &o)
	pass := func(err error) *T {
		if hook := c.options.OnFailOpen; hook != nil {
			hook(FailOpenEvent{d.operation, d.tenant, d.items, err})
		}
		if o.meta != nil {
			o.meta.Status, o.meta.Header, o.meta.FailedOpen = 0, nil, true
		}
		return open()
	}
	if mayPass && c.isAway() {
		if o.meta != nil {
			*o.meta = Meta{}
		}
		return pass(&Error{Operation: d.operation, Code: CodeNoAnswer, Detail: "the service did not answer the last calls"}), nil
	}
	answer, err := work()
	undecided := errors.Is(err, ErrUndecided)
	if err == nil || AsError(err) != nil && AsError(err).Code != CodeCanceled {
		c.noteDecision(!undecided)
	}
	if undecided && mayPass {
		return pass(err), nil
	}
	return answer, err
}

// isAway reports whether the service has decided none of the last calls, so that this call is not sent. It returns
// false for one call per probeEvery, which is sent as a probe.
func (c *Client) isAway() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.undecided < undecidedMax {
		return false
	}
	if now.Before(c.probeAt) {
		return true
	}
	c.probeAt = now.Add(probeEvery)
	return false
}

func (c *Client) noteDecision(decided bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if decided {
		c.undecided = 0
		return
	}
	if c.undecided++; c.undecided == undecidedMax {
		c.probeAt = time.Now().Add(probeEvery)
	}
}
