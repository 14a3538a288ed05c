package pg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
	"github.com/quotasvc/quotasvc/internal/store/citus"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

// hotStatements returns the statements of batches and checks, in their form for Citus. Such a statement names several
// tenants, all of one shard group. The result includes the statements that store denials about once a second.
func hotStatements(t *testing.T) map[string]string {
	t.Helper()
	hot := map[string]string{}
	for _, dir := range []string{".", "../../outbox/events", "../../report/denial"} {
		for name, statement := range statementsOf(t, dir) {
			if strings.Contains(statement, "unnest($1::text[]") && !slices.Contains([]string{"FirstDue", "DueBalances", "GivePositions"}, name) {
				hot[name] = statement
			}
		}
	}
	for _, name := range []string{
		"LockBalances", "Clock", "StoredEntries", "InsertPlainDebits", "UpdateDrawnBalances", "SelectBalances", "WhyAbsent", "LockDueOf",
		"InsertEvents", "SelectMarks", "InsertMarks", "InsertReminders", "AddCounts", "AddRecent",
	} {
		assert.NotEmpty(t, hot[name], "%s is not among the statements that name several tenants", name)
	}
	return hot
}

// statementsOf returns the SQL statements of a package, in their form for Citus.
func statementsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all, err := namedsql.Load(namedsql.Citus, os.DirFS(dir))
	require.NoError(t, err)
	return all
}

var tableReference = regexp.MustCompile(`(?:FROM|JOIN|UPDATE) (\w+) (\w+)\b`)

// On Citus, a statement must name its tenants for every distributed table. Otherwise Citus sends the statement to all
// nodes or refuses it. The test reads the texts of the statements, so it also runs without Citus.
func TestStatements_OfBatchesAndChecks_NameTheTenantsForEveryTable(t *testing.T) {
	t.Parallel()
	distributed := map[string]bool{}
	for _, in := range citus.Tables() {
		distributed[in.Table] = in.Place == citus.Distributed
	}
	seen := 0
	for name, statement := range hotStatements(t) {
		seen += nameTheTenants(t, distributed, name, statement, " = ANY ($1::text[])")
	}
	for name, statement := range statementsOf(t, "../../catalog/gauge") {
		seen += nameTheTenants(t, distributed, name, statement, " = $1")
	}
	assert.True(t, seen >= 40, "only %d tables were found in the statements: the test does not see them", seen)
}

// nameTheTenants fails the test if a statement reads or writes a distributed table more or less often than it names
// its tenants for this table. It returns the number of distributed tables that it found in the statement, one for
// each alias.
func nameTheTenants(t *testing.T, distributed map[string]bool, name, statement, condition string) (seen int) {
	t.Helper()
	references := map[string]int{}
	for _, m := range tableReference.FindAllStringSubmatch(statement, -1) {
		if distributed[m[1]] {
			references[m[2]]++
		}
	}
	for alias, times := range references {
		seen++
		if got := strings.Count(statement, alias+".tenant_id"+condition); got != times {
			t.Errorf("%s reads or writes a distributed table as %s %d times and names the tenants %d times: add AND %s.tenant_id%s, after -- citus: if it costs PostgreSQL something",
				name, alias, times, got, alias, condition)
		}
	}
	return seen
}

// TestCitus_Cluster starts one cluster for all tests that need one, because the start takes several seconds.
func TestCitus_Cluster(t *testing.T) {
	t.Parallel()
	s := testenv.CitusPrivate(t)
	b := &citusBundle{bundle: newBundleOn(t, s.URL), server: s, keys: map[string]map[string]bool{}}
	for n := range 40 {
		b.tenants = append(b.tenants, fmt.Sprintf("tenant-%d", n))
		b.simple(b.tenants[n], citusAllowance)
	}
	b.exec("UPDATE plan_allowances SET alert_at = $1, overage_policy = 'allow'", citusAlerts)
	wantEqual(t, "lanes", len(b.lanes), b.cluster.Groups.Count())
	t.Run("Batches_AreSentToTheirNode_OrThroughTheCoordinator", b.direct)
	t.Run("EveryHotStatement_RunsOnOneNode", b.plans)
	t.Run("BatchOfManyTenants_IsDividedByGroup", b.divided)
	t.Run("ShardMovedUnderLoad_NothingLostOrDoubled", b.move)
	t.Run("WorkerKilledUnderLoad_OthersGoOn_NothingLostOrDoubled", b.kill)
	b.mustVerifyOn(namedsql.Citus)
}

// citusAllowance is the allowance of each tenant. A threshold is reached with every twentieth debit. No event may be
// lost or emitted twice.
const citusAllowance = 100

var citusAlerts = func() (percent []int16) {
	for p := int16(20); p < 30_000; p += 20 {
		percent = append(percent, p)
	}
	return percent
}()

type citusBundle struct {
	*bundle
	server  *testenv.CitusServer
	tenants []string

	mu   sync.Mutex
	keys map[string]map[string]bool // by tenant: the keys of acknowledged debits of 1 unit
}

// inOneGroup returns the tenants of a shard group.
func (b *citusBundle) inOneGroup(group int) []string {
	return slices.DeleteFunc(slices.Clone(b.tenants), func(id string) bool { return b.cluster.Groups.Of(id) != group })
}

var literals = map[string]string{
	"bigint[]": "'{1,1}'", "integer[]": "'{1,1}'", "smallint[]": "'{1,1}'", "boolean[]": "'{t,f}'", "bytea[]": "'{a,b}'", "jsonb[]": `'{"{}","{}"}'`,
	"date[]": "'{2026-01-01,2026-02-01}'", "timestamp with time zone[]": "'{2026-01-01,2026-01-01}'", "timestamp with time zone": "'2026-01-01'",
	"bigint": "2", "integer": "2", "boolean": "true", "bytea": "'a'",
}

// direct tests debits that go to the nodes. When the ledger loses its connections to the nodes, the coordinator
// serves the debits until the nodes are reached again.
func (b *citusBundle) direct(t *testing.T) {
	testenv.Eventually(t, func() bool { return b.nodes.Reached() == len(b.server.Workers) })
	round := 0
	debits := func() (throughCoordinator int64) {
		round++
		before := b.writers.Stat().AcquireCount()
		for _, id := range b.tenants {
			key := fmt.Sprint("direct-", round)
			assert.NoError(t, errOf(Do(t.Context(), b.Ledger, debitOf(id, key, 1))))
			b.acknowledge(id, key)
		}
		return b.writers.Stat().AcquireCount() - before
	}
	debits() // creates the rows of balances
	wantEqual(t, "batches through the coordinator", debits(), 0)
	for _, id := range b.tenants {
		if pool := b.nodes.Of(id); pool != nil {
			b.nodes.Lost(pool, errors.New("a test"))
		}
	}
	if b.nodes.Reached() == 0 { // if it is not 0, a node was reached again meanwhile
		assert.NotZero(t, debits(), "no batch went through the coordinator after all nodes were lost")
	}
	b.nodes.Reach(t.Context())
	wantEqual(t, "nodes reached again", b.nodes.Reached(), len(b.server.Workers))
	wantEqual(t, "batches through the coordinator", debits(), 0)
	b.compare(t)
}

// plans checks the query plans of the hot statements on the coordinator and on one node.
func (b *citusBundle) plans(t *testing.T) {
	two := b.inOneGroup(0)[:2]
	for _, pool := range []*pgxpool.Pool{b.writers, b.nodes.Of(two[0])} {
		b.plansOf(t, pool, two)
	}
}

func (b *citusBundle) plansOf(t *testing.T, pool *pgxpool.Pool, two []string) {
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	statements := hotStatements(t)
	maps.Copy(statements, statementsOf(t, "../../catalog/gauge"))
	statements["TenantsWhoWant"] = statementsOf(t, "../../outbox/events")["TenantsWhoWant"]
	for name, statement := range statements {
		if name == "CreateBalances" {
			continue // Citus cannot explain it; other tests run it
		}
		plan := explainForTenants(t, conn.Conn(), name, statement, two)
		tasks := strings.Count(plan, "Task Count: ")
		// These statements are rare and read no table. Citus copies their rows to the shard.
		copied := strings.Contains(plan, "Citus INSERT ... SELECT") && tasks == 0 && name != "InsertPlainDebits" && name != "InsertEntries"
		assert.False(t, !copied && (tasks != 1 || !strings.Contains(plan, "Task Count: 1\n")),
			"%s is not planned for one node:\n%s", name, plan)
	}
}

func explainForTenants(t *testing.T, conn *pgx.Conn, name, statement string, tenants []string) string {
	t.Helper()
	exec := func(sql string) {
		_, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err, "%s: %v\n%s", name, err, sql)
	}
	exec("PREPARE explained AS " + statement)
	defer exec("DEALLOCATE explained")
	var types []string
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'explained'").Scan(&types))
	args := make([]string, len(types))
	for i, of := range types {
		switch of {
		case "text[]":
			args[i] = "'{" + strings.Join(tenants, ",") + "}'"
		case "text":
			args[i] = "'" + tenants[0] + "'"
		default:
			args[i] = literals[of]
		}
		require.NotEmpty(t, args[i], "%s has a parameter of type %s: add a value to this test", name, of)
	}
	rows, err := conn.Query(t.Context(), "EXPLAIN (COSTS OFF) EXECUTE explained ("+strings.Join(args, ", ")+")", pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err, "%s", name)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err, "%s", name)
	return strings.Join(lines, "\n") + "\n"
}

func (b *citusBundle) divided(t *testing.T) {
	var debits []*ledger.Debit
	for _, id := range b.tenants {
		debits = append(debits, debitOf(id, "first", 1))
	}
	for range 2 { // the second time all are retries
		for i, out := range b.DebitBatch(t.Context(), debits) {
			require.NoError(t, out.Err)
			b.acknowledge(debits[i].Tenant, "first")
		}
	}
	var requests []ledger.CheckRequest
	for _, id := range b.tenants {
		requests = append(requests, ledger.CheckRequest{Tenant: id, Items: []ledger.Item{{Meter: "api_calls", Amount: 1}}})
	}
	for i, out := range b.CheckBatch(t.Context(), requests) {
		assert.True(t, out.Err == nil && out.Result.Allowed, "%s: %+v, %v", requests[i].Tenant, out.Result, out.Err)
	}
	b.compare(t)
}

func (b *citusBundle) acknowledge(tenant, key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.keys[tenant] == nil {
		b.keys[tenant] = map[string]bool{}
	}
	b.keys[tenant][key] = true
}

// compare fails the test if the journal or the balances differ from the acknowledged debits.
func (b *citusBundle) compare(t *testing.T) {
	t.Helper()
	for _, id := range b.tenants {
		const debits = "SELECT operation_id FROM entries WHERE tenant_id = $1 AND kind IN ('debit', 'overage')"
		stored := list[string](b.bundle, debits, id)
		assert.Len(t, stored, len(b.keys[id]),
			"%s has %d debits in the journal, %d were acknowledged", id, len(stored), len(b.keys[id]))
		for _, key := range stored {
			assert.True(t, b.keys[id][key], "%s: the journal has %s, which was not acknowledged", id, key)
		}
		balance := b.mustBalance(id, "api_calls")
		used := balance.Used + balance.Overage
		wantEqual(t, "used by "+id, used, int64(len(b.keys[id])))
		reached, _ := slices.BinarySearch(citusAlerts, int16(used*100/citusAllowance)+1)
		wantEqual(t, "thresholds told of "+id, b.thresholds(id), citusAlerts[:reached])
	}
}

// thresholds returns the thresholds in the emitted events of a tenant, the lowest first.
func (b *citusBundle) thresholds(tenant string) []int16 {
	b.t.Helper()
	const thresholds = "SELECT (data ->> 'threshold')::smallint FROM events WHERE tenant_id = $1 AND type = $2 ORDER BY 1"
	return list[int16](b.bundle, thresholds, tenant, string(events.ThresholdReached))
}

// citusLoad has the results of underLoad: the numbers of served and refused calls, and the slowest call.
type citusLoad struct {
	served, refused atomic.Int64
	slowest         atomic.Int64 // nanoseconds of the slowest call for a tenant in watch
	failedWatched   atomic.Int64
}

// underLoad makes debits for all tenants until the function `do` returns. If a debit fails, it repeats the debit with
// the same key. It returns after every debit has succeeded or the test has failed. watch contains the tenants whose
// debits the function `do` must not disturb.
func (b *citusBundle) underLoad(t *testing.T, name string, watch map[string]bool, do func(served func() int64)) *citusLoad {
	t.Helper()
	var l citusLoad
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for _, id := range b.tenants {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				b.untilServed(t, &l, id, fmt.Sprintf("%s-%d", name, n), watch[id])
			}
		})
	}
	do(l.served.Load)
	stop()
	all.Wait()
	t.Logf("%s: %d debits served, %d refusals, slowest of the others %s", name, l.served.Load(), l.refused.Load(), time.Duration(l.slowest.Load()))
	return &l
}

func (b *citusBundle) untilServed(t *testing.T, l *citusLoad, tenant, key string, watched bool) {
	for end := time.Now().Add(testenv.Patience); time.Now().Before(end); {
		began := time.Now()
		_, err := Do(t.Context(), b.Ledger, debitOf(tenant, key, 1))
		took := time.Since(began)
		for watched {
			before := l.slowest.Load()
			if before >= int64(took) || l.slowest.CompareAndSwap(before, int64(took)) {
				break
			}
		}
		if err == nil {
			l.served.Add(1)
			b.acknowledge(tenant, key)
			return
		}
		l.refused.Add(1)
		if watched {
			l.failedWatched.Add(1)
		}
		if code := errcode.Of(err); code != errcode.Unavailable && code != errcode.OutcomeUnknown {
			t.Errorf("%s %s: %v", tenant, key, err)
			return
		}
	}
	t.Errorf("%s %s was not served in %s", tenant, key, testenv.Patience)
}

func waitFor(t *testing.T, served func() int64, more int64) {
	t.Helper()
	from := served()
	testenv.Eventually(t, func() bool { return served() >= from+more })
}

func (b *citusBundle) move(t *testing.T) {
	shard := b.cluster.Groups.Shard(b.tenants[0])
	var from, to int
	err := b.db.QueryRow(t.Context(), `SELECT s.nodeport, (SELECT n.nodeport FROM pg_dist_node n WHERE n.shouldhaveshards AND n.nodeport <> s.nodeport)
		FROM citus_shards s WHERE s.shardid = $1`, shard).Scan(&from, &to)
	require.NoError(t, err)
	b.underLoad(t, "move", nil, func(served func() int64) {
		waitFor(t, served, 100)
		_, err := b.db.Exec(t.Context(), "SELECT citus_move_shard_placement($1, '127.0.0.1', $2, '127.0.0.1', $3, 'force_logical')", shard, from, to)
		assert.NoError(t, err)
		waitFor(t, served, 100)
	})
	now := one[int](b.bundle, "SELECT nodeport FROM citus_shards WHERE shardid = $1", shard)
	wantEqual(t, "node of the shard", now, to)
	b.compare(t)
}

func (b *citusBundle) kill(t *testing.T) {
	victim := b.server.Workers[0]
	at, err := url.Parse(victim.URL)
	require.NoError(t, err)
	others := map[string]bool{}
	for _, id := range b.tenants {
		const portOf = "SELECT nodeport::text FROM citus_shards WHERE shardid = $1"
		others[id] = one[string](b.bundle, portOf, b.cluster.Groups.Shard(id)) != at.Port()
	}
	read := b.followEvents(t)
	l := b.underLoad(t, "kill", others, func(served func() int64) {
		for range 3 {
			waitFor(t, served, 300)
			victim.Kill()
			waitFor(t, served, 100) // debits of the other tenants
			victim.Start()
		}
		waitFor(t, served, 300)
	})
	assert.NotZero(t, l.refused.Load(), "no debit was refused: the test has killed nobody")
	assert.Zero(t, l.failedWatched.Load(), "debits of tenants on the other node were refused")
	b.compare(t)
	read()
}

// followEvents reads the list of events repeatedly, each time after the newest position that it has read, until the
// returned function is called. That function fails the test if the number of events read differs from the number
// stored. Such a reader must miss no event, even if nodes fail meanwhile.
func (b *citusBundle) followEvents(t *testing.T) (read func()) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), b.server.URL)
	require.NoError(t, err)
	var after string
	seen := 0
	step := func(ctx context.Context) (n int, err error) {
		if n, err = events.Number(ctx, pool, func(context.Context, pgx.Tx, []events.Listed) error { return nil }); err != nil {
			return n, err
		}
		return n, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			page, err := events.List(ctx, tx, time.Now(), events.Query{After: after, Limit: 1000})
			if seen += len(page.Items); len(page.Items) > 0 {
				after = page.Items[len(page.Items)-1].ID()
			}
			return err
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() {
		for ctx.Err() == nil {
			_, _ = step(ctx) // a node may be unreachable
		}
	})
	return func() {
		t.Helper()
		stop()
		following.Wait()
		defer pool.Close()
		var stored int
		testenv.Eventually(t, func() bool {
			if _, err := step(t.Context()); err != nil {
				return false // the pool still has connections to the node that was killed
			}
			err := b.db.QueryRow(t.Context(), "SELECT count(*) FROM events").Scan(&stored)
			return err == nil && seen >= stored
		})
		wantEqual(t, "events that were read", seen, stored)
	}
}
