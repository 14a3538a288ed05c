package e2e

import (
	"net/http"
	"regexp"
	"slices"
	"syscall"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

var replicasLine = regexp.MustCompile(`(?m)^quotasvc_replicas_live (\S+)$`)

// replicas returns the number of live instances that an instance's metric shows.
func (in *instance) replicas(t testing.TB) string {
	t.Helper()
	m := replicasLine.FindStringSubmatch(in.metrics(t))
	require.NotNil(t, m, "quotasvc_replicas_live is not measured")
	return m[1]
}

// limitOfSlots creates the limit slots, for leases, and waits until both instances know it. The instances then also
// know all earlier changes of the catalogue.
func limitOfSlots(t testing.TB, one, two *instance) {
	t.Helper()
	one.do(t, http.StatusCreated, "PUT", "/v1/limits/slots", "", object{"per": []string{"tenant"}, "kind": "concurrency", "burst": 1})
	for _, in := range []*instance{one, two} {
		testenv.Eventually(t, func() bool {
			got, err := in.send(t.Context(), "POST", "/v1/leases", "", object{"rule": "slots", "tenant": "acme", "dry_run": true})
			require.NoError(t, err)
			return got.status == http.StatusOK
		}, "limit slots")
	}
}

// acquire acquires a lease of the limit slots for acme and returns its id.
func (in *instance) acquire(t testing.TB) string {
	t.Helper()
	body := object{"rule": "slots", "tenant": "acme", "subject": "ann", "ip": "192.0.2.1"}
	return decoded[leased](t, in.do(t, http.StatusCreated, "POST", "/v1/leases", "", body)).ID
}

// leased is the part of an answer about a lease that the tests read.
type leased struct {
	ID string `json:"lease_id"`
}

// renew renews a lease and returns its id.
func (in *instance) renew(t testing.TB, lease string) string {
	t.Helper()
	return decoded[leased](t, in.do(t, http.StatusOK, "POST", "/v1/leases/"+lease+"/renew", "", object{})).ID
}

// An instance accepts the id of a lease or a charge that another instance has created.
func TestReplicas_IDsOfOneAnother_Taken(t *testing.T) {
	t.Parallel()
	env := using(testenv.PostgresService(t), testenv.RedisURL(t))
	one, two := serve(t, env), serve(t, env)
	one.setUp(t, 1000)
	one.do(t, http.StatusCreated, "PUT", "/v1/limits/api", "", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "1/h", "burst": 5})
	limitOfSlots(t, one, two)
	lease := one.acquire(t)
	assert.Equal(t, lease, two.renew(t, lease), "renewed")
	two.do(t, http.StatusNoContent, "DELETE", "/v1/leases/"+lease, "", nil)
	one.do(t, http.StatusNotFound, "POST", "/v1/leases/"+lease+"/renew", "", object{})
	var charge struct {
		ID string `json:"charge_id"`
	}
	one.do(t, http.StatusOK, "POST", "/v1/limits/charge", "", object{"tenant": "acme", "rules": []string{"api"}}).into(t, &charge)
	two.do(t, http.StatusOK, "POST", "/v1/limits/charge/refund", "", object{"charge_id": charge.ID})
}

func TestReplicas_Instances_CountEachOther(t *testing.T) {
	t.Parallel()
	redis := testenv.RedisPrivate(t)
	env := using(testenv.PostgresService(t), redis.URL, "QUOTASVC_REPLICAS=3")
	one := serve(t, env)
	assert.Equal(t, "1", one.replicas(t), "the first counts")
	two := serve(t, env)
	assert.Equal(t, "2", two.replicas(t), "the second counts when it begins to serve")
	await := func(want string) {
		t.Helper()
		testenv.Eventually(t, func() bool { return one.replicas(t) == want }, "the first counts ", want)
	}
	await("2")
	assert.Contains(t, string(one.ask(t, "/readyz").body), `"replicas":{"live":2,"divided_by":3}`)
	one.setUp(t, 1000)
	one.do(t, http.StatusCreated, "PUT", "/v1/limits/api", "", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "8/s", "burst": 2})
	var explained struct {
		Explain struct {
			RedisAway struct {
				Replicas, Holders int
				CapacityEach      int     `json:"capacity_each"`
				PerSecondEach     float64 `json:"per_second_each"`
			} `json:"redis_away"`
		}
	}
	one.do(t, http.StatusOK, "GET", "/v1/limits/api?explain=1", "", nil).into(t, &explained)
	// Two instances are live, but each instance assumes at least three.
	away := explained.Explain.RedisAway
	assert.True(t, away.Replicas == 3 && away.Holders == 2 && away.CapacityEach == 1 && away.PerSecondEach == 4, away)
	two.signal(syscall.SIGTERM)
	assert.Zero(t, two.wait(), "the second ends with")
	direct := testenv.CloseAtEnd(t, goredis.NewClient(redis.Options()))
	live, err := direct.ZRange(t.Context(), "rl:replicas", 0, -1).Result()
	live = slices.DeleteFunc(live, func(id string) bool { return id[0] == '-' })
	assert.True(t, err == nil && len(live) == 1, "%v are live after a goodbye, %v", live, err)
	await("1")
}
