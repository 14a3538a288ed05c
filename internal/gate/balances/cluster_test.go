package balances

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// tenantOn returns a tenant whose copies are stored on the given master.
func tenantOn(c *testenv.RedisCluster, master int) string {
	for i := 0; ; i++ {
		if tenant := fmt.Sprintf("m%d-%d", master, i); c.Owner("{"+tenant+"}") == master {
			return tenant
		}
	}
}

// TestPublish_Cluster checks that a problem of one master or slot does not delay the copies of other masters or
// slots.
func TestPublish_Cluster(t *testing.T) {
	t.Parallel()
	c := testenv.RedisClusterPrivate(t)
	t.Run("a slot moves", func(t *testing.T) { publishWhileASlotMoves(t, c) })
	t.Run("a master is away", func(t *testing.T) { publishWithoutAMaster(t, c) }) // last, because the master stays down
}

// publishWhileASlotMoves publishes copies of one tenant while its slot moves to another node. During the move, some
// of the copies are on the new node, and neither node can run a script call whose keys are on both nodes. The
// publication must succeed nevertheless.
func publishWhileASlotMoves(t *testing.T, c *testenv.RedisCluster) {
	copies := newRedisCopies(storeAt(t, c.URL), time.Hour)
	tenant := tenantOn(c, 1)
	ofMeter := func(meter string, seq int64) *ledger.BalanceCopy {
		b := copyOf(tenant, seq, time.Now())
		b.Meter = meter
		return b
	}
	put := func(what string, batch ...*ledger.BalanceCopy) {
		t.Helper()
		testenv.Eventually(t, func() bool { // repeated: a busy machine may exceed timeouts
			failed, _, err := copies.put(t.Context(), batch)
			if err != nil {
				t.Logf("%s: %d failed: %v", what, len(failed), err)
			}
			return err == nil
		}, what)
	}
	put("before the move", ofMeter("a", 1))
	slot := c.Slot("{" + tenant + "}")
	c.BeginMove(slot, c.Masters[1], c.Masters[2])
	put("one copy here, one there", ofMeter("a", 2), ofMeter("b", 1))
	c.MoveKeys(slot, c.Masters[1], c.Masters[2])
	put("all of them there", ofMeter("a", 3), ofMeter("b", 2))
	c.EndMove(slot, c.Masters[2])
	put("after the move", ofMeter("a", 4), ofMeter("b", 3))
	got, err := copies.get(t.Context(), []ledger.BalanceKey{{Tenant: tenant, Meter: "a"}, {Tenant: tenant, Meter: "b"}})
	assert.True(t, err == nil && got[0] != nil && got[1] != nil && got[0].Seq == 4 && got[1].Seq == 3,
		"%+v, %v", got, err)
}

// publishWithoutAMaster publishes copies while one master is down. Copies on other masters must not be late. If a
// sync failed, the publisher would pause.
func publishWithoutAMaster(t *testing.T, c *testenv.RedisCluster) {
	cache := New(storeAt(t, c.URL), Config{}) // not started and blind: each sync publishes every copy
	away, here := ledger.BalanceKey{Tenant: tenantOn(c, 0), Meter: "m"}, ledger.BalanceKey{Tenant: tenantOn(c, 1), Meter: "m"}
	c.Replicas[0].Kill()
	c.Masters[0].Kill()
	seq := int64(0)
	for range 12 {
		testenv.Eventually(t, func() bool {
			seq++
			for _, key := range []ledger.BalanceKey{away, here} {
				cache.pending.add([]*ledger.BalanceCopy{copyOf(key.Tenant, seq, time.Now())})
			}
			require.NoError(t, cache.sync(), "the publisher pauses")
			got, err := cache.Stored(t.Context(), []ledger.BalanceKey{here})
			return err == nil && got[0] != nil && got[0].Seq == seq
		}, "the other copy arrives with its sync") // a busy machine may exceed the timeouts of the client
		assert.True(t, cache.pending.len() == 0 && cache.parked.len() != 0,
			"%d copies wait and %d are parked", cache.pending.len(), cache.parked.len())
	}
}
