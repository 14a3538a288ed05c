package pg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/citus"
	"github.com/quotasvc/quotasvc/internal/store/pgpool"
)

// On Citus, the transaction of a batch reads, locks and writes tenants of one shard group: one node runs all its
// statements and its COMMIT. So calls are divided by group before they become a batch. docs/decisions/citus.md has the
// reasons.

// detectCitus queries whether the tables of the database are distributed. It returns nil for PostgreSQL without Citus.
func detectCitus(ctx context.Context, cfg *Config) (*citus.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout+readTimeout)
	defer cancel()
	params, err := pgx.ParseConfig(cfg.DatabaseURL)
	if err != nil {
		return nil, fmt.Errorf("ledger: database URL: %w", err)
	}
	params.ConnectTimeout = probeTimeout
	params.RuntimeParams["application_name"] = "quotasvc-probe"
	_ = cfg.Login.Apply(ctx, params) // Apply never returns an error
	conn, err := pgx.ConnectConfig(ctx, params)
	if err != nil {
		return nil, unavailable("connect to PostgreSQL", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	cluster, err := citus.Detect(ctx, conn)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	if cluster != nil {
		cfg.Log.Info("the database is a Citus cluster",
			"version", cluster.Version, "nodes", cluster.Nodes, "shard_groups", cluster.Groups.Count())
	}
	return cluster, nil
}

// Cluster returns the Citus cluster that Open found, or nil for PostgreSQL without Citus.
func (l *Ledger) Cluster() *citus.Cluster { return l.cluster }

// newNodes returns the nodes of the cluster, each with a pool like the pool of the writers. A role has the same
// password on all nodes, and the certificate of each node is verified with the node's own name.
func (l *Ledger) newNodes() *citus.Nodes {
	if l.cluster == nil || l.cfg.ThroughCoordinator {
		return nil
	}
	return citus.NewNodes(l.cluster.Groups, l.log, func(at citus.Address) (*pgxpool.Pool, error) {
		size := l.cfg.Lanes + writersSpare
		pool, err := newPool(context.Background(), &l.cfg, size, "quotasvc-writer", l.writerSettings(), &at)
		if err == nil {
			pgpool.Measure(l.cfg.Metrics, "writers of "+at.String(), pool)
		}
		return pool, err
	})
}

// connectTo changes the settings of a connection so that it leads to the given node.
func connectTo(cfg *pgx.ConnConfig, node citus.Address) {
	cfg.Host, cfg.Port, cfg.Fallbacks = node.Host, node.Port, nil
	if cfg.TLSConfig != nil && cfg.TLSConfig.ServerName != "" {
		cfg.TLSConfig = cfg.TLSConfig.Clone()
		cfg.TLSConfig.ServerName = node.Host
	}
}

// writersFor returns the writers of the node that holds the plan's shard group. It returns the writers of the
// coordinator if there is no such node, if that node cannot be reached, or if the plan has no calls.
func (l *Ledger) writersFor(p *plan) *pgxpool.Pool {
	if p != nil && len(p.calls) > 0 {
		if node := l.nodes.Of(tenantOfCall(p.calls[0])); node != nil {
			return node
		}
	}
	return l.writers
}

// citusWriterSettings returns settings that override those of a writer's connection. With the first, each execution is
// planned for its parameters, so Citus knows the tenants of a statement and sends the statement to one node. With the
// second, SET LOCAL in a transaction applies on that node as well, which lock_timeout needs.
func citusWriterSettings() map[string]string {
	return map[string]string{"plan_cache_mode": "force_custom_plan", "citus.propagate_set_commands": "local"}
}

// divide divides values by the shard groups of their tenants. Groups are in the order of their first values. Without
// Citus there is only one group.
func divide[V any](l *Ledger, values []V, tenantOf func(V) string) [][]V {
	if l.cluster == nil || len(values) < 2 {
		return [][]V{values}
	}
	var out [][]V
	at := map[int]int{}
	for _, v := range values {
		group := l.GroupOf(tenantOf(v))
		i, known := at[group]
		if !known {
			i = len(out)
			at[group] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], v)
	}
	return out
}

// GroupOf returns the shard group of a tenant. Without Citus it is 0 for all tenants.
func (l *Ledger) GroupOf(tenant string) int {
	if l.cluster == nil {
		return 0
	}
	return l.cluster.Groups.Of(tenant)
}

func tenantOfCall(c *ledger.Call) string { return c.ID.Tenant }

// byGroup returns a plan for each shard group of the calls. If there is only one group, it returns p itself.
func (l *Ledger) byGroup(p *plan) []*plan {
	if len(p.calls) == 0 {
		return nil
	}
	groups := divide(l, p.calls, tenantOfCall)
	if len(groups) == 1 {
		return []*plan{p}
	}
	plans := make([]*plan, len(groups))
	for i, calls := range groups {
		plans[i] = newPlan(calls)
		plans[i].state = p.state
	}
	return plans
}

// nodeErrors maps the beginning of an error message of a node to its code. When rows are copied to a node, Citus passes
// on the node's message but not its code.
var nodeErrors = []struct{ message, code string }{
	{"duplicate key value violates unique constraint", "23505"},
	{"no partition of relation", "23514"},
	{"new row for relation", "23514"},
	{"null value in column", "23502"},
	{"insert or update on table", "23503"},
	{"canceling statement due to lock timeout", "55P03"},
	{"canceling statement due to", "57014"},
	{"deadlock detected", "40P01"},
	{"could not serialize access", "40001"},
	{"cannot execute", "25006"},
}

// codeUnclear is the code of an error of the cluster itself: a node was lost, or does not answer. After COMMIT was
// sent, the outcome of the transaction is unknown.
const codeUnclear = "08007"

// restoreCode changes the code XX000 (internal error), with which Citus passes on the errors of nodes, to PostgreSQL's
// code for the message. If the message is not in nodeErrors, the code becomes codeUnclear.
func (l *Ledger) restoreCode(err error) {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	if l.cluster == nil || !ok || pgErr.Code != "XX000" {
		return
	}
	pgErr.Code = codeUnclear
	for _, known := range nodeErrors {
		if strings.HasPrefix(pgErr.Message, known.message) {
			pgErr.Code = known.code
			return
		}
	}
}

// commitUnclear reports whether the transaction may be committed although the server answered with this error. On
// Citus, COMMIT fails when the coordinator loses the node that had to carry out the COMMIT.
func commitUnclear(pgErr *pgconn.PgError) bool {
	return strings.HasPrefix(pgErr.Code, "08") || slices.Contains([]string{"57P01", "57P02", "57P03"}, pgErr.Code)
}

// citusName reports whether a unique violation on a shard belongs to this table. Citus passes on the message, but not
// the table's name.
func citusName(pgErr *pgconn.PgError, table string) bool {
	return pgErr.TableName == "" && strings.Contains(pgErr.Message, `"`+table+"_")
}

// refreshGroups reads the shards again, in case a shard was split or moved, and checks whether the nodes answer.
func (l *Ledger) refreshGroups(ctx context.Context) {
	if l.cluster == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := l.cluster.Groups.Refresh(ctx, l.readers); err != nil {
		l.log.Warn("the shard map could not be refreshed; using the old one", "error", err)
	}
	l.nodes.Reach(ctx)
}

// dueInGroups returns due balances, divided by shard group, and the position of the earliest balance. args are the
// parameters of the statement DueBalances.
func (l *Ledger) dueInGroups(ctx context.Context, args ...any) (
	groups [][]ledger.BalanceKey, first duePosition, err error,
) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	rows, _ := l.readers.Query(ctx, l.sql["DueBalances"], args...)
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k ledger.BalanceKey, err error) {
		at := duePosition{}
		err = row.Scan(&k.Tenant, &k.Meter, &k.Subject, &at.due)
		if at.tenant = k.Tenant; first == (duePosition{}) {
			first = at
		}
		return k, err
	})
	if err != nil {
		return nil, duePosition{}, fmt.Errorf("find due balances: %w", err)
	}
	if len(keys) == 0 {
		return nil, duePosition{}, nil
	}
	groups = divide(l, keys, func(k ledger.BalanceKey) string { return k.Tenant })
	for _, g := range groups {
		slices.SortFunc(g, ledger.CompareKeys)
	}
	return groups, first, nil
}
