package pg

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// If there are several instances, each instance uses one lane. With all lanes, the transactions of each instance
// would be smaller and cost more in sum. When the number of instances changes, the number of lanes changes, too.
func TestLanes_BesideOtherInstances_OneEach(t *testing.T) {
	t.Parallel()
	testenv.NotOnCitus(t, "the lanes there are those of the shard groups, however many instances there are")
	var instances atomic.Int32
	instances.Store(1)
	count := func() int { return int(instances.Load()) }
	shared := newBundle(t, func(c *Config) { c.Instances = count })
	alone := openLedger(t, shared.url)
	told := openLedger(t, shared.url, func(c *Config) { c.Instances, c.Lanes = count, 3 })
	used := func(l *Ledger) int {
		lanes := map[int]bool{}
		for i := range 200 {
			lanes[l.laneOf(fmt.Sprint("tenant-", i))] = true
		}
		return len(lanes)
	}
	for i, c := range []struct{ instances, shared, alone, told int }{{1, 2, 2, 3}, {2, 1, 2, 3}, {256, 1, 2, 3}, {0, 2, 2, 3}, {1, 2, 2, 3}} {
		instances.Store(int32(c.instances))
		for l, want := range map[*Ledger]int{shared.Ledger: c.shared, alone: c.alone, told: c.told} {
			l.shareLanes()
			wantEqual(t, fmt.Sprint("lanes in use with ", c.instances, " instances"), used(l), want)
		}
		shared.simple(fmt.Sprint("acme-", i), 10)
		shared.debit(fmt.Sprint("acme-", i), fmt.Sprint("k", t.Name()), 1)
	}
	shared.mustVerify()
}
