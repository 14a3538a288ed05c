package verifier

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// These are the default sizes of the tests. `make bench-verify` sets larger sizes.
const (
	largeEntries  = 12_000
	largeRange    = 5_000 // entries that one transaction reads
	largeBalances = 2_000 // each with one entry; they are more than one page
)

func sizeOf(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// large creates a balance with n entries, as debits of one unit within the last hours write them. It returns the hash
// chain of these entries.
func (b *bundle) large(n int) *ledger.Chain {
	b.t.Helper()
	b.plan("large", 1_000_000_000, "month", "")
	b.signUp("acme", "large")
	mustDo(b, debitOf("acme", "first", 1))
	chain := &ledger.Chain{}
	b.grow(chain, 3, n)
	b.exec("ANALYZE entries")
	return chain
}

// grow creates the entries from first to n of the large balance, and adds them to chain.
func (b *bundle) grow(chain *ledger.Chain, first, n int) {
	b.t.Helper()
	const step = 500_000
	for from := first; from <= n; from += step {
		b.exec(`INSERT INTO entries (tenant_id, operation_id, line, month, seq, kind, meter, subject, period_start, grant_id, source, amount,
				remaining_after, item, requested, fingerprint, created_at, metadata)
			SELECT b.tenant_id, 'bulk-' || g, 1, date_trunc('month', b.updated_at AT TIME ZONE 'UTC')::date, g, 'debit', b.meter, b.subject, b.period_start,
				b.head_grant, b.head_source, 1, 1000000000 - g + 1, 0, 1, sha256(g::text::bytea), b.updated_at, '{"route": "/search"}'
			FROM balances b, generate_series($1::integer, least($1 + $3, $2 + 1) - 1) g`, from, n, step)
	}
	b.exec(`UPDATE balances SET seq = $1::bigint, used = $1::bigint - 1, head_remaining = 1000000001 - $1::bigint`, n)
	rows, err := b.db.Query(b.t.Context(), `SELECT tenant_id, meter, subject, seq, operation_id, line, kind, period_start, grant_id, source, amount, remaining_after, item,
		coalesce(requested, 0), fingerprint, created_at, effective_at, coalesce(op_subject, ''), detail::text, metadata::text, coalesce(actor, '')
		FROM entries WHERE seq > $1 ORDER BY seq`, chain.Last)
	b.must(err)
	defer rows.Close()
	for rows.Next() {
		var e ledger.Entry
		var effective *time.Time
		var detail, metadata *string
		b.must(rows.Scan(&e.Tenant, &e.Meter, &e.Subject, &e.Seq, &e.OperationID, &e.Line, &e.Kind, &e.PeriodStart, &e.Grant, &e.Source, &e.Amount, &e.RemainingAfter,
			&e.Item, &e.Requested, &e.Fingerprint, &e.CreatedAt, &effective, &e.OpSubject, &detail, &metadata, &e.Actor))
		if effective != nil {
			e.EffectiveAt = *effective
		}
		if detail != nil {
			e.Detail = []byte(*detail)
		}
		if metadata != nil {
			e.Metadata = []byte(*metadata)
		}
		chain.Extend(&e)
	}
	b.must(rows.Err())
	stored := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(chain.From)), uint64(chain.Last))
	b.exec("UPDATE balances SET chain = $1", append(stored, chain.Head[:]...))
}

// used returns the CPU time of this process.
func used(t testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure runs do, which processes n rows. It logs the rows per second, the CPU time of this process (not of the
// server) per row, and the largest heap so far.
func (b *bundle) measure(what string, n int, do func()) {
	b.t.Helper()
	began, before := time.Now(), used(b.t)
	do()
	took, cpu := time.Since(began), used(b.t)-before
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	heap := m.HeapSys // memory from the system, which does not shrink: the largest heap so far
	b.t.Logf("%-45s %9d in %8s: %8.0f/s, %5.2f µs of CPU each, heap at most %d MB", what, n, took.Round(time.Millisecond), float64(n)/took.Seconds(),
		float64(cpu.Nanoseconds())/1e3/float64(n), heap>>20)
	assert.True(b.t, heap <= 512<<20, "%s: the heap has grown to %d MB", what, heap>>20)
}

// One balance with very many entries is verified and sealed in ranges, with bounded memory.
func TestVerify_LargeBalance_IsReadInRanges(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	n := sizeOf(t, "QUOTASVC_VERIFY_ENTRIES", largeEntries)
	if n == largeEntries {
		b.rangeEntries = largeRange
		b.Verifier = b.open(nil)
	}
	b.nextDay()
	chain := b.large(n)
	verify := func(what string, full bool, entries int64) {
		b.measure(what, int(entries), func() {
			report := b.verified(Options{Full: full})
			assert.True(t, report.Clean() && report.Entries == entries,
				"%s: %d entries, %v", what, report.Entries, report.Differences)
		})
	}
	verify("full verification, entries", true, int64(n))
	b.wholeUpTo = 0
	mustDo(b, debitOf("acme", "next", 1))
	verify("incremental verification, one new entry", false, 1)
	grown := n + n/4
	b.grow(chain, n+2, grown)
	verify("incremental verification, new entries", false, int64(grown-n-1))
	b.exec("UPDATE entries SET fingerprint = sha256('x') WHERE seq = $1", n/2)
	report := b.mustVerify() // incremental passes skip old entries
	assert.True(t, report.Entries == 0 && report.Unchanged == 1, "a pass without new entries: %+v", report)
	report = b.verified(Options{Full: true})
	assert.EqualValues(t, 1, report.Count, "a full pass over an entry that was changed: %+v", report)
	b.exec("UPDATE entries SET fingerprint = sha256(($1::integer)::text::bytea) WHERE seq = $1", n/2)
	n = grown
	b.nextDay()
	b.measure("seal, entries", n, func() { b.sealDay(time.Time{}, nil) })
	day := b.today().AddDate(0, 0, -1)
	sealed, err := b.SealOfDay(t.Context(), day)
	b.must(err)
	b.measure("check of a seal, entries", n, func() { b.mustCheck(sealed) })
	b.exec("UPDATE entries SET requested = 2 WHERE seq = $1", n/2)
	assert.EqualValues(t, 1, b.check(sealed).Count, "an entry was changed")
}

// A verification and a seal of many balances have a low cost per balance. The cost is lower for balances without new
// entries, which are not read.
func TestVerify_ManyBalances_UnchangedOnesAreNotRead(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	n := sizeOf(t, "QUOTASVC_VERIFY_BALANCES", largeBalances)
	b.nextDay()
	b.simple("acme", 1000)
	mustDo(b, debitOf("acme", "first", 1))
	// Each new balance is a copy of acme's balance without a hash chain. chain_start is set to infinity, so the
	// verifier does not expect a chain.
	b.exec("UPDATE chain_start SET at = 'infinity'")
	b.exec(`INSERT INTO tenants SELECT (jsonb_populate_record(o, jsonb_build_object('tenant_id', 't' || g))).* FROM tenants o, generate_series(1, $1::integer) g`, n)
	for _, table := range []string{"tenant_terms", "entries", "grants", "balances"} {
		b.exec(fmt.Sprintf(`INSERT INTO %[1]s SELECT (r).* FROM (SELECT jsonb_populate_record(o, jsonb_build_object('tenant_id', 't' || g, 'chain', NULL)) AS r
			FROM %[1]s o, generate_series(1, $1::integer) g WHERE o.tenant_id = 'acme') AS x`, table), n)
	}
	b.exec("ANALYZE")
	verify := func(what string, full bool, unchanged int64) {
		b.measure(what, n, func() {
			report := b.verified(Options{Full: full})
			for _, d := range report.Differences {
				t.Errorf("%s: %s", what, d)
			}
			assert.True(t, report.Balances == int64(n+1) && report.Unchanged == unchanged,
				"%s: %d balances, %d unchanged", what, report.Balances, report.Unchanged)
		})
	}
	verify("full verification, balances", true, 0)
	b.wholeUpTo = 0
	verify("incremental verification, balances", false, int64(n+1))
	b.nextDay()
	b.measure("seal, balances with an entry", n, func() { b.sealDay(time.Time{}, nil) })
	mustDo(b, debitOf("acme", "second", 1))
	b.nextDay()
	b.measure("seal, balances without an entry", n, func() {
		assert.EqualValues(t, 1, b.sealDay(time.Time{}, nil).Heads, "heads")
	})
	sealed, err := b.SealOfDay(t.Context(), b.today().AddDate(0, 0, -1))
	b.must(err)
	b.measure("check of a seal, balances", n, func() {
		report := b.mustCheck(sealed)
		assert.Equal(t, int64(2*n+4), report.Heads, "balances, terms, a plan, and a balance again: %+v", report)
	})
}
