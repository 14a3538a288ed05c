package pg

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/clock"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// steady contains the results of the operations that were made while clocks stepped.
type steady struct {
	mu   sync.Mutex
	done map[string]int64 // by key: the units that remained after the operation
}

// load debits the tenants one after another until ctx is cancelled. It sends every fourth request twice. It returns
// the errors of all calls that failed.
func load(ctx context.Context, b *bundle, tenants int, into *steady) (errs []error) {
	for n := 0; ctx.Err() == nil; n++ {
		tenant := fmt.Sprint("t", n%tenants)
		key := fmt.Sprintf("%s/load/%d", tenant, n)
		d, err := Do(b.t.Context(), b.Ledger, debitOf(tenant, key, 1))
		if err != nil {
			errs = append(errs, fmt.Errorf("debit %s: %w", key, err))
			continue
		}
		into.mu.Lock()
		into.done[key] = d.Items[0].Remaining
		into.mu.Unlock()
		if n%4 == 0 {
			if again, err := Do(b.t.Context(), b.Ledger, debitOf(tenant, key, 1)); err != nil || !again.Replayed {
				errs = append(errs, fmt.Errorf("retry of %s: %+v, %w", key, again, err))
			}
		}
	}
	return errs
}

// goesOn waits until n more operations have been answered.
func (s *steady) goesOn(t *testing.T, n int) {
	t.Helper()
	answered := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.done)
	}
	from := answered()
	testenv.Eventually(t, func() bool { return answered() >= from+n }, n, " more answers")
}

// replayAll sends every operation again, which must get the same answer.
func (s *steady) replayAll(b *bundle, l *Ledger) {
	b.t.Helper()
	for key, remaining := range s.done {
		tenant, _, _ := strings.Cut(key, "/")
		d, err := Do(b.t.Context(), l, debitOf(tenant, key, 1))
		if err != nil || !d.Replayed || d.Items[0].Remaining != remaining {
			b.t.Errorf("replay of %s: %+v, %v; remaining was %d", key, d, err, remaining)
			return
		}
	}
}

// PostgreSQL's clock steps under load and is later set right. No period is closed or opened, nothing expires, and
// every request and retry is answered. Afterwards no row has an instant of the wrong clock.
func TestClock_PostgresSteps_NothingExpires(t *testing.T) {
	t.Parallel()
	server := testenv.PostgresWithClock(t)
	for name, by := range map[string]time.Duration{"forward 10 days": 240 * time.Hour, "back 1 hour": -time.Hour, "back 10 days": -240 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			b := newBundleOn(t, copyOf(t, server.URL))
			const tenants = 10
			b.several(tenants, 1_000_000)
			done := &steady{done: map[string]int64{}}
			ctx, stop := context.WithCancel(t.Context())
			var failed []error
			var working sync.WaitGroup
			working.Go(func() { failed = load(ctx, b, tenants, done) })
			done.goesOn(t, 2*tenants)
			server.Shift(by)
			late := openLedger(t, b.url) // this instance starts during the step
			done.goesOn(t, 2*tenants)
			b.roll()
			for i := range tenants {
				b.on(late).mustDebit(debitOf(fmt.Sprint("t", i), fmt.Sprintf("t%d/late", i), 1))
			}
			server.Shift(0)
			done.goesOn(t, 2*tenants)
			stop()
			working.Wait()
			assert.Empty(t, failed)
			done.replayAll(b, b.Ledger)
			done.replayAll(b, late)
			assert.Zero(t, one[int](b, "SELECT count(*) FROM periods"), "closed periods")
			const expired = "SELECT coalesce(sum(amount), 0) FROM entries WHERE kind = 'expire'"
			assert.Zero(t, one[int](b, expired), "expired units")
			assert.Zero(t, one[int](b, "SELECT count(*) FROM entries WHERE created_at > now()"), "entries ahead")
			var used int64
			for i := range tenants {
				bal := b.mustBalance(fmt.Sprint("t", i), "api_calls")
				used += bal.Used
				assert.True(t, bal.Remaining == 1_000_000-bal.Used && bal.Granted == 1_000_000,
					"tenant t%d: %+v", i, bal)
			}
			wantEqual(t, "used", used, int64(len(done.done)+tenants))
			b.mustVerify()
		})
	}
}

// copyOf copies the database at databaseURL, to which no session is connected, and returns the URL of the copy.
func copyOf(t *testing.T, databaseURL string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	require.NoError(t, err)
	from := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	maintenance := (&bundle{t: t, url: u.String()}).another()
	name := "copy_" + strings.ToLower(rand.Text())
	maintenance.exec("CREATE DATABASE " + name + " TEMPLATE " + pgx.Identifier{from}.Sanitize())
	u.Path = "/" + name
	return u.String()
}

// clockOf returns a function that sets the clock of an instance's Config: the machine's clock plus a number of
// nanoseconds that the test can change.
func clockOf(by *atomic.Int64, skewMax time.Duration) func(*Config) {
	return func(c *Config) {
		c.Clock = clock.New(clock.Config{SkewMax: skewMax, Wall: func() time.Time { return time.Now().Add(time.Duration(by.Load())) }})
	}
}

// The clock of one instance is wrong. This instance decides by the earlier of its clock and PostgreSQL's, so no
// period closes too early. The other instance is not affected.
func TestClock_InstanceWrong_OtherUnaffected(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{40 * 24 * time.Hour, -40 * 24 * time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			b := newBundle(t).simple("acme", 100)
			var wrong atomic.Int64
			wrong.Store(int64(by))
			other := openLedger(t, b.url, clockOf(&wrong, 0))
			for i, l := range []*Ledger{other, b.Ledger, other, b.Ledger} {
				key := fmt.Sprint("k", i)
				d := b.on(l).mustDebit(debitOf("acme", key, 1))
				require.EqualValues(t, 99-i, d.Items[0].Remaining, "remaining after debit %d", i)
				assert.False(t, time.Since(d.AsOf).Abs() > time.Minute && (by > 0 || i > 0),
					"debit %d is of %s", i, d.AsOf)
				for _, again := range []*Ledger{b.Ledger, other} {
					assert.True(t, b.on(again).mustDebit(debitOf("acme", key, 1)).Replayed, "retry of debit %d", i)
				}
			}
			b.on(other).roll()
			ahead := time.Now().Add(time.Hour) // by the earlier clock, this instant is in the future
			_, err := other.RunRoll(t.Context(), &ahead, func(Roll) {})
			wantCode(t, err, errcode.InvalidArgument)
			bal := b.mustBalance("acme", "api_calls")
			assert.True(t, bal.Used == 4 && bal.Remaining == 96 && bal.Granted == 100, bal)
			b.mustVerify()
		})
	}
}

// PostgreSQL's clock and the instance's clock are wrong, by different amounts. Decisions use the earlier clock.
// Retries are answered while the clocks are wrong and after they are right again.
func TestClock_BothWrong_EarlierDecides(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	moved := testenv.MoveClock(t, url)
	var wrong atomic.Int64
	b := newBundleOn(t, url, clockOf(&wrong, 0)).simple("acme", 1000)
	keys := 0
	round := func(database, instance time.Duration) {
		t.Helper()
		moved.Set(time.Now().Add(database))
		wrong.Store(int64(instance))
		for range 3 {
			keys++
			d := b.mustDebit(debitOf("acme", fmt.Sprint("k", keys), 1))
			require.False(t, d.Replayed, "PostgreSQL %s, instance %s", database, instance)
		}
		for i := 1; i <= keys; i++ {
			d := b.mustDebit(debitOf("acme", fmt.Sprint("k", i), 1))
			require.True(t, d.Replayed, "PostgreSQL %s, instance %s: retry of k%d", database, instance, i)
		}
	}
	const day = 24 * time.Hour
	for _, step := range [][2]time.Duration{
		{0, 0},
		{35 * day, 5 * time.Second},
		{-3 * day, 40 * day},
		{70 * day, -2 * day},
		{-40 * day, -time.Hour},
		{29 * time.Second, 0},
		{31 * time.Second, 0},
		{-31 * time.Second, 0},
		{0, 0},
	} {
		round(step[0], step[1])
	}
	assert.Zero(t, one[int](b, "SELECT count(*) FROM periods"), "closed periods")
	assert.Zero(t, one[int](b, "SELECT count(*) FROM entries WHERE kind = 'expire'"), "expired grants")
	bal := b.mustBalance("acme", "api_calls")
	assert.True(t, bal.Used == int64(keys) && bal.Remaining == int64(1000-keys), "after %d debits: %+v", keys, bal)
	b.mustVerify()
}

// If the configuration trusts PostgreSQL's clock alone, a step ahead closes periods and writes entries of future
// months. After the clock is set back, every retry is answered, by an instance that has seen the step and by an
// instance that has not.
func TestClock_PostgresTrusted_RetriesAnsweredAfterStep(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	moved := testenv.MoveClock(t, url)
	var right atomic.Int64
	b := newBundleOn(t, url, clockOf(&right, 1<<63-1))
	other := openLedger(t, b.url, clockOf(&right, 1<<63-1))
	b.simple("acme", 1000)
	b.on(other).mustGrant("acme", "top", "credits", 50)
	moved.Advance(60 * 24 * time.Hour)
	d := b.mustDebit(debitOf("acme", "ahead", 7))
	require.GreaterOrEqual(t, time.Until(d.AsOf), 50*24*time.Hour)
	moved.Advance(-60 * 24 * time.Hour)
	for i, l := range []*Ledger{other, b.Ledger, openLedger(t, b.url)} {
		assert.True(t, b.on(l).mustDebit(debitOf("acme", "ahead", 7)).Replayed, "instance %d: retry", i)
		moved := &ledger.Debit{Tenant: "acme", Key: "ahead", Items: []ledger.Item{{Meter: "credits", Amount: 7}}}
		wantRefusal(b.on(l), errcode.IdempotencyKeyReused, moved)
	}
	b.mustVerify()
}

// The metric and the ledger's state show the difference between the clocks, with its sign. They show it even if
// nobody uses the ledger.
func TestClock_Skew_IsShownWhileIdle(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	moved := testenv.MoveClock(t, url)
	registry := prometheus.NewRegistry()
	openLedger(t, url, func(c *Config) { c.Metrics = registry })
	shown := func(want time.Duration, disagree float64) {
		t.Helper()
		moved.Set(time.Now().Add(want))
		testenv.Eventually(t, func() bool {
			skew, state := gauge(t, registry, "quotasvc_ledger_clock_skew_seconds"), gauge(t, registry, "quotasvc_ledger_clocks_disagree")
			return state == disagree && math.Abs(skew-want.Seconds()) < 1
		}, "the skew of ", want)
	}
	shown(0, 0)
	shown(240*time.Hour, 1)
	shown(-time.Hour, 1)
	shown(0, 0)
}

func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// If a hold is made while a clock is behind, its duration starts at the instant of its balance's newest entry. So the
// hold does not end at once.
func TestClock_InstanceBehind_HoldLasts(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 100)
	b.mustDebit(debitOf("acme", "before", 1))
	var behind atomic.Int64
	behind.Store(int64(-time.Hour))
	slow := b.on(openLedger(t, b.url, clockOf(&behind, 0)))
	h := &ledger.Hold{Tenant: "acme", Key: "h", HoldID: "h", TTL: 10 * time.Minute, Items: []ledger.Item{{Meter: "api_calls", Amount: 5}}}
	made := mustDo(slow, h)
	wantEqual(t, "life of the hold", made.ExpiresAt.Sub(made.AsOf), h.TTL)
	for i, instance := range []*bundle{slow, b} {
		instance.mustDebit(debitOf("acme", fmt.Sprint("after", i), 1))
		wantEqual(t, fmt.Sprint("held after debit ", i), b.mustBalance("acme", "api_calls").Held, 5)
	}
	longer := mustDo(slow, &ledger.HoldChange{
		Tenant: "acme", Key: "x", HoldID: "h", Action: ledger.ActionExtend, TTL: 30 * time.Minute,
	})
	wantEqual(t, "life of the hold after the extension", longer.ExpiresAt.Sub(longer.AsOf), 30*time.Minute)
	b.mustVerify()
}
