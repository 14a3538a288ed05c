package gate

import (
	"cmp"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// TestCluster_NodeJoinsAndLeaves_NothingLostNoBalanceWrong adds a node to the cluster, moves slots to it, and removes
// it again, with the tool that operators use. Meanwhile two instances serve tenants on all nodes. By default a few
// hundred slots move, including the slots of some tenants. With QUOTASVC_TEST_REBALANCE=1 a quarter of all slots
// moves.
func TestCluster_NodeJoinsAndLeaves_NothingLostNoBalanceWrong(t *testing.T) {
	t.Parallel()
	const tenants, moved, firstSlots = 8, 3, 40
	weight := cmp.Or(os.Getenv("QUOTASVC_TEST_REBALANCE"), "0.08")
	c, database := testenv.RedisClusterPrivate(t), testenv.Postgres(t)
	a, b := newInstance(t, database, patientCluster(t, c.URL)), newInstance(t, database, patientCluster(t, c.URL))
	putMovingPlan(a, b)
	var all []*moving
	for i := 0; len(all) < tenants; i++ {
		m := &moving{t: t, instances: [2]*instance{a, b}, tenant: fmt.Sprint("t", i), sent: &sync.RWMutex{}}
		// The tool moves the first slots of each master.
		if len(all) < moved && c.Slot("{"+m.tenant+"}")%(1<<14/len(c.Masters)) >= firstSlots {
			continue
		}
		a.putTenant(catalog.Tenant{ID: m.tenant, Plan: "many"})
		all = append(all, m)
	}
	served := func(n *testenv.RedisServer) (count int) {
		for _, m := range all {
			if c.Serves(n, "{"+m.tenant+"}") {
				count++
			}
		}
		return count
	}
	var load sync.WaitGroup
	over := make(chan struct{})
	stop := sync.OnceFunc(func() {
		close(over)
		load.Wait()
	})
	defer stop()
	for n := range 2 {
		for _, m := range all {
			load.Go(func() {
				for {
					select {
					case <-over:
						if m.keys.Load() > movingBurst+10 { // enough requests that some consumes are refused
							return
						}
					default:
					}
					m.once(m.instances[n])
					pace()
				}
			})
		}
	}
	node := c.Join()
	before := served(node)
	c.Rebalance(node, weight)
	joined := served(node)
	asked := redisCalls(t, c.Client(node))
	c.Leave(node)
	stop()
	assert.True(t, before == 0 && joined != 0 && asked != 0,
		"the new node served %d tenants, %d after the rebalancing, with %d calls: it proves nothing", before, joined, asked)
	t.Logf("%d of %d tenants moved to the new node and away from it; it had %d calls meanwhile", joined, tenants, asked)
	for _, m := range all {
		m.verify()
	}
}
