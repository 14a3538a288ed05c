package pg

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

// batchStatements are the statements of a batch. PostgreSQL plans them once per connection, possibly while the tables
// are empty. These plans must be fast for full tables, too. So the outer loop must go over the keys in the
// parameters, and an index must find all other rows.
var batchStatements = []string{
	"LockBalances", "StoredEntries", "OpenGrants", "NamedGrants", "TakenGrants", "HoldLines", "Holds", "Refunds", "HoldBalances",
	"GrantBalances", "EntriesOfOperations", "TenantTerms", "UpdateBalances", "UpdateDrawnBalances", "UpdateGrants", "UpdateHoldLines",
}

func TestStatements_PrepareAndAreUsed(t *testing.T) {
	t.Parallel()
	testenv.Statements(t, namedsql.Must(namedsql.Target(testenv.OnCitus()), sqlFiles))
}

// Wrong plans had a hundred times the cost of right plans. They had sequential scans, materialised whole partitions
// for a join, or looked up operations in the index of entries by time.
func TestStatements_PlansOfEmptyTables_FitFullOnes(t *testing.T) {
	testenv.NotOnCitus(t, "a plan depends on its tenants there; TestCitus_Cluster looks at them")
	t.Parallel()
	b := newBundle(t)
	conn, err := b.writers.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	for _, name := range batchStatements {
		plan := explain(t, conn.Conn(), name, b.sql[name])
		for _, node := range plan.nodes {
			bad := node.wrong()
			assert.Empty(t, bad, "%s: %s in\n%s", name, bad, plan.text)
		}
		assert.False(t, name == "StoredEntries" && strings.Contains(plan.text, "_meter_subject_seq_"),
			"the look-up of keys goes through the history index:\n%s", plan.text)
	}
}

// Checks also use generic plans, with the settings of the readers. For checks, a bitmap scan of one tenant's rows is
// not a fault.
func TestChecks_PlansOfEmptyTables_FitFullOnes(t *testing.T) {
	testenv.NotOnCitus(t, "a plan depends on its tenants there; TestCitus_Cluster looks at them")
	t.Parallel()
	b := newBundle(t)
	conn, err := b.readers.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	require.NoError(t, errOf(conn.Exec(t.Context(), "SET plan_cache_mode = force_generic_plan")))
	for name, ofTenants := range map[string]bool{ // true: all tables of the statement contain rows of tenants
		"SelectBalances": true, "OpenGrants": true, "HoldLines": true, "TenantTerms": true, "Clock": false, "PlanVersions": false, "WhyAbsent": false,
	} {
		plan := explain(t, conn.Conn(), name, b.sql[name])
		for _, node := range plan.nodes {
			bad := node.wrong()
			if node.Type == "Bitmap Heap Scan" || !ofTenants && node.Type != "Seq Scan" {
				bad = ""
			}
			assert.Empty(t, bad, "%s: %s in\n%s", name, bad, plan.text)
		}
	}
}

type queryPlan struct {
	nodes []planNode
	text  string
}

type planNode struct {
	Type       string     `json:"Node Type"`
	Relation   string     `json:"Relation Name"`
	JoinFilter string     `json:"Join Filter"`
	IndexCond  string     `json:"Index Cond"`
	Plans      []planNode `json:"Plans"`
}

// wrong describes the fault of a plan node. It returns an empty string if the node has no fault.
func (n *planNode) wrong() string {
	switch {
	case slices.Contains([]string{"Seq Scan", "Hash Join", "Merge Join", "Materialize", "Bitmap Heap Scan"}, n.Type):
		return n.Type + " on " + n.Relation
	case n.JoinFilter != "":
		return "join filter " + n.JoinFilter
	case strings.HasPrefix(n.Type, "Index") && !strings.Contains(n.IndexCond, "tenant_id"):
		return n.Type + " on " + n.Relation + " without the tenant"
	}
	return ""
}

// explain returns the generic plan of a statement on conn.
func explain(t *testing.T, conn *pgx.Conn, name, sql string) queryPlan {
	t.Helper()
	sd, err := conn.Prepare(t.Context(), "explain_"+name, sql)
	require.NoError(t, err, "%s", name)
	nulls := strings.TrimSuffix(strings.Repeat("NULL, ", len(sd.ParamOIDs)), ", ")
	var raw []byte
	require.NoError(t, conn.QueryRow(t.Context(), fmt.Sprintf("EXPLAIN (FORMAT JSON) EXECUTE \"explain_%s\"(%s)", name, nulls), pgx.QueryExecModeSimpleProtocol).Scan(&raw),
		"%s", name)
	var tree []struct{ Plan planNode }
	require.NoError(t, json.Unmarshal(raw, &tree))
	p := queryPlan{text: string(raw)}
	var walk func(node planNode)
	walk = func(node planNode) {
		p.nodes = append(p.nodes, node)
		for _, c := range node.Plans {
			walk(c)
		}
	}
	walk(tree[0].Plan)
	return p
}

// At a month's end many changes of terms wait. Each batch asks for the newest terms that have come, and reads none of
// those.
func TestClock_TermsThatWait_AreNotRead(t *testing.T) {
	testenv.NotOnCitus(t, "each node plans the statement")
	t.Parallel()
	b := newBundle(t).simple("acme", 1000)
	b.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, at_once)
		SELECT tenant_id, now() + n * interval '1 minute', plan, anchor, timezone, true
		FROM tenants, generate_series(1, 10000) AS n`)
	b.exec("ANALYZE tenant_terms")
	plan := explain(t, b.db, "Clock", b.sql["Clock"])
	found := 0
	for _, node := range plan.nodes {
		if node.Relation == "tenant_terms" {
			found++
			assert.Contains(t, node.IndexCond, "effective_at <", plan.text)
		}
	}
	assert.Equal(t, 2, found, plan.text)
}

func TestDebit_BalanceUpdates_AreHeapOnly(t *testing.T) {
	testenv.NotOnCitus(t, "the statistics are those of the shards")
	t.Parallel()
	b := newBundle(t).simple("acme", 1000)
	for i := range 50 {
		b.mustDebit(debitOf("acme", fmt.Sprint("k", i), 1))
	}
	for _, conn := range b.writers.AcquireAllIdle(t.Context()) {
		require.NoError(t, errOf(conn.Exec(t.Context(), "SELECT pg_stat_force_next_flush()")))
		conn.Release()
	}
	var updates, hot int
	testenv.Eventually(t, func() bool {
		require.NoError(t, b.db.QueryRow(t.Context(), "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'balances'").Scan(&updates, &hot))
		return updates >= 49 // the first debit inserts the row
	})
	if hot*10 < updates*9 { // some updates are not heap-only, because a full page moves a row
		t.Errorf("%d of %d updates of balances were heap-only", hot, updates)
	}
}

func TestUpkeep_RolledUntil_IsNewestFinishedRoll(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	rolledUntil := func() int64 {
		t.Helper()
		b.upkeep.once(t.Context())
		return int64(testutil.ToFloat64(b.metrics.rolledUntil))
	}
	assert.Zero(t, rolledUntil(), "before any roll")
	b.exec(`INSERT INTO rolls (roll_id, as_of, status, started_at, heartbeat_at) VALUES
		('old', to_timestamp(1700000000), 'done', now(), now()), ('new', to_timestamp(1700003600.9), 'done', now(), now()),
		('failed', now(), 'failed', now(), now()), ('running', now(), 'running', now(), now())`)
	got := rolledUntil()
	assert.False(t, got != 1700003601 && got != 1700003600, "%d, want the instant of the newest finished roll", got)
}

func TestDebit_Retry_FindsKeyOfMonthBefore(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	b.mustDebit(debitOf("acme", "k1", 4))
	last := (ledger.MonthOf(time.Now()) - 1).First()
	b.exec("UPDATE entries SET month = $1 WHERE operation_id = 'k1'", last)
	require.True(t, b.mustDebit(debitOf("acme", "k1", 4)).Replayed)
}
