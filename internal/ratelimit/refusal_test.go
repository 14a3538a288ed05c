package ratelimit

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// unwritable returns several states in which a server answers but refuses writes: harm begins the state, heal ends
// it.
func unwritable(ctx context.Context) map[string]struct{ harm, heal func(*redis.Client) error } {
	return map[string]struct{ harm, heal func(*redis.Client) error }{
		"out of memory": {
			func(c *redis.Client) error { return c.ConfigSet(ctx, "maxmemory", "1").Err() },
			func(c *redis.Client) error { return c.ConfigSet(ctx, "maxmemory", "0").Err() },
		},
		"read-only replica": {
			func(c *redis.Client) error { return c.ReplicaOf(ctx, "127.0.0.1", "1").Err() },
			func(c *redis.Client) error { return c.ReplicaOf(ctx, "NO", "ONE").Err() },
		},
		"too few replicas": {
			func(c *redis.Client) error { return c.ConfigSet(ctx, "min-replicas-to-write", "1").Err() },
			func(c *redis.Client) error { return c.ConfigSet(ctx, "min-replicas-to-write", "0").Err() },
		},
	}
}

// TestPeek_FromReadOnlyRedis_KeepsLocalCharges: a server that cannot write still answers peeks until the breaker
// opens. Its buckets lack the charges that this process made meanwhile. A peek must show these charges.
func TestPeek_FromReadOnlyRedis_KeepsLocalCharges(t *testing.T) {
	t.Parallel()
	for name, set := range unwritable(context.Background()) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testenv.RedisPrivate(t)
			client := patientClient(t, server.Options())
			require.NoError(t, set.harm(client))
			for _, kind := range kinds() {
				l := patientLimiter(t, patientClient(t, server.Options()), settings{})
				req := requestOf(Charge{Rule: compile(t, rule.Spec{ID: "rule-" + kind.String(), Kind: kind.String(), Rate: "3/31d"})})
				req.Fresh = true
				admitted, right := 0, 0
				for range 5 - 1 {
					for range 3 {
						if remaining(t, l, req) == int64(3-admitted) {
							right++
						}
					}
					if mustConsume(t, l, req).Allowed {
						admitted++
					}
				}
				assert.True(t, admitted == 3 && right == 3*(5-1),
					"%s: %d admitted, %d peeks showed what is left; want 3, %d", kind, admitted, right, 3*(5-1))
			}
			require.NoError(t, set.heal(client))
			l := patientLimiter(t, patientClient(t, server.Options()), settings{})
			r := compile(t, rule.Spec{ID: "rule-token_bucket", Rate: "3/31d"})
			if d := mustConsume(t, l, requestFor("other", r, "", 1)); d.Mode != ModeRedis || d.Verdicts[0].Remaining != 2 {
				t.Errorf("%+v; want Redis' level", d)
			}
			testenv.Eventually(t, func() bool {
				d := mustPeek(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: r}}, Fresh: true})
				return d.Mode == ModeRedis && d.Verdicts[0].Remaining == 0
			}, "redis gets the charges")
			server.Kill()
			v := mustPeek(t, l, requestFor("other", r, "", 1)).Verdicts[0]
			assert.True(t, v.Remaining == 2, "%d left, want 2: Redis' last word", v.Remaining)
		})
	}
}

// TestOutage_ServerRejectsWrites_AwayUntilItWrites: peeks succeed on a server that rejects writes. Nevertheless the
// breaker opens and stays open. While it is open, requests are charged in this process, and peeks show this process's
// level. When the server accepts writes again, a peek can close the breaker.
func TestOutage_ServerRejectsWrites_AwayUntilItWrites(t *testing.T) {
	t.Parallel()
	for name, set := range unwritable(context.Background()) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testenv.RedisPrivate(t)
			client := patientClient(t, server.Options())
			clock, log := &movableClock{}, &testenv.Log{}
			l := patientLimiter(t, patientClient(t, server.Options()), settings{Now: clock.now, Log: slog.New(slog.NewTextHandler(log, nil))})
			req := requestOf(Charge{Rule: compile(t, rule.Spec{Rate: "100/31d"})})
			require.NoError(t, set.harm(client))
			for range 5 {
				for range 20 {
					mustPeek(t, l, req)
				}
				mustConsume(t, l, req)
			}
			require.True(t, isAway(l), "it refuses every write, and is not away")
			for range 4 {
				clock.advance(redisstore.RetryAfter)
				mustPeek(t, l, req) // a probe
				if v := mustPeek(t, l, req).Verdicts[0]; !isAway(l) || v.Mode != ModeLocal || v.Remaining != 100-5 {
					t.Fatalf("it refuses every write: %+v", v)
				}
			}
			require.NoError(t, set.heal(client))
			clock.advance(redisstore.RetryAfter)
			mustPeek(t, l, req)
			v := mustPeek(t, l, req).Verdicts[0]
			assert.True(t, !isAway(l) && v.Mode == ModeRedis, "it writes again: %+v", v)
			lines := log.Lines()
			assert.True(t, len(lines) == 2 && strings.Contains(lines[0], "away") && strings.Contains(lines[1], "back"),
				"%q; want a line for away and one for back", lines)
		})
	}
}

// TestOutage_ServerWritesNowAndThen_IsNotAway: a server near its memory limit refuses some writes and accepts others.
// It does not count as away.
func TestOutage_ServerWritesNowAndThen_IsNotAway(t *testing.T) {
	server, client := parallelServer(t)
	set := unwritable(t.Context())["out of memory"]
	bucket, jobs := compile(t, rule.Spec{Rate: "100/31d"}), compile(t, rule.Spec{ID: "jobs", Kind: "concurrency", Burst: 100})
	for name, write := range map[string]func(*Limiter) Mode{
		"consumes": func(l *Limiter) Mode { return mustConsume(t, l, requestOf(Charge{Rule: bucket})).Mode },
		"leases":   func(l *Limiter) Mode { return mustAcquire(t, l, LeaseRequest{Tenant: "acme", Rule: jobs}).Mode },
	} {
		l := patientLimiter(t, patientClient(t, server.Options()), settings{})
		for i := range 5 + 2 {
			for n, change := range []func(*redis.Client) error{set.harm, set.heal} {
				require.NoError(t, change(client))
				mode, want := write(l), []Mode{ModeLocal, ModeRedis}[n]
				require.True(t, mode == want, "%s: write %d was decided by %s, want %s", name, 2*i+n, mode, want)
			}
		}
		assert.False(t, isAway(l), "%s: every other write is done, and it is away", name)
	}
}
