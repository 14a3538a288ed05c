package ratelimit

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// ledgerOfCharges records the times at which the answers to a bucket's charges arrived, in order.
type ledgerOfCharges struct {
	mu    sync.Mutex
	times []time.Time // one for each charge of one token
}

func (c *ledgerOfCharges) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times = append(c.times, time.Now())
}

// until returns the number of tokens whose charge was answered at or before t.
func (c *ledgerOfCharges) until(t time.Time) (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n < int64(len(c.times)) && !c.times[n].After(t) {
		n++
	}
	return n
}

// If an instance decides a peek from held levels, the answer includes all charges of other instances, except for
// charges in the last HeldFor.
func TestPeek_Held_MissesNoOlderCharge(t *testing.T) {
	t.Parallel()
	options := testenv.Redis(t)
	limiters := make([]*Limiter, 3)
	for i := range limiters {
		limiters[i] = patientLimiter(t, patientClient(t, options), settings{})
	}
	peeker := limiters[0]
	const capacity = 100_000
	charges := make([]Charge, 4)
	for i := range charges {
		charges[i].Rule = compile(t, rule.Spec{ID: fmt.Sprint("rule", i), Rate: "1/day", Burst: capacity})
	}
	request := Request{Tenant: "acme", Charges: charges}
	var charged ledgerOfCharges
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var charging sync.WaitGroup
	for i, l := range limiters[1:] {
		charging.Go(func() {
			tick := time.NewTicker(time.Duration(1+i*2) * time.Millisecond)
			defer tick.Stop()
			for n := 0; ctx.Err() == nil; n++ {
				if d, err := l.Consume(t.Context(), request); err != nil || !d.Allowed {
					t.Errorf("%+v, %v", d, err)
					return
				}
				charged.add()
				for range 1 + n%20/19*30 { // every twentieth pause is long, so levels become held
					<-tick.C
				}
			}
		})
	}
	const enough = 300 // the test needs this many charges, and this many peeks from held levels
	held, peeks, deadline := 0, 0, time.Now().Add(testenv.Patience)
	for (held < enough || charged.until(time.Now()) < enough) && time.Now().Before(deadline) {
		known := charged.until(time.Now().Add(-redisstore.HeldFor))
		d := testenv.Must(t).Get(peeker.Peek(t.Context(), request))
		peeks++
		if d.Mode == ModeHeld {
			held++
		}
		for _, v := range d.Verdicts {
			require.True(t, v.Remaining <= capacity-known,
				"%s has %d left, and %d were charged %s ago or earlier", v.Mode, v.Remaining, known, redisstore.HeldFor)
		}
	}
	cancel()
	charging.Wait()
	assert.True(t, held >= enough, "%d of %d peeks were held", held, peeks)
	d, err := peeker.Peek(t.Context(), Request{Tenant: "acme", Charges: charges, Fresh: true})
	if all := charged.until(time.Now()); err != nil || d.Mode != ModeRedis || d.Verdicts[0].Remaining != capacity-all {
		t.Errorf("a fresh peek: %+v, %v, want %d left", d, err, capacity-all)
	}
	t.Logf("%d of %d peeks were held, beside %d charges", held, peeks, charged.until(time.Now()))
}

// If this process drops a level because MaxLocalLevels is reached, the level is no longer held, so Redis decides the
// next peek.
func TestPeek_LevelDropped_NotHeld(t *testing.T) {
	t.Parallel()
	options := testenv.Redis(t)
	l, other := patientLimiter(t, patientClient(t, options), settings{MaxLocalLevels: 64}), patientLimiter(t, patientClient(t, options), settings{})
	r := compile(t, rule.Spec{Rate: "1/day", Burst: 10})
	tenant := func(i int) Request { return Request{Tenant: fmt.Sprint("t", i), Charges: []Charge{{Rule: r}}} }
	const tenants = 300
	for i := range tenants {
		testenv.Must(t).Get(other.Consume(t.Context(), tenant(i)))
	}
	for round := range 3 {
		for i := range tenants {
			d, err := l.Peek(t.Context(), tenant(i))
			require.True(t, err == nil && d.Verdicts[0].Remaining == 9, "round %d: %+v, %v, want 9 left", round, d, err)
		}
	}
}
