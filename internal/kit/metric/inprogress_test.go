package metric

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
)

func TestInProgress_RequestThatDoesNotEnd_OverdueWithinTwice(t *testing.T) {
	t.Parallel()
	p, now := NewInProgress(prometheus.NewRegistry(), "x", "Requests"), time.Now()
	overdue := func() int64 { _, n := p.count(now); return n }
	inFlight := func() int64 { n, _ := p.count(now); return n }
	after := func(d time.Duration) { now = now.Add(d) }
	hangs := p.Begin(now)
	for range 7 { // requests that end, every 20 seconds
		after(20 * time.Second)
		p.Begin(now).End()
		if now.Sub(hangs.began) < Overdue {
			assert.Zero(t, overdue())
		}
	}
	assert.Equal(t, int64(1), overdue(), "140 s, with others")
	second := p.Begin(now)
	assert.Equal(t, int64(2), inFlight())
	assert.Equal(t, int64(1), overdue())
	after(2*Overdue - time.Nanosecond)
	assert.Equal(t, int64(2), overdue(), "nothing else began since")
	hangs.End()
	assert.Equal(t, int64(1), overdue())
	after(100 * Overdue)
	assert.Equal(t, int64(1), overdue(), "much later")
	second.End()
	assert.Zero(t, overdue())
	third := p.Begin(now)
	after(Overdue)
	assert.Zero(t, overdue(), "one that is as old as it may be")
	third.End()
	assert.Zero(t, inFlight())
}
