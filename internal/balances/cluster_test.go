package balances

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

// tenantOn returns a tenant whose copies are on a master.
func tenantOn(c *testenv.RedisCluster, master int) string {
	for i := 0; ; i++ {
		if tenant := fmt.Sprintf("m%d-%d", master, i); c.Owner("{"+tenant+"}") == master {
			return tenant
		}
	}
}

// TestPublish_Cluster holds what one master or slot must not do to the copies of others.
func TestPublish_Cluster(t *testing.T) {
	t.Parallel()
	c := testenv.RedisClusterPrivate(t)
	c.Calm()
	t.Run("a slot moves", func(t *testing.T) { publishWhileASlotMoves(t, c) })
	t.Run("a master is away", func(t *testing.T) { publishWithoutAMaster(t, c) }) // the last one: it stays away
}

// publishWhileASlotMoves: some copies of a tenant are on the new node already, and a call with both kinds runs on neither node.
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
		eventually(t, what, func() bool { // a busy machine may miss the client's timeouts; a moving slot would stay
			failed, _, err := copies.put(t.Context(), batch)
			if err != nil {
				t.Logf("%s: %d failed: %v", what, len(failed), err)
			}
			return err == nil
		})
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
	if err != nil || got[0] == nil || got[1] == nil || got[0].Seq != 4 || got[1].Seq != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}

// publishWithoutAMaster: copies on other masters are not late. A publisher that pauses for each failure would take awayFor for each round.
func publishWithoutAMaster(t *testing.T, c *testenv.RedisCluster) {
	cache := startCache(t, c.URL, Config{})
	away, here := ledger.BalanceKey{Tenant: tenantOn(c, 0), Meter: "m"}, ledger.BalanceKey{Tenant: tenantOn(c, 1), Meter: "m"}
	arrived := func(key ledger.BalanceKey, seq int64) func() bool {
		return func() bool {
			got, err := cache.Stored(t.Context(), []ledger.BalanceKey{key})
			return err == nil && got[0] != nil && got[0].Seq == seq
		}
	}
	publish := func(key ledger.BalanceKey, seq int64) {
		cache.interest.ask([]ledger.BalanceKey{key}, time.Now())
		cache.Publish([]ledger.BalanceCopy{*copyOf(key.Tenant, seq, time.Now())})
	}
	for _, key := range []ledger.BalanceKey{away, here} {
		eventually(t, "it is wanted", func() bool { publish(key, 1); return arrived(key, 1)() })
	}
	c.Replicas[0].Kill()
	c.Masters[0].Kill()
	const rounds = 12
	began := time.Now()
	for seq := int64(2); seq < 2+rounds; seq++ {
		publish(away, seq) // alone, and before the other
		eventually(t, "it has failed", func() bool { return cache.pending.len() == 0 && cache.shelf.len() == 1 })
		publish(here, seq)
		eventually(t, "the other copy arrives", arrived(here, seq))
	}
	if took := time.Since(began); took > rounds*awayFor {
		t.Errorf("%d copies took %s: they waited for those of another master", rounds, took)
	}
}
