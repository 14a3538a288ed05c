package gate

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// TestSentinel_MasterLost_ChecksAndDebitsGoOn lets two instances debit and check while the sentinels replace the
// master after a kill, a freeze or a failover command. The new master may lack the last copies. No call may fail, and
// a check that accepts no copy must be exact. Afterwards checks must use copies again.
func TestSentinel_MasterLost_ChecksAndDebitsGoOn(t *testing.T) {
	t.Parallel()
	for name, act := range testenv.SentinelFailovers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, database := testenv.RedisSentinelsPrivate(t), testenv.Postgres(t)
			underBusyLoad(t, database, func() redis.UniversalClient { return serviceClient(t, s.URL) }, func() {
				act(s)
				s.AwaitMaster(s.Replica)
			})
		})
	}
}

// TestCheck_WithoutCopies_SeesEveryAcknowledgedDebit makes checks that accept no copy. Such a check must not share a
// read that began before the check.
func TestCheck_WithoutCopies_SeesEveryAcknowledgedDebit(t *testing.T) {
	t.Parallel()
	url := testenv.Redis(t)
	underBusyLoad(t, testenv.Postgres(t), func() redis.UniversalClient { return patientClient(url) }, func() {})
}

// underBusyLoad makes two instances debit and check one tenant while the function `do` runs, and for some time
// afterwards. Then it verifies the copies.
func underBusyLoad(t *testing.T, database string, client func() redis.UniversalClient, do func()) {
	t.Helper()
	m := &busyLoad{t: t, instances: [2]*instance{newInstance(t, database, client()), newInstance(t, database, client())}}
	m.instances[0].catalogue()
	m.instances[0].putPlan(catalog.Plan{ID: "many", Allowances: []catalog.Allowance{yearly("calls", movingUnits)}})
	m.instances[0].putTenant(catalog.Tenant{ID: "busy", Plan: "many"})
	testenv.Eventually(t, func() bool { return m.instances[1].tenants.catalog.Snapshot().Plans["many"] != nil }, "the other instance knows the plan")
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for n := range 4 {
		load.Go(func() {
			for ctx.Err() == nil {
				m.once(m.instances[n%2])
				pace()
			}
		})
	}
	testenv.Eventually(t, func() bool { return m.acknowledged.Load() > 100 }, "there is load")
	do()
	before := m.acknowledged.Load()
	testenv.Eventually(t, func() bool { return m.acknowledged.Load() > before+100 }, "the load goes on")
	stop()
	load.Wait()
	m.verify()
}

// busyLoad is a load of debits and checks of one tenant.
type busyLoad struct {
	t                  *testing.T
	instances          [2]*instance
	sent, acknowledged atomic.Int64
}

// once makes a debit on an instance. Then it makes a check that accepts copies and a check that does not.
func (m *busyLoad) once(in *instance) {
	ctx := context.Background()
	n := m.sent.Add(1)
	_, err := in.Debit(ctx, forTenant("busy", request(fmt.Sprint("k", n), "calls", 1)))
	if !assert.NoError(m.t, err, "debit") {
		return
	}
	m.acknowledged.Add(1)
	for _, stale := range []*time.Duration{nil, new(time.Duration)} {
		most := int64(movingUnits)
		if stale != nil {
			most -= m.acknowledged.Load()
		}
		check, err := in.Check(ctx, Request{Tenant: "busy", Items: []ledger.Item{{Meter: "calls", Amount: 1}}, MaxStale: stale})
		if !assert.NoError(m.t, err, "check: %v", err) {
			return
		}
		got, least := check.Items[0].Remaining, movingUnits-m.sent.Load()
		assert.True(m.t, got <= most && got >= least, "%d remain by %s, not %d to %d", got, check.Source, least, most)
	}
}

// verify checks that the copies of both instances agree with the ledger.
func (m *busyLoad) verify() {
	m.t.Helper()
	for n, in := range m.instances {
		b, err := in.ledger.Balance(m.t.Context(), "busy", "calls", "")
		assert.True(m.t, err == nil && b.Remaining == movingUnits-m.acknowledged.Load(),
			"instance %d: %d remain after %d debits, %v", n, b.Remaining, m.acknowledged.Load(), err)
		testenv.Eventually(m.t, func() bool {
			got, err := in.Check(m.t.Context(), Request{Tenant: "busy", Items: []ledger.Item{{Meter: "calls", Amount: 1}}})
			return err == nil && got.Items[0].Remaining == b.Remaining && got.Source != SourceLedger
		}, "a check from copies agrees with the ledger")
	}
}
