package verifier

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// nights is a statement that inserts the rows of n nightly verifications. Every tenth row is a verification of acme.
// The rest are verifications of all tenants. Two rows at a time have the same started_at.
const nights = `INSERT INTO verifications (verification_id, tenant_id, status, report, started_at, heartbeat_at, finished_at)
	SELECT 'night-' || lpad(n::text, 5, '0'), CASE WHEN n % 10 = 0 THEN 'acme' ELSE '' END, 'clean', jsonb_build_object('Balances', 5, 'Entries', n, 'Incremental', true),
		timestamptz '2016-01-01' + n * interval '12 hours' - (n % 2) * interval '12 hours', now(), now()
	FROM generate_series(1, $1::int) n`

func TestVerifications_NewestFirst_EachOnce(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.exec(nights, 45)
	b.exec(`INSERT INTO verifications (verification_id, tenant_id, status, report, error, started_at, heartbeat_at, finished_at) VALUES
		('lost', '', 'running', '{}', '', '2026-01-03', now() - interval '2 minutes', NULL),
		('part', 'acme', 'failed', '{"Balances": 7, "Unread": 2, "Count": 3}', '2 balances', '2026-01-02', now(), '2026-01-02 01:00Z')`)
	v := b.open(nil)
	for tenant, want := range map[string]int{"": 47, "acme": 5, "nobody": 0} {
		for _, limit := range []int{1, 2, 7, 500} {
			var all []Summary
			for q := (Query{Tenant: tenant, Limit: limit}); ; {
				page, next, err := v.Verifications(t.Context(), q)
				b.must(err)
				require.True(t, len(page) <= limit, "a page of %d has %d", limit, len(page))
				if all = append(all, page...); next == "" {
					break
				}
				q.Cursor = next
			}
			seen := map[string]bool{}
			for _, s := range all {
				seen[s.ID] = true
			}
			if len(all) != want || len(seen) != want || !slices.IsSortedFunc(all, func(x, y Summary) int { return y.StartedAt.Compare(x.StartedAt) }) {
				t.Errorf("%q by %d: %d, of which %d differ; want %d, the newest first: %+v", tenant, limit, len(all), len(seen), want, all)
			}
		}
	}
	page, _, err := v.Verifications(t.Context(), Query{Limit: 3})
	b.must(err)
	got := page[0]
	assert.True(t, got.ID == "lost" && got.Status == VerificationAbandoned && got.FinishedAt.IsZero() && got.Entries == 0, got)
	got = page[1]
	assert.True(t, got.ID == "part" && got.Tenant == "acme" && got.Balances == 7 && got.Unread == 2 &&
		got.Differences == 3 && got.Error == "2 balances" && !got.FinishedAt.IsZero(), got)
	got = page[2]
	assert.True(t, got.Entries != 0 && got.Incremental && got.Status == VerificationClean, got)
}

func TestVerifications_StrangeCursor_Refused(t *testing.T) {
	t.Parallel()
	v := newBundle(t).open(nil)
	for _, cursor := range []string{"x", "MTIz", "LTEgeA", "MSA", "OTk5OTk5OTk5OTk5OTk5OTk5OSB4", "MSAAeA", strings.Repeat("QUFB", 100)} {
		_, _, err := v.Verifications(t.Context(), Query{Limit: 1, Cursor: cursor})
		assert.True(t, errcode.Of(err) == errcode.InvalidArgument, "%q: %v", cursor, err)
	}
}

// After years of nightly verifications, the query of a page reads only the rows of the page, in the order of an
// index.
func TestVerifications_Years_AreReadByIndex(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.exec(nights, 20_000)
	b.exec("ANALYZE verifications")
	v := b.open(nil)
	for name, args := range map[string]string{
		"VerificationsPage": "'2020-01-01', 'x', 51", "VerificationsOfTenant": "'2020-01-01', 'x', 51, 'acme'",
	} {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			plan := explained(t.Context(), t, v, name, args, mode)
			assert.True(t, !strings.Contains(plan, "Sort") && !strings.Contains(plan, "Seq Scan") && !strings.Contains(plan, "Filter"), "%s with %s:\n%s", name, mode, plan)
		}
	}
}

// explained returns the plan of a statement.
func explained(ctx context.Context, t *testing.T, v *Verifier, name, args, mode string) string {
	t.Helper()
	conn, err := v.pool.Acquire(ctx)
	require.NoError(t, err)
	defer conn.Release()
	prepared := fmt.Sprintf("explain_%s_%s", name, mode)
	_, err = conn.Conn().Prepare(ctx, prepared, v.sql[name])
	require.NoError(t, err)
	_, err = conn.Exec(ctx, "SET plan_cache_mode = "+mode)
	require.NoError(t, err)
	rows, _ := conn.Query(ctx, fmt.Sprintf("EXPLAIN (COSTS OFF) EXECUTE %q(%s)", prepared, args), pgx.QueryExecModeSimpleProtocol)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(lines, "\n")
}
