package ratelimit

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// concurrency returns a rule of kind concurrency.
func concurrency(t testing.TB, burst int64, change ...func(*rule.Spec)) *rule.Rule {
	t.Helper()
	spec := rule.Spec{ID: "exports", Kind: "concurrency", Burst: burst}
	for _, f := range change {
		f(&spec)
	}
	return compile(t, spec)
}

func mustAcquire(t testing.TB, l *Limiter, req LeaseRequest) Lease {
	t.Helper()
	return testenv.Must(t).Get(l.Acquire(context.Background(), req))
}

func mustCount(t testing.TB, l *Limiter, req LeaseRequest) Lease {
	t.Helper()
	return testenv.Must(t).Get(l.Count(context.Background(), req))
}

func mustRelease(t testing.TB, l *Limiter, id LeaseID) {
	t.Helper()
	require.NoError(t, l.Release(context.Background(), id))
}

func TestCompile_Concurrency(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec  rule.Spec
		burst int64
		ttl   time.Duration
	}{
		"burst only":      {rule.Spec{Burst: 5}, 5, time.Minute},
		"rate only":       {rule.Spec{Rate: "3/30s"}, 3, 30 * time.Second},
		"both":            {rule.Spec{Rate: "3/h", Burst: 7}, 7, time.Hour},
		"largest":         {rule.Spec{Burst: rule.MaxLeases}, rule.MaxLeases, time.Minute},
		"cost of a lease": {rule.Spec{Burst: 1, Cost: 1}, 1, time.Minute},
	} {
		c.spec.ID, c.spec.Kind = "exports", "concurrency"
		r, err := rule.Compile(c.spec)
		assert.True(t, err == nil && r.Kind == rule.KindConcurrency && r.Burst == c.burst && r.LeaseTTL() == c.ttl,
			"%s: %+v, %v", name, r, err)
	}
	for field, spec := range map[string]rule.Spec{
		"burst":            {},
		"cost":             {Burst: 2, Cost: 2},
		"rate":             {Rate: "3/100ms"},
		"on_backend_error": {Burst: 1, OnBackendError: "maybe"},
		"burst ":           {Burst: rule.MaxLeases + 1},
		"burst  ":          {Burst: -1},
		"rate ":            {Rate: "10001/min"},
		"rate  ":           {Rate: "3/2h"},
		"rate   ":          {Rate: "3/1500ms"},
		"rate    ":         {Rate: "three"},
	} {
		spec.ID, spec.Kind = "exports", "concurrency"
		_, err := rule.Compile(spec)
		got, ok := errors.AsType[*rule.FieldError](err)
		assert.True(t, ok && got.Field == strings.TrimSpace(field), "%+v: %v", spec, err)
	}
}

func TestAcquire_TakesConcurrencyRulesOnly(t *testing.T) {
	t.Parallel()
	l := patientLimiter(t, nil, settings{})
	_, err := l.Consume(t.Context(), Request{Tenant: "acme", Charges: []Charge{{Rule: concurrency(t, 1)}}})
	assert.Error(t, err, "consumed")
	for name, req := range map[string]LeaseRequest{
		"rule":         {Tenant: "acme", Rule: compile(t, rule.Spec{Rate: "1/s"})},
		"rule ":        {Tenant: "acme"},
		"rule  ":       {Tenant: "acme", Rule: &rule.Rule{Kind: rule.KindConcurrency}},
		"tenant":       {Tenant: "<acme>", Rule: concurrency(t, 1)},
		"dimension":    {Tenant: "acme", Rule: concurrency(t, 1), Dimension: "alice"},
		"ttl_seconds":  {Tenant: "acme", Rule: concurrency(t, 1), TTL: rule.MinLeaseTTL - 1},
		"ttl_seconds ": {Tenant: "acme", Rule: concurrency(t, 1), TTL: rule.MaxLeaseTTL + 1},
	} {
		for _, do := range []func(context.Context, LeaseRequest) (Lease, error){l.Acquire, l.Count} {
			if _, err := do(t.Context(), req); err == nil {
				t.Errorf("%s: accepted", name)
			} else if field, ok := errors.AsType[*rule.FieldError](err); !ok || field.Field != strings.TrimSpace(name) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestAcquire_UpToTheCapacity_ReleaseFreesOne(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		r := concurrency(t, 2)
		req := LeaseRequest{Tenant: "acme", Rule: r, TTL: time.Minute}
		first, second := mustAcquire(t, l, req), mustAcquire(t, l, req)
		assert.True(t, first.Held && second.Held && first.ID != second.ID && second.InUse == 2 && second.Remaining == 0 && second.Limit == 2 &&
			second.TTL == time.Minute, "%+v\n%+v", first, second)
		ahead := time.Until(first.ExpiresAt)
		assert.True(t, ahead >= 0 && ahead <= time.Minute+time.Second, "ends in %s", ahead)
		third := mustAcquire(t, l, req)
		assert.True(t, !third.Held && third.ID == (LeaseID{}) && third.InUse == 2 && third.RetryAfter > 0 &&
			third.RetryAfter <= leaseRetryMax, "beyond the capacity: %+v", third)
		n := mustCount(t, l, req)
		assert.True(t, !n.Held && n.InUse == 2 && n.ID == (LeaseID{}), "%+v", n)
		for _, other := range []LeaseRequest{
			{Tenant: "other", Rule: r},
			{Tenant: "acme", Rule: r, Dimension: rule.Dimension("alice")},
			{Tenant: "acme", Rule: concurrency(t, 2, func(s *rule.Spec) { s.ID = "imports" })},
			{Tenant: "acme", Rule: concurrency(t, 2, func(s *rule.Spec) { s.Shared = true })},
		} {
			got := mustAcquire(t, l, other)
			assert.True(t, got.Held && got.InUse == 1, "a bucket of its own: %+v", got)
		}
		mustRelease(t, l, first.ID)
		mustRelease(t, l, first.ID) // a second release
		got := mustAcquire(t, l, req)
		assert.True(t, got.Held && got.InUse == 2, "after a release: %+v", got)
		renewed, err := l.Renew(t.Context(), second.ID, r, time.Hour)
		assert.True(t, err == nil && renewed.Held && renewed.ID == second.ID && renewed.TTL == time.Hour &&
			renewed.InUse == 2, "%+v, %v", renewed, err)
		renewed, err = l.Renew(t.Context(), second.ID, r, 0)
		assert.True(t, err == nil && renewed.TTL == r.LeaseTTL(), "%+v, %v", renewed, err)
	})
}

func TestAcquire_SharedRule_TenantNamesOwnLeasesOnly(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		r := concurrency(t, 2, func(s *rule.Spec) { s.Shared = true })
		acme := mustAcquire(t, l, LeaseRequest{Tenant: "acme", Rule: r, Key: "1"})
		other := mustAcquire(t, l, LeaseRequest{Tenant: "other", Rule: r, Key: "1"})
		assert.True(t, !other.Replayed && other.InUse == 2, other)
		forged := acme.ID
		forged.Tenant = "other"
		forged.nonce[0]++
		mustRelease(t, l, forged)
		stolen := acme.ID
		stolen.Tenant = "thief"
		mustRelease(t, l, stolen)
		_, err := l.Renew(t.Context(), stolen, r, 0)
		assert.ErrorIs(t, err, ErrNoLease, "renewed")
		assert.EqualValues(t, 2, mustCount(t, l, LeaseRequest{Tenant: "any", Rule: r}).InUse)
	})
}

// TestAcquire_DeadHolder_LeaseEndsAtItsTime: a lease that its holder does not renew ends exactly at its ExpiresAt. A
// later renewal gets ErrNoLease.
func TestAcquire_DeadHolder_LeaseEndsAtItsTime(t *testing.T) {
	t.Parallel()
	now := worldStart
	clock := time.UnixMicro(now)
	for name, l := range map[string]*Limiter{
		"redis": patientLimiter(t, patientClient(t, testenv.Redis(t)), settings{redisNow: func() int64 { return now }}),
		"local": patientLimiter(t, nil, settings{Now: func() time.Time { return clock }}),
	} {
		advance := func(d time.Duration) { now, clock = now+d.Microseconds(), clock.Add(d) }
		rule := concurrency(t, 1)
		req := LeaseRequest{Tenant: "acme", Rule: rule, TTL: 3 * time.Second}
		dead := mustAcquire(t, l, req)
		denied := mustAcquire(t, l, req)
		assert.True(t, !denied.Held && denied.RetryAfter == 3*time.Second, "%s: %+v", name, denied)
		advance(3*time.Second - time.Microsecond)
		assert.False(t, mustAcquire(t, l, req).Held, "%s: given a microsecond early", name)
		advance(time.Microsecond)
		_, err := l.Renew(context.Background(), dead.ID, rule, 0)
		assert.ErrorIs(t, err, ErrNoLease, "%s: renewed after its end", name)
		got := mustAcquire(t, l, req)
		assert.True(t, got.Held && got.InUse == 1, "%s: %+v", name, got)
		_, err = l.Renew(context.Background(), dead.ID, rule, 0)
		assert.ErrorIs(t, err, ErrNoLease, "%s: renewed while another holds it", name)
		mustRelease(t, l, dead.ID) // must not end the other lease
		assert.False(t, mustAcquire(t, l, req).Held, "%s: a dead lease gave back a living one", name)
		assert.NoError(t, l.Release(context.Background(), LeaseID{Tenant: "acme", Rule: "nonsense"}), "%s", name)
	}
}

// TestLeases_ClockSetBack_KeepsNoDeadLease: when Redis's clock is set back, the script moves the ends of the bucket's
// leases. Otherwise a dead holder's lease would last until the clock has caught up. Every call after the first is
// denied or only reads, so no other write can repair the bucket.
func TestLeases_ClockSetBack_KeepsNoDeadLease(t *testing.T) {
	client := parallelClient(t)
	for i, step := range []time.Duration{time.Microsecond, 4 * time.Second, 5 * time.Second, 5*time.Second + time.Microsecond, time.Hour, 24 * time.Hour} {
		now, metrics := worldStart, NewMetrics(nil)
		l := patientLimiter(t, client, settings{redisNow: func() int64 { return now }, Metrics: metrics})
		req := LeaseRequest{Tenant: fmt.Sprint("acme-", i), Rule: concurrency(t, 1), TTL: time.Minute}
		mustAcquire(t, l, req)
		now -= step.Microseconds()
		started := now
		for !mustAcquire(t, l, req).Held {
			now += 1_000_000
			require.True(t, now-started <= 70_000_000, "%s back: denied for more than the lease and 5 s", step)
		}
		waited := time.Duration(now-started) * time.Microsecond
		assert.True(t, waited >= time.Minute, "%s back: the lease ended after %s", step, waited)
		moved := testutil.ToFloat64(metrics.rebased) == 1
		assert.True(t, moved == (step > 5*time.Second), "%s back: moved %v", step, moved)
	}
}

// TestLeases_LargestBucket_SurvivesAClockStep: when the clock is set back, the script changes the ends of 10,000
// leases. This must not exceed the number of values that Lua's stack can hold.
func TestLeases_LargestBucket_SurvivesAClockStep(t *testing.T) {
	client := parallelClient(t)
	now := worldStart
	l := patientLimiter(t, client, settings{redisNow: func() int64 { return now }, MaxQueue: rule.MaxLeases})
	r := concurrency(t, rule.MaxLeases)
	req := LeaseRequest{Tenant: "acme", Rule: r, TTL: time.Hour}
	var given atomic.Int64
	testenv.Together(100, func(int) {
		for range rule.MaxLeases/100 + 1 {
			lease, err := l.Acquire(context.Background(), req)
			assert.NoError(t, err)
			if lease.Held {
				given.Add(1)
			}
		}
	})
	now -= time.Hour.Microseconds()
	n := mustCount(t, l, req)
	require.EqualValues(t, rule.MaxLeases, given.Load(), "given")
	require.True(t, n.InUse == rule.MaxLeases && !n.Held, n)
	now += time.Hour.Microseconds() - 1
	assert.EqualValues(t, rule.MaxLeases, mustCount(t, l, req).InUse)
	now++
	assert.Zero(t, mustCount(t, l, req).InUse)
}

// TestAcquire_Concurrent_NeverMoreThanTheCapacity counts the holders of leases in real time. They use two limiters on
// one Redis.
func TestAcquire_Concurrent_NeverMoreThanTheCapacity(t *testing.T) {
	t.Parallel()
	const capacity = 5
	server := testenv.Redis(t)
	rule := concurrency(t, capacity)
	limiters := []*Limiter{
		patientLimiter(t, patientClient(t, server), settings{}), patientLimiter(t, patientClient(t, server), settings{}),
	}
	var holding, most, given atomic.Int64
	testenv.Together(16, func(c int) {
		l := limiters[c%len(limiters)]
		for i := range 60 {
			lease, err := l.Acquire(context.Background(), LeaseRequest{Tenant: "acme", Rule: rule, Key: fmt.Sprintf("%d-%d", c, i)})
			if !assert.NoError(t, err) {
				return
			}
			if !lease.Held {
				continue
			}
			n := holding.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			given.Add(1)
			again, err := l.Acquire(context.Background(), LeaseRequest{Tenant: "acme", Rule: rule, Key: fmt.Sprintf("%d-%d", c, i)})
			assert.True(t, err == nil && again.Replayed && again.ID == lease.ID, "asked again: %+v, %v", again, err)
			_, err = l.Renew(context.Background(), lease.ID, rule, 0)
			assert.NoError(t, err)
			holding.Add(-1)
			assert.NoError(t, l.Release(context.Background(), lease.ID))
		}
	})
	assert.True(t, most.Load() <= capacity && most.Load() >= 2 && given.Load() >= 60,
		"at most %d held at a time, %d in all; the capacity is %d", most.Load(), given.Load(), capacity)
	assert.Zero(t, mustCount(t, limiters[0], LeaseRequest{Tenant: "acme", Rule: rule}).InUse, "all are given back")
}

func TestAcquire_LoweredCapacity_TakesNothingAway(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		req := LeaseRequest{Tenant: "acme", Rule: concurrency(t, 3)}
		var held []Lease
		for range 3 {
			held = append(held, mustAcquire(t, l, req))
		}
		req.Rule = concurrency(t, 1)
		got := mustAcquire(t, l, req)
		assert.True(t, !got.Held && got.InUse == 3 && got.Remaining == 0 && got.Limit == 1, got)
		for _, lease := range held {
			_, err := l.Renew(t.Context(), lease.ID, req.Rule, 0)
			assert.NoError(t, err, "renewed under a lower capacity")
			assert.False(t, mustAcquire(t, l, req).Held, "given beyond the capacity")
			mustRelease(t, l, lease.ID)
		}
		assert.True(t, mustAcquire(t, l, req).Held, "not given when all are back")
	})
}

func TestAcquire_Shadow_AlwaysGrantsAndCounts(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		r := concurrency(t, 1, func(s *rule.Spec) { s.Shadow = true })
		req := LeaseRequest{Tenant: "acme", Rule: r}
		first, second := mustAcquire(t, l, req), mustAcquire(t, l, req)
		assert.True(t, first.Held && !first.Unknown && second.Held && second.Unknown && second.InUse == 1 &&
			second.TTL == time.Minute, "%+v\n%+v", first, second)
		got := testutil.ToFloat64(l.metrics.leases.WithLabelValues("exports", "acquire", "would_deny", modeOf(l)))
		assert.True(t, got == 1, "%v would be denied, want 1", got)
		for _, lease := range []Lease{first, second} {
			renewed, err := l.Renew(t.Context(), lease.ID, r, 0)
			assert.True(t, (err == nil || lease.ID != first.ID) && (err != nil || renewed.Held), "%+v, %v", renewed, err)
			mustRelease(t, l, lease.ID)
		}
		lease := mustAcquire(t, l, req)
		assert.True(t, !lease.Unknown && lease.InUse == 1, "%+v", lease)
	})
}

func modeOf(l *Limiter) string {
	if l.store == nil {
		return ModeLocal.String()
	}
	return ModeRedis.String()
}

func drawLeaseID(t *rapid.T) LeaseID {
	id := LeaseID{
		Tenant: rapid.StringMatching(testenv.NamePattern).Draw(t, "tenant"),
		Rule:   rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._:-]{0,127}`).Draw(t, "rule"),
		shared: rapid.Bool().Draw(t, "shared"), away: rapid.Bool().Draw(t, "away"),
		nonce: nonceOf(rapid.String().Draw(t, "key")), unsigned: rapid.Bool().Draw(t, "unsigned"),
	}
	if rapid.Bool().Draw(t, "dimension") {
		id.Dimension = rule.Dimension(rapid.String().Draw(t, "value"))
	}
	if !id.unsigned {
		id.Subject = rapid.StringMatching("|"+testenv.NamePattern).Draw(t, "subject")
		id.Address = rapid.SampledFrom([]string{"", "\xc0\x00\x02\x01", "0123456789abcdef"}).Draw(t, "address")
	}
	return id
}

func TestLeaseIDs_ParseReadsOnlyWhatTextWrites(t *testing.T) {
	t.Parallel()
	now := time.UnixMicro(worldStart)
	ids, later := NewLeaseIDs([]byte("key"), now.Add(1)), now.Add(1)
	rapid.Check(t, func(t *rapid.T) {
		id := drawLeaseID(t)
		text := ids.Text(id)
		require.True(t, len(text) <= 960, "%d characters", len(text))
		back, err := ids.Parse(text, now)
		require.NoError(t, err)
		require.Equal(t, id, back)
		_, err = ids.Parse(text, later)
		require.True(t, (err != nil) == id.unsigned, "later: %v", err)
		_, err = NewLeaseIDs([]byte("other"), now).Parse(text, now)
		require.Error(t, err, "it is read under another key")
		// A changed text is refused. The only exception: if unsigned ids are accepted, a changed text may be a valid
		// unsigned id. Then it must name a valid tenant and rule.
		forged := []byte(text)
		switch i := rapid.IntRange(0, len(text)-1).Draw(t, "at"); rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			forged[i] = rapid.Byte().Draw(t, "byte")
		case 1:
			forged = forged[:i]
		case 2:
			forged = append(forged, rapid.SampledFrom([]string{"A", "=", "\n", "AAAA"}).Draw(t, "tail")...)
		}
		other, err := ids.Parse(string(forged), now)
		if err != nil || string(forged) == text {
			return
		}
		require.True(t, other.unsigned && ids.Text(other) == string(forged) && bound.Name(other.Tenant) && bound.ID(other.Rule) &&
			strings.Count(other.key(), "{") == 1, "%q is read as %+v", forged, other)
	})
	for _, text := range []string{"", "A", "=", "EA", "IA", base64.RawURLEncoding.EncodeToString([]byte("\x10\xff")), strings.Repeat("A", 1<<16), "../../etc", "\x00"} {
		id, err := ids.Parse(text, now)
		assert.Error(t, err, "%q is read as %+v", text, id)
	}
}

// A retry gets the same id. A client cannot read the holder or the holder's address from an id.
func TestLeaseIDs_Text_SameForTheSameLeaseAndSealed(t *testing.T) {
	t.Parallel()
	ids := NewLeaseIDs([]byte("key"), time.Time{})
	id := LeaseID{Tenant: "acme", Rule: "exports", Subject: "ann", Address: "\xc0\x00\x02\x01", nonce: nonceOf("k")}
	text := ids.Text(id)
	raw, err := base64.RawURLEncoding.DecodeString(text)
	assert.True(t, err == nil && text == ids.Text(id), "%s, then %s, %v", text, ids.Text(id), err)
	for _, part := range []string{"acme", "exports", "ann", id.Address} {
		assert.NotContains(t, string(raw), part, "%q can be read in %q", part, raw)
	}
}

func TestRenew_LeaseOfAnotherRule_ErrNoLease(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		r := concurrency(t, 1)
		lease := mustAcquire(t, l, LeaseRequest{Tenant: "acme", Rule: r})
		for _, other := range []*rule.Rule{
			concurrency(t, 1, func(s *rule.Spec) { s.ID = "imports" }), concurrency(t, 1, func(s *rule.Spec) { s.Shared = true }),
		} {
			_, err := l.Renew(t.Context(), lease.ID, other, 0)
			assert.ErrorIs(t, err, ErrNoLease, other)
		}
		_, err := l.Renew(t.Context(), lease.ID, r, time.Millisecond)
		assert.Error(t, err, "a TTL of a millisecond is accepted")
	})
}

func TestLeaseMetrics_NameKnownRulesOnly(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	l := patientLimiter(t, nil, settings{Metrics: NewMetrics(reg)})
	lease := mustAcquire(t, l, LeaseRequest{Tenant: "acme", Rule: concurrency(t, 1)})
	assert.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP quotasvc_limit_leases_held Leases that this process granted or renewed and that were neither released here nor have ended.
# TYPE quotasvc_limit_leases_held gauge
quotasvc_limit_leases_held{rule="exports"} 1
`), "quotasvc_limit_leases_held"))
	mustRelease(t, l, lease.ID)
	forged := lease.ID
	forged.Rule = "made-up"
	mustRelease(t, l, forged)
	families := testenv.Must(t).Get(reg.Gather())
	for _, f := range families {
		text := f.String()
		assert.True(t, !strings.Contains(text, "made-up") && !strings.Contains(text, "acme"), text)
	}
}
