package ratelimit

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

func TestMain(m *testing.M) {
	redis.SetLogger(mute{}) // it has one for all clients, and outages make it talk
	// A client that could not connect looks again after a second, and only then sees that it has been closed.
	testenv.Main(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

type mute struct{}

func (mute) Printf(context.Context, string, ...any) {}

// patience replaces the production timeouts where a test asserts exact decisions: a busy machine must not turn them into
// degraded ones.
const patience = 20 * time.Second

// patientClient is a client as NewClient makes it, except for its patience.
func patientClient(t testing.TB, o *redis.Options) *redis.Client {
	t.Helper()
	opts := *o
	base := baseOptions()
	opts.MaxRetries = base.MaxRetries
	opts.DialerRetries = base.DialerRetries
	opts.ContextTimeoutEnabled = base.ContextTimeoutEnabled
	opts.PoolSize = base.PoolSize
	opts.PipelinePoolSize = base.PipelinePoolSize
	opts.DisableIdentity = base.DisableIdentity
	opts.MaintNotificationsConfig = base.MaintNotificationsConfig
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout, opts.PoolTimeout = patience, patience, patience, patience
	c := redis.NewClient(&opts)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// patientLimiter is a limiter with a budget that no test exhausts.
func patientLimiter(t testing.TB, client redis.UniversalClient, cfg Config) *Limiter {
	t.Helper()
	cfg.Budget = patience
	return limiterOn(t, client, cfg)
}

// limiterOn is a limiter that is stopped before its client is closed.
func limiterOn(t testing.TB, client redis.UniversalClient, cfg Config) *Limiter {
	t.Helper()
	l := New(client, cfg)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := l.Stop(ctx); err != nil {
			t.Error("stop:", err)
		}
	})
	return l
}

// compile is a rule that must be valid.
func compile(t testing.TB, spec rule.Spec) *rule.Rule {
	t.Helper()
	if spec.ID == "" {
		spec.ID = "rule"
	}
	r, err := rule.Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	return &r
}
