package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// evictBy sets the eviction policy of a private Redis.
func evictBy(t *testing.T, server *testenv.RedisServer, policy string) {
	t.Helper()
	c := testenv.CloseAtEnd(t, redis.NewClient(server.Options()))
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory-policy", policy).Err())
}

// TestStart_RedisEvicts_Refused: the start fails with one line that names the node, the reason and the remedy. Here
// Redis has no maxmemory. The start fails nevertheless, because maxmemory can be set at any time.
func TestStart_RedisEvicts_Refused(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	evictBy(t, server, "allkeys-lru")
	env := append(backends(t), "QUOTASVC_REDIS_URL="+server.URL)
	status, stdout, log := tool(t, env, serveFree...)
	assert.True(t, status == 1 && !strings.Contains(stdout, "API "), "status %d: %s\n%s", status, stdout, log)
	for _, part := range []string{server.Addr, "maxmemory-policy allkeys-lru", "an evicted bucket is a full bucket", "maxmemory-policy noeviction"} {
		assert.NotZero(t, strings.Count(strings.ToLower(log), part), "the log does not say %q:\n%s", part, log)
	}
	evictBy(t, server, "noeviction")
	serve(t, env).stop()
}

// TestEviction_InOperation_ShownAndServed: an instance that runs when the policy changes continues to serve, and
// reports the problem.
func TestEviction_InOperation_ShownAndServed(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*testenv.RedisServer, []string) *instance{
		"the policy changes": func(server *testenv.RedisServer, env []string) *instance {
			in := serve(t, env).setUp(t, 1000)
			evictBy(t, server, "volatile-lru")
			return in
		},
		"redis was away at the start": func(server *testenv.RedisServer, env []string) *instance {
			server.Stop()
			in := serve(t, env).setUp(t, 1000)
			server.Start()
			evictBy(t, server, "volatile-lru")
			return in
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testenv.RedisPrivate(t)
			in := begin(server, append(backends(t), "QUOTASVC_REDIS_URL="+server.URL))
			testenv.Eventually(t, func() bool {
				return strings.Contains(string(in.ask(t, "/readyz").body), "maxmemory-policy volatile-lru")
			}, "the body of /readyz says so")
			got := in.ask(t, "/readyz")
			assert.True(t, got.status == 200 && strings.Contains(string(got.body), `"warnings":{"redis_eviction":`),
				"/readyz: %s", got)
			assert.Equal(t, 503, in.ask(t, "/readyz?strict=1").status, "strict") // the next instance would not start
			assert.Contains(t, in.metrics(t), "quotasvc_redis_evicting_masters 1\n", "the metric does not say so")
			in.logged("redis may evict keys", 1)
			in.do(t, http.StatusOK, "POST", "/v1/debits", "d1", debitOf("acme", "api_calls", 1))
			evictBy(t, server, "noeviction")
			testenv.Eventually(t, func() bool { return in.ask(t, "/readyz?strict=1").status == 200 }, "all is well")
			in.stop()
		})
	}
}
