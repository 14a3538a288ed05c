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
	after := func(d time.Duration) { now = now.Add(d) }
	hangs := p.Begin(now)
	for range 7 { // requests that end, every 20 seconds
		after(20 * time.Second)
		p.Begin(now).End()
		if now.Sub(hangs.began) < Overdue {
			assert.Zero(t, p.overdue(now))
		}
	}
	assert.Equal(t, int64(1), p.overdue(now), "140 s, with others")
	second := p.Begin(now)
	assert.Equal(t, int64(2), p.all.Load())
	assert.Equal(t, int64(1), p.overdue(now))
	after(2*Overdue - time.Nanosecond)
	assert.Equal(t, int64(2), p.overdue(now), "nothing else began since")
	hangs.End()
	assert.Equal(t, int64(1), p.overdue(now))
	after(100 * Overdue)
	assert.Equal(t, int64(1), p.overdue(now), "much later")
	second.End()
	assert.Zero(t, p.overdue(now))
	third := p.Begin(now)
	after(Overdue)
	assert.Zero(t, p.overdue(now), "one that is as old as it may be")
	third.End()
	assert.Zero(t, p.all.Load())
}
