package redisstore

import (
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// count returns how often a log has the text.
func count(log *testenv.Log, text string) int { return strings.Count(log.String(), text) }

func evictionWatchOn(t *testing.T, client redis.UniversalClient) (*EvictionWatch, *testenv.Log) {
	t.Helper()
	log := &testenv.Log{}
	w := NewEvictionWatch(storeOn(t, client, Config{}), slog.New(slog.NewTextHandler(log, nil)))
	w.every = 10 * time.Millisecond
	t.Cleanup(func() { _ = w.Stop(t.Context()) })
	return w, log
}

func setPolicy(t *testing.T, c *redis.Client, policy string) {
	t.Helper()
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory-policy", policy).Err())
}

// lookPatiently is like Look, without its time limit, which a busy machine may exceed.
func (w *EvictionWatch) lookPatiently(t *testing.T) error {
	t.Helper()
	require.True(t, w.look(t.Context()), "a master did not answer")
	return w.Found()
}

func TestEviction_EveryPolicyButNoeviction_IsNamedWithWhatToDo(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	client := patientClient(t, server.Options())
	w, _ := evictionWatchOn(t, client)
	assert.NoError(t, w.lookPatiently(t), "noeviction")
	for _, policy := range []string{"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"} {
		setPolicy(t, client, policy)
		err := w.lookPatiently(t)
		if err == nil {
			t.Errorf("%s is accepted", policy)
			continue
		}
		for _, part := range []string{server.Addr, "maxmemory-policy " + policy, "a full bucket", "Set maxmemory-policy noeviction"} {
			assert.Contains(t, err.Error(), part, "%s: %q does not say %q", policy, err, part)
		}
	}
	assert.Equal(t, 1.0, testutil.ToFloat64(w.store.metrics.evicting), "the metric")
}

// TestEviction_PolicyChanges_ToldOnce: first the policy changes, then the server restarts with another policy. Each of
// these events is logged once.
func TestEviction_PolicyChanges_ToldOnce(t *testing.T) {
	t.Parallel()
	client := patientClient(t, testenv.RedisPrivate(t).Options())
	w, log := evictionWatchOn(t, client)
	require.NoError(t, w.lookPatiently(t))
	w.Start()
	for n := 1; n <= 2; n++ {
		setPolicy(t, client, "volatile-ttl")
		testenv.Eventually(t, func() bool { return w.Found() != nil && count(log, "may evict keys") == n })
		setPolicy(t, client, noEviction)
		testenv.Eventually(t, func() bool { return w.Found() == nil && count(log, "no longer evicts keys") == n })
	}
	assert.Equal(t, 2, count(log, "may evict keys"), "lines for two changes")
}

// TestEviction_RedisAway_StartIsNotRefused: while Redis is away, a start is not refused, and an earlier finding stays
// valid.
func TestEviction_RedisAway_StartIsNotRefused(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	client := patientClient(t, server.Options())
	w, _ := evictionWatchOn(t, client)
	server.Kill()
	began := time.Now()
	assert.NoError(t, w.Look(t.Context()), "away")
	took := time.Since(began)
	assert.True(t, took <= 10*evictionTimeout, "a start waited %s", took)
	server.Start()
	setPolicy(t, client, "allkeys-lru")
	assert.True(t, w.lookPatiently(t) != nil, "it is not found when Redis is there")
	server.Kill()
	assert.True(t, !w.look(t.Context()) && w.Found() != nil, "it is forgotten while Redis is away")
}

// TestEviction_InfoForbidden_IsUnknown: a user without the right to run INFO must not stop the service.
func TestEviction_InfoForbidden_IsUnknown(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	require.NoError(t, patientClient(t, server.Options()).Do(t.Context(), "ACL", "SETUSER", "limited", "on", ">pw", "~*", "&*", "+@all", "-info").Err())
	o := server.Options()
	o.Username, o.Password = "limited", "pw"
	w, log := evictionWatchOn(t, patientClient(t, o))
	for range 2 {
		assert.NoError(t, w.lookPatiently(t))
	}
	if n := testutil.ToFloat64(w.store.metrics.policyUnknown); n != 1 || count(log, "does not report its maxmemory-policy") != 1 {
		t.Errorf("the metric is %v, and %d lines say so", n, count(log, "does not report its maxmemory-policy"))
	}
}

// TestEviction_Cluster_EveryMaster checks that the error names the master whose policy differs.
func TestEviction_Cluster_EveryMaster(t *testing.T) {
	t.Parallel()
	c := testenv.RedisClusterPrivate(t)
	client := testenv.CloseAtEnd(t, testenv.Must(t).Get(NewClient(c.URL)))
	w, _ := evictionWatchOn(t, client)
	testenv.Eventually(t, func() bool { return w.look(t.Context()) })
	require.NoError(t, w.Found())
	setPolicy(t, c.Client(c.Masters[1]), "volatile-lru")
	setPolicy(t, c.Client(c.Replicas[0]), "volatile-lru") // a replica itself deletes no keys
	testenv.Eventually(t, func() bool { return w.look(t.Context()) })
	found, ok := errors.AsType[*EvictionError](w.Found())
	if !ok || len(found.Masters) != 1 || found.Masters[0].Node != c.Masters[1].Addr || found.Masters[0].Policy != "volatile-lru" {
		t.Errorf("%v", w.Found())
	}
}

// TestEviction_SentinelFailover_NewMasterIsAsked: after a failover, the policy of the promoted replica counts.
func TestEviction_SentinelFailover_NewMasterIsAsked(t *testing.T) {
	t.Parallel()
	s := testenv.RedisSentinelsPrivate(t)
	client := testenv.CloseAtEnd(t, testenv.Must(t).Get(NewClient(s.URL)))
	w, log := evictionWatchOn(t, client)
	setPolicy(t, patientClient(t, s.Replica.Options()), "allkeys-lru")
	testenv.Eventually(t, func() bool { return w.look(t.Context()) })
	require.NoError(t, w.Found())
	w.Start()
	s.Master.Kill()
	s.AwaitMaster(s.Replica)
	testenv.Eventually(t, func() bool { return w.Found() != nil && count(log, "may evict keys") == 1 })
	assert.ErrorContains(t, w.Found(), s.Replica.Addr)
}

// TestEviction_OldRedis_OneLineSaysSo: the service works with an old Redis as far as that one knows the commands, so it
// starts.
func TestEviction_OldRedis_OneLineSaysSo(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	o := server.Options()
	o.Addr = testenv.Disguise(t, o.Addr, regexp.MustCompile(`redis_version:\d`), "redis_version:5")
	w, log := evictionWatchOn(t, patientClient(t, o))
	for range 2 {
		assert.NoError(t, w.lookPatiently(t))
	}
	assert.Equal(t, 1, count(log, "redis is older than the versions that quotasvc supports"), "%s", log)
	assert.NotContains(t, strings.TrimSpace(log.String()), "\n")
}
