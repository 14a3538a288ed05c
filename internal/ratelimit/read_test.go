package ratelimit

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// TestConsume_With_BringsTheValues: values of other keys of the tenant (Request.With) are read together with the
// verdicts. Each request gets the values of its own keys.
func TestConsume_With_BringsTheValues(t *testing.T) {
	client := parallelClient(t)
	ctx := context.Background()
	for i := range 6 { // 6..9 are missing
		client.Set(ctx, fmt.Sprintf("x:{t%d}:a", i), fmt.Sprint("value ", i), 0)
		client.Set(ctx, fmt.Sprintf("x:{t%d}:b", i), "\x00\r\n$5", 0)
	}
	client.LPush(ctx, "x:{t0}:list", "1")
	l := patientLimiter(t, client, settings{Lanes: 1})
	r := compile(t, rule.Spec{Rate: "1/day", Burst: 1000})
	testenv.Together(300, func(i int) {
		n := i % 10
		tenant := fmt.Sprint("t", n)
		req := Request{Tenant: tenant, Charges: []Charge{{Rule: r}}}
		var want []string
		if i%3 > 0 {
			req.With = readsOf(t, tenant, "x:{"+tenant+"}:a", "x:{"+tenant+"}:b", "x:{"+tenant+"}:list")
			want = []string{"", "", ""}
			if n < 6 {
				want = []string{fmt.Sprint("value ", n), "\x00\r\n$5", ""}
			}
		}
		do := l.Consume
		if i%2 == 0 {
			do = l.Peek
		}
		d, err := do(ctx, req)
		assert.True(t, err == nil && d.Allowed && !d.Degraded, "%s: %+v, %v", tenant, d, err)
		if req.With == nil {
			return
		}
		assert.Equal(t, want, req.With.Values, tenant)
		req.With.Values = nil
		assert.NoError(t, l.store.Read(ctx, req.With), tenant)
		assert.Equal(t, want, req.With.Values, tenant)
	})
}

func TestConsume_With_RedisAway_NoValues(t *testing.T) {
	t.Parallel()
	r := compile(t, rule.Spec{Rate: "1/day", Burst: 10})
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: r}}, With: readsOf(t, "acme", "{acme}")}
	for name, l := range map[string]*Limiter{
		"local": patientLimiter(t, nil, settings{}), "away": away(t, settings{}, func(*Limiter) {}),
	} {
		d := mustPeek(t, l, req)
		assert.True(t, req.With.Values == nil, "%s: %+v", name, d)
		if l.store == nil {
			continue
		}
		assert.ErrorIs(t, l.store.Read(t.Context(), req.With), redisstore.ErrAway, "%s", name)
	}
}

// readsOf returns reads of keys, which must be valid.
func readsOf(t testing.TB, tag string, keys ...string) *redisstore.Reads {
	t.Helper()
	return testenv.Must(t).Get(redisstore.NewReads(tag, keys))
}
