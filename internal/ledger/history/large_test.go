package history

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// largeEntries is the size of the large balance in the suite; QUOTASVC_HISTORY_ENTRIES sets another one (`make bench-history`).
const largeEntries = 200_000

// large makes a balance with n entries over the last 31 days, and the sums of its journal. It makes them by SQL, as debits of one unit would.
func (b *bundle) large(n int) ledger.BalanceKey {
	b.t.Helper()
	at := time.Now().UTC().AddDate(0, 0, -40)
	b.allowance("large", "api_calls", 1_000_000_000, "year", "tenant")
	b.tenant("acme", "large", at, at)
	must(b, debitOf("acme", "first", 1))
	b.rewind(31 * 24 * time.Hour)
	b.exec("UPDATE entries SET month = date_trunc('month', created_at AT TIME ZONE 'UTC')::date")
	const step = 500_000
	for from := 3; from <= n; from += step {
		b.exec(`INSERT INTO entries (tenant_id, operation_id, line, month, seq, kind, meter, subject, period_start, grant_id, source, amount,
				remaining_after, item, requested, created_at)
			SELECT b.tenant_id, 'bulk-' || s.seq, 1, date_trunc('month', s.at AT TIME ZONE 'UTC')::date, s.seq, 'debit', b.meter, b.subject, b.period_start, b.head_grant, b.head_source, 1,
				1000000000 - s.seq + 1, 0, 1, s.at
			FROM balances b, LATERAL (SELECT g AS seq, now() - (interval '31 days') * (1 - g / $2::float8) - interval '1 second' AS at FROM generate_series($1::integer, least($1 + $3, $2 + 1) - 1) g) s`, from, n, step)
	}
	b.exec(`UPDATE balances SET seq = $1::bigint, used = $1::bigint - 1, head_remaining = 1000000001 - $1::bigint, updated_at = now() - interval '1 second'`, n)
	b.exec("ANALYZE entries")
	began := time.Now()
	b.check(b.rollups(rollupEvery).Pass(b.t.Context()))
	b.t.Logf("sums of %d entries written in %s", n, time.Since(began).Round(time.Millisecond))
	return ledger.BalanceKey{Tenant: "acme", Meter: "api_calls"}
}

func (b *bundle) largeSize() int {
	b.t.Helper()
	text := os.Getenv("QUOTASVC_HISTORY_ENTRIES")
	if text == "" {
		return largeEntries
	}
	n, err := strconv.Atoi(text)
	b.check(err)
	return n
}

// cost is what a statement reads.
type cost struct{ rows, buffers int64 }

// explain runs a statement of the package and returns what it reads of the tables.
func (b *bundle) explain(statement string, args ...any) cost {
	b.t.Helper()
	conn, err := b.primary.Acquire(b.t.Context())
	b.check(err)
	defer conn.Release()
	var raw []byte
	b.check(conn.QueryRow(b.t.Context(), "EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT JSON) "+statement, args...).Scan(&raw))
	type node struct {
		Relation string  `json:"Relation Name"`
		Rows     float64 `json:"Actual Rows"`
		Loops    float64 `json:"Actual Loops"`
		Removed  float64 `json:"Rows Removed by Filter"`
		Hit      int64   `json:"Shared Hit Blocks"`
		Read     int64   `json:"Shared Read Blocks"`
		Plans    []node  `json:"Plans"`
	}
	var tree []struct{ Plan node }
	b.check(json.Unmarshal(raw, &tree))
	c := cost{buffers: tree[0].Plan.Hit + tree[0].Plan.Read}
	var walk func(n *node)
	walk = func(n *node) {
		if n.Relation != "" {
			c.rows += int64((n.Rows + n.Removed) * n.Loops)
		}
		for i := range n.Plans {
			walk(&n.Plans[i])
		}
	}
	walk(&tree[0].Plan)
	return c
}

// A question about a large balance reads a few thousand rows, and not the balance's entries.
func TestReports_LargeBalance_ReadFewRows(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	n := b.largeSize()
	k := b.large(n)
	now, last := time.Now().UTC(), b.lastMonth()
	day := now.AddDate(0, 0, -10)
	for what, q := range map[string]struct {
		bound     int64
		statement string
		args      []any
	}{
		"entry at an instant": {200, "SeqAt", []any{k.Tenant, k.Meter, k.Subject, day, 0, n, last}},
		"sums of a period":    {2*rollupEvery + 10, "SumsBetween", []any{k.Tenant, k.Meter, k.Subject, 0, n - 5, last}},
		"sums of a part":      {4*rollupEvery + 10, "SumsBetween", []any{k.Tenant, k.Meter, k.Subject, n / 3, n / 2, last}},
		"late entries":        {10, "LateSums", []any{k.Tenant, k.Meter, k.Subject, n / 2, n, day, last}},
		"use by day, 31 days": {int64(35*rollupEvery + 2*n/rollupEvery), "UsageBetween", []any{k.Tenant, k.Meter, k.Subject, 3, n, "day", "UTC", last}},
		"use by month":        {int64(5*rollupEvery + 2*n/rollupEvery), "UsageBetween", []any{k.Tenant, k.Meter, k.Subject, 3, n, "month", "UTC", last}},
	} {
		got := b.explain(b.sql[q.statement], q.args...)
		t.Logf("%-20s %6d rows, %6d buffers", what, got.rows, got.buffers)
		if got.rows > q.bound || got.rows == 0 {
			t.Errorf("%s: %d rows read, want 1 to %d", what, got.rows, q.bound)
		}
	}
	b.timed("balance as of an instant of the open period", func() error {
		_, err := b.BalanceAsOf(t.Context(), k.Tenant, k.Meter, k.Subject, day)
		return err
	})
	b.timed("statement of the open period", func() error {
		_, err := b.StatementAt(t.Context(), k.Tenant, k.Meter, k.Subject, now)
		return err
	})
	spans := map[UsageStep]int{UsageByDay: 30}
	if os.Getenv("QUOTASVC_HISTORY_ENTRIES") != "" {
		spans[UsageByHour] = 5 // days; it reads up to 500 entries per hour, which is all of them in the suite's size
	}
	for step, days := range spans {
		b.timed(fmt.Sprintf("use by %s over %d days", step, days), func() error {
			_, err := b.Usage(t.Context(), UsageQuery{Tenant: k.Tenant, Meter: k.Meter, From: now.AddDate(0, 0, -days), To: now, Step: step})
			return err
		})
	}
	b.timed("first entries of the last hour", func() error {
		_, err := b.Entries(t.Context(), EntryQuery{Tenant: k.Tenant, Meter: k.Meter, From: now.Add(-time.Hour), Limit: 100})
		return err
	})
	b.timed("entries of a kind that there is none of", func() error {
		_, err := b.Entries(t.Context(), EntryQuery{Tenant: k.Tenant, Kind: ledger.EntryRefund, Limit: 100})
		return err
	})
	b.timed("entries of a subject that there is none of", func() error {
		_, err := b.Entries(t.Context(), EntryQuery{Tenant: k.Tenant, Meter: k.Meter, Subject: "nobody", Limit: 100})
		return err
	})
}

// timed logs the best of three runs. The suite's machine may be busy: what is read is bounded above, and times are for the large form.
func (b *bundle) timed(what string, ask func() error) {
	b.t.Helper()
	best := time.Hour
	for range 3 {
		began := time.Now()
		if err := ask(); err != nil {
			b.t.Errorf("%s: %v", what, err)
		}
		best = min(best, time.Since(began))
	}
	b.t.Logf("%-45s %s", what, best.Round(10*time.Microsecond))
	if os.Getenv("QUOTASVC_HISTORY_ENTRIES") != "" && best > 100*time.Millisecond && !strings.Contains(what, "hour over") {
		b.t.Error(fmt.Sprint(what, " took ", best))
	}
}
