package gate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// patientCluster returns a client of a cluster with long timeouts, so that a slow answer on a busy machine is no
// outage.
func patientCluster(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	prompt := serviceClient(t, url)
	opts := *prompt.(*redis.ClusterClient).Options()
	_ = prompt.Close()
	const patience = testenv.Patience
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout, opts.PoolTimeout = patience, patience, patience, patience
	return redis.NewClusterClient(&opts)
}

// moving is a tenant whose slot moves between nodes. Meanwhile two instances charge its limits, debit, read its
// balances and take leases.
type moving struct {
	t         *testing.T
	instances [2]*instance
	tenant    string
	sent      *sync.RWMutex // requests hold it for reading; see wait

	keys              atomic.Int64
	admitted, refused atomic.Int64 // numbers of consumes
	held, most        atomic.Int64 // numbers of leases
	leases            atomic.Int64
}

const (
	movingUnits  = 100_000
	movingBurst  = 120 // less than the number of consumes of the test
	movingLeases = 2
)

// putMovingPlan stores the plan of moving tenants through a, and waits until b has read the plan.
func putMovingPlan(a, b *instance) {
	limits := []catalog.Limit{
		{Rule: "narrow", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "1/d", Burst: movingBurst}, concurrencyLimit("jobs", movingLeases),
	}
	a.catalogue(limits...)
	allowances := []catalog.Allowance{yearly("calls", movingUnits), yearly("other", movingUnits)}
	a.putPlan(catalog.Plan{ID: "many", Limits: limits, Allowances: allowances})
	testenv.Eventually(a.t, func() bool { return b.tenants.catalog.Snapshot().Plans["many"] != nil }, "the other instance knows the plan")
}

// once makes one request of each kind on an instance.
func (m *moving) once(in *instance) {
	ctx := context.Background()
	req := func(key string) Request {
		return Request{Tenant: m.tenant, Key: key, Items: []ledger.Item{{Meter: "calls", Amount: 1}, {Meter: "other", Amount: 1}}}
	}
	m.sent.RLock()
	defer m.sent.RUnlock()
	got, err := in.Consume(ctx, req(fmt.Sprint("k", m.keys.Add(1))))
	switch {
	case got.LimitsDegraded:
		m.t.Errorf("%s: a consume was decided without Redis", m.tenant)
	case err == nil:
		m.admitted.Add(1)
	case CodeOf(err) == CodeRateLimited:
		m.refused.Add(1)
	default:
		m.t.Errorf("%s: consume: %v", m.tenant, err)
	}
	least := m.admitted.Load() // consumes that were acknowledged
	check, err := in.Check(ctx, req(""))
	right := err == nil && len(check.Items) == 2 && !check.LimitsDegraded
	if !assert.True(m.t, right, "%s: check: %+v, %v", m.tenant, check, err) {
		return
	}
	for _, item := range check.Items {
		// The check shows at least the units that remain after all sent requests. It shows at most the units at the
		// start.
		assert.True(m.t, item.Remaining >= movingUnits-m.keys.Load() && item.Remaining <= movingUnits,
			"%s: %d units of %s remain, after %d consumes of which %d were acknowledged", m.tenant, item.Remaining, item.Meter, m.keys.Load(), least)
	}
	lease, err := in.Acquire(ctx, LeaseRequest{Tenant: m.tenant, Rule: "jobs"})
	switch {
	case CodeOf(err) == CodeRateLimited:
		return
	case err != nil || lease.Degraded:
		m.t.Errorf("%s: lease: %+v, %v", m.tenant, lease, err)
		return
	}
	m.leases.Add(1)
	n := m.held.Add(1)
	for old := m.most.Load(); n > old && !m.most.CompareAndSwap(old, n); old = m.most.Load() {
	}
	m.held.Add(-1)
	id, err := in.ParseLease(lease.ID)
	if err == nil {
		err = in.Release(ctx, id)
	}
	assert.NoError(m.t, err, "%s: release", m.tenant)
}

// wait waits for the requests that were sent before the last move ended, because Redis cannot distinguish two moves
// of a slot. Otherwise both nodes of the second move could serve a request that was sent during the first move.
func (m *moving) wait() {
	m.sent.Lock()
	defer m.sent.Unlock()
}

// verify checks that nothing was lost or counted twice: tokens, units, leases, and the copies of both instances.
func (m *moving) verify() {
	m.t.Helper()
	assert.True(m.t, m.admitted.Load() == movingBurst && m.refused.Load() != 0,
		"%s: %d admitted, %d refused; want %d admitted", m.tenant, m.admitted.Load(), m.refused.Load(), movingBurst)
	assert.True(m.t, m.most.Load() <= movingLeases && m.leases.Load() != 0,
		"%s: at most %d leases were held at a time, want %d; %d in all", m.tenant, m.most.Load(), movingLeases, m.leases.Load())
	for n, in := range m.instances {
		for _, meter := range []string{"calls", "other"} {
			b, err := in.ledger.Balance(m.t.Context(), m.tenant, meter, "")
			assert.True(m.t, err == nil && b.Remaining == movingUnits-movingBurst,
				"%s: instance %d: %d of %s remain, %v", m.tenant, n, b.Remaining, meter, err)
			testenv.Eventually(m.t, func() bool {
				got, err := in.Check(m.t.Context(), Request{Tenant: m.tenant, Items: []ledger.Item{{Meter: meter, Amount: 1}}})
				return err == nil && got.Items[0].Remaining == b.Remaining && got.Source != SourceLedger
			}, "a check from copies agrees with the ledger")
		}
		state, err := in.LimitState(m.t.Context(), BucketRequest{Tenant: m.tenant, Rule: "jobs"})
		assert.True(m.t, err == nil && state.Remaining == movingLeases,
			"%s: instance %d: %+v, %v", m.tenant, n, state, err)
	}
}

// TestCluster_SlotsMove_NothingLostNoBalanceWrong moves the slots of tenants to another node and back while two
// instances serve these tenants.
func TestCluster_SlotsMove_NothingLostNoBalanceWrong(t *testing.T) {
	t.Parallel()
	c, database := testenv.RedisClusterPrivate(t), testenv.Postgres(t)
	a, b := newInstance(t, database, patientCluster(t, c.URL)), newInstance(t, database, patientCluster(t, c.URL))
	putMovingPlan(a, b)
	var all []*moving
	for i := 0; len(all) < 3; i++ {
		tenant := fmt.Sprint("t", i)
		if c.Owner("{"+tenant+"}") == len(all) {
			a.putTenant(catalog.Tenant{ID: tenant, Plan: "many"})
			all = append(all, &moving{t: t, instances: [2]*instance{a, b}, tenant: tenant, sent: &sync.RWMutex{}})
		}
	}
	const callers, each = 4, 40
	var load sync.WaitGroup
	for n := range callers {
		for _, m := range all {
			load.Go(func() {
				for range each {
					m.once(m.instances[n%2])
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { load.Wait(); close(done) }()
	moves := 0
	for at := 0; ; at = 1 - at {
		for i, m := range all {
			nodes := []int{i, (i + 1) % len(c.Masters)}
			if at == 1 {
				slices.Reverse(nodes)
			}
			c.Move(c.Slot("{"+m.tenant+"}"), c.Masters[nodes[0]], c.Masters[nodes[1]])
			m.wait()
			moves++
		}
		select {
		case <-done:
		default:
			continue
		}
		if at == 1 {
			break
		}
	}
	t.Logf("%d moves", moves)
	assert.True(t, moves >= 2*len(all), "%d moves prove nothing", moves)
	for _, m := range all {
		m.verify()
	}
}
