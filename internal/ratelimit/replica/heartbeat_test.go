package replica

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// pulse is a Heartbeat without a goroutine. The test sends its heartbeats.
type pulse struct {
	*Heartbeat

	t *testing.T
}

// pulses returns n pulses on one Redis. Their registrations stay in Redis for three minutes.
func pulses(t *testing.T, server *testenv.RedisServer, n int) []pulse {
	t.Helper()
	all := make([]pulse, n)
	for i := range all {
		all[i] = pulse{NewHeartbeat(storeOn(t, patientClient(t, server.Options())), Config{Every: time.Minute}), t}
	}
	return all
}

func (p pulse) beats(times int) {
	p.t.Helper()
	for range times {
		require.NoError(p.t, p.beat(context.Background()))
	}
}

func (p pulse) misses(times int) {
	p.t.Helper()
	for range times {
		require.Error(p.t, p.beat(context.Background()), "a beat without redis")
	}
}

func (p pulse) sees(want int) {
	p.t.Helper()
	if got := p.Replicas(); got.Live() != want || got.Count() != want || int(testutil.ToFloat64(p.cfg.Metrics.live)) != want {
		p.t.Fatalf("%d replicas, %d to divide by, want %d", got.Live(), got.Count(), want)
	}
}

// beatsAndSees sends one heartbeat and compares the number of replicas that it shows.
func (p pulse) beatsAndSees(want int) {
	p.t.Helper()
	p.beats(1)
	p.sees(want)
}

// killed makes a replica's last heartbeat in Redis so old (beatsMissed heartbeats) that the registration has expired.
func (p pulse) killed(client *redis.Client) {
	p.t.Helper()
	ctx := context.Background()
	old := client.Time(ctx).Val().Add(-beatsMissed * p.cfg.Every).UnixMicro()
	require.NoError(p.t, client.ZAddXX(ctx, replicasKey, redis.Z{Score: float64(old), Member: p.id}).Err())
}

func TestHeartbeat_ReplicasSeeEachOther(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	direct := patientClient(t, server.Options())
	all := pulses(t, server, 4)
	for i, p := range all[:3] { // a new replica sees all earlier ones
		p.beatsAndSees(i + 1)
	}
	all[0].beatsAndSees(3)
	all[1].beatsAndSees(3)
	// If a replica leaves, it is removed at once. The leave stays in Redis until all replicas have seen it.
	require.NoError(t, all[2].Stop(t.Context()))
	all[0].beatsAndSees(2)
	all[3].beatsAndSees(3)
	all[0].beatsAndSees(3)
	// A killed replica is dropped after confirmBeats heartbeats.
	all[3].killed(direct)
	all[0].beats(confirmBeats - 1)
	all[0].sees(3)
	all[0].beatsAndSees(2)
	// The replica was only frozen. When it continues, it counts again.
	all[3].beats(1)
	all[0].beatsAndSees(3)
}

// TestHeartbeat_RedisAway_LastReplicasStay: if a heartbeat is not answered, the last known replicas still count.
func TestHeartbeat_RedisAway_LastReplicasStay(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	all := pulses(t, server, 3)
	for _, p := range slices.Repeat(all, 2) {
		p.beats(1)
	}
	server.Kill()
	a := all[0]
	a.misses(2 * confirmBeats)
	a.sees(3)
	n := testutil.ToFloat64(a.cfg.Metrics.beatFailures)
	assert.True(t, n == 2*confirmBeats, "%v failures are counted", n)
	// Redis comes back empty. The first replica finds only itself in Redis, and still counts the other replicas.
	server.Start()
	a.beats(confirmBeats - 1)
	a.sees(3)
	all[1].beatsAndSees(3)
	// Heartbeats before another outage and heartbeats after it are not consecutive.
	server.Kill()
	for _, p := range all[:2] {
		p.misses(1)
	}
	server.Start()
	a.beats(confirmBeats - 1)
	a.sees(3)
	// The second replica also returns. The third does not return.
	all[1].beats(1)
	a.beatsAndSees(2)
	all[1].beats(confirmBeats - 2)
	all[1].sees(3)
	all[1].beatsAndSees(2)
}

func TestHeartbeat_RestartBetweenBeats_IsNoDeath(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	direct := patientClient(t, server.Options())
	all := pulses(t, server, 2)
	for _, p := range slices.Repeat(all, 2) {
		p.beats(1)
	}
	for range 3 { // no heartbeat fails, but the set is deleted
		direct.FlushDB(t.Context())
		for _, p := range all {
			p.beatsAndSees(2)
		}
	}
}

func TestHeartbeat_WithoutRedis_MinimumCounts(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	server.Kill()
	var log testenv.Log
	client := productionClient(t, server.URL)
	h := NewHeartbeat(storeOn(t, client), Config{Minimum: 5, Every: 10 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
	assert.Error(t, h.Start(t.Context()), "started with redis away, and did not say so")
	r := h.Replicas()
	assert.True(t, r.Count() == 5 && r.Portion(2, "key") == (rule.Portion{Tokens: 1, Holders: 5}) && r.Portion(50, "key") == (rule.Portion{Tokens: 10, Holders: 5}), r)
	testenv.Eventually(t, func() bool { return testutil.ToFloat64(h.cfg.Metrics.beatFailures) > 5 }, "beats are missed")
	server.Start()
	testenv.Eventually(t, func() bool { return h.Replicas().known }, "redis has answered")
	// There is only one replica, but the configured minimum is five.
	r = h.Replicas()
	assert.True(t, r.Count() == 5 && r.Live() == 1 && r.Portion(2, "key") == (rule.Portion{Tokens: 1, Holders: 2}) && r.Portion(50, "key") == (rule.Portion{Tokens: 10, Holders: 5}), r)
	away, back := log.Count("heartbeats are not answered"), log.Count("heartbeats are answered again")
	assert.True(t, away == 1 && back == 1, "%d lines say that nobody is heard, %d that they are again", away, back)
	server.Kill()
	assert.NoError(t, h.Stop(t.Context()), "no goodbye without redis")
	assert.Equal(t, 1, log.Count("could not be removed"), "no line says that the goodbye was not heard")
}

// TestHeartbeat_ReplicasComeAndGo runs replicas from start to stop, with the heartbeats of their goroutines.
func TestHeartbeat_ReplicasComeAndGo(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	direct := patientClient(t, server.Options())
	// A busy machine may freeze a replica for so long that its registration expires. The other replicas count it for
	// another second (confirmBeats).
	const every = 250 * time.Millisecond
	var log testenv.Log
	var all []*Heartbeat
	for range 4 {
		cfg := Config{Every: every, Log: slog.New(slog.NewTextHandler(&log, nil))}
		h := NewHeartbeat(storeOn(t, productionClient(t, server.URL)), cfg)
		require.NoError(t, h.Start(t.Context()))
		t.Cleanup(func() { _ = h.Stop(context.Background()) })
		all = append(all, h)
	}
	see := func(n int, who ...*Heartbeat) {
		t.Helper()
		testenv.Eventually(t, func() bool {
			return !slices.ContainsFunc(who, func(h *Heartbeat) bool { return h.Replicas().Count() != n })
		}, fmt.Sprintf("%d are seen", n))
	}
	see(4, all...)
	require.NoError(t, all[3].Stop(t.Context()))
	see(3, all[:3]...)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, all[2].Stop(over)) // as if killed: no leave is sent
	assert.True(t, direct.ZScore(t.Context(), replicasKey, fmt.Sprintf("-%d", all[2].id)).Err() != nil,
		"a replica that was cut off has said goodbye")
	see(2, all[:2]...)
	// Redis goes away and comes back without data. Meanwhile the number of replicas never decreases.
	server.Kill()
	testenv.Eventually(t, func() bool { return testutil.ToFloat64(all[0].cfg.Metrics.beatFailures) > 2 }, "beats are missed")
	see(2, all[:2]...)
	server.Start()
	testenv.Eventually(t, func() bool {
		assert.True(t, all[0].Replicas().Count() == 2 && all[1].Replicas().Count() == 2, "the number fell")
		n, err := direct.ZCard(t.Context(), replicasKey).Result()
		return err == nil && n == 2
	}, "both are back")
	assert.Zero(t, log.Count("live=1 before=2"), "the number fell and rose again")
}

func TestHeartbeat_Cluster_OneKey(t *testing.T) {
	t.Parallel()
	c := testenv.RedisClusterPrivate(t)
	for i := range 2 {
		h := NewHeartbeat(storeOn(t, productionClient(t, c.URL)), Config{Every: time.Minute})
		testenv.Eventually(t, func() bool { return h.beat(t.Context()) == nil }, "the cluster answers")
		n := h.Replicas().Count()
		assert.True(t, n == i+1, "%d replicas, want %d", n, i+1)
	}
}

// TestMembership_NeverMissesALiveReplica: a replica counts from the first heartbeat that contains it until it leaves,
// or until confirmBeats consecutive heartbeats do not contain it. The test has random sequences of heartbeats and
// failures.
func TestMembership_NeverMissesALiveReplica(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := membership{self: 99, others: map[uint64]int{}}
		missing := map[uint64]int{} // heartbeats since the last one with the replica; no entry: it does not count
		some := rapid.SliceOfDistinct(rapid.Uint64Range(1, 5), rapid.ID)
		for range rapid.IntRange(1, 60).Draw(t, "beats") {
			if rapid.IntRange(0, 9).Draw(t, "fails") == 0 {
				m.missed()
				for id := range missing {
					missing[id] = 0
				}
				continue
			}
			s := heartbeats{live: append(some.Draw(t, "live"), m.self)}
			if rapid.IntRange(0, 5).Draw(t, "goodbyes") == 0 {
				s.left = some.Draw(t, "left")
			}
			before := m.list()
			changed := m.beat(s)
			for id := uint64(1); id <= 5; id++ {
				_, counts := missing[id]
				switch {
				case slices.Contains(s.left, id):
					delete(missing, id)
				case slices.Contains(s.live, id):
					missing[id] = 0
				case counts && missing[id] == confirmBeats-1:
					delete(missing, id)
				case counts:
					missing[id]++
				}
			}
			if got := m.list(); len(got) != len(missing) || changed == slices.Equal(before, got) {
				t.Fatalf("%v, changed %v from %v, want %v", got, changed, before, missing)
			}
			for id := range missing {
				_, known := m.others[id]
				require.True(t, known, "%d is missed", id)
			}
		}
	})
}
