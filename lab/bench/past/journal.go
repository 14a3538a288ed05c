package past

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

//go:embed tenants.sql
var tenantsSQL string

// Journal is a journal that is written without the service. Each tenant has one balance with its allowance, and a
// number of debits of one unit. The rows and their hash chain are as the service would have written them, so
// `quotasvc verify` accepts them. Write takes two or three minutes for 20M entries; the service would take six to
// twelve.
type Journal struct {
	Tenants int
	Debits  int           // debits of each tenant, at least 1
	Anchor  time.Time     // beginning of the period
	End     time.Time     // end of the period
	Every   string        // unit of the allowance
	From    time.Time     // beginning of the time in which debits were made
	Span    time.Duration // from From to the last debit; the debits divide it evenly
}

// Meter is the id of the meter of all balances.
const Meter = "api_calls"

// TenantID returns the id of tenant number v; numbers begin at 0.
func TenantID(v int) string { return fmt.Sprintf("t-%06d", v) }

const (
	historyAmount = 1_000_000_000_000 // amount of the allowance, as in tenants.sql
	historyPart   = 250_000           // entries per COPY; a COPY takes some seconds, so progress is visible

	// historyFill is the fill factor, in percent, of the index pages of the journal's months. With random keys the
	// pages reach this value in the long run. Ordered keys would fill the pages, and the first live debits would
	// split all of them.
	historyFill = 70

	// rollupStep is the number of entries of a balance between two rows of sums (rollups). The service would write
	// these rows in the background, while it handles the load.
	rollupStep = 400
)

// Yearly returns a journal of balances with a period of a year, which does not end soon. The debits are between the
// beginning of the previous month and the present.
func Yearly(tenants, debits int, now time.Time) Journal {
	now = now.UTC().Truncate(time.Second)
	last := time.Date(now.Year(), now.Month()-1, 1, 0, 0, 0, 0, time.UTC)
	anchor := last.AddDate(0, -1, 0)
	return Journal{Tenants: tenants, Debits: debits, Anchor: anchor, End: anchor.AddDate(1, 0, 0), Every: "year", From: last, Span: now.Add(-time.Minute).Sub(last)}
}

// Entries returns the number of entries of the journal.
func (h *Journal) Entries() int64 { return int64(h.Tenants) * int64(h.Debits+1) }

// at returns the instant of debit i. The first debit has the number 1.
func (h *Journal) at(i int) time.Time {
	return h.From.Add(h.Span / time.Duration(h.Debits) * time.Duration(i)).Truncate(time.Microsecond)
}

func (h *Journal) grant() string { return "allowance:" + h.Anchor.Format(time.RFC3339Nano) }
func (h *Journal) operation() string {
	return "§allowance/" + Meter + "//" + h.Anchor.Format(time.RFC3339Nano)
}

// Write stores the tenants, the journal, the balances and their grants. It calls the function `done` with the share
// that is already written.
func (h *Journal) Write(ctx context.Context, url string, done func(share float64)) error {
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = db.Close(ctx) }() // everything is committed
	seed := strings.NewReplacer("$TENANTS", fmt.Sprint(h.Tenants), "$ANCHOR", h.Anchor.Format(time.RFC3339Nano), "$EVERY", h.Every).Replace(tenantsSQL)
	if _, err := db.Exec(ctx, seed, pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("tenants: %w", err)
	}
	if err := h.fillIndexes(ctx, db, historyFill); err != nil {
		return err
	}
	if err := h.inParts(ctx, url, done); err != nil {
		return err
	}
	for _, statement := range []string{
		fmt.Sprintf(`INSERT INTO rollups (tenant_id, meter, subject, seq, created_at, operations, kinds, sources, amounts, counts)
			SELECT tenant_id, meter, subject, seq, created_at, seq - 1, '{debit,grant}', '{allowance,allowance}', ARRAY[seq - 1, %d]::numeric[], ARRAY[seq - 1, 1]
			FROM entries WHERE seq %% %d = 0`, historyAmount, rollupStep),
		"INSERT INTO journal_months SELECT DISTINCT m FROM (VALUES (date_trunc('month', $1::timestamptz, 'UTC')::date), (date_trunc('month', $2::timestamptz, 'UTC')::date)) AS v (m)",
	} {
		var args []any
		if strings.Contains(statement, "$1") {
			args = []any{h.at(1), h.at(h.Debits)}
		} else if h.Debits < rollupStep {
			continue
		}
		if _, err := db.Exec(ctx, statement, args...); err != nil {
			return fmt.Errorf("sums and months: %w", err)
		}
	}
	// Without this VACUUM, autovacuum would do the same work during the load.
	if _, err := db.Exec(ctx, "VACUUM (ANALYZE) entries, balances, grants, tenants, tenant_terms, rollups"); err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	return nil
}

// fillIndexes sets the fill factor of the indexes of all months.
func (h *Journal) fillIndexes(ctx context.Context, db *pgx.Conn, percent int) error {
	rows, err := db.Query(ctx, `SELECT i.indexrelid::regclass::text FROM pg_inherits n JOIN pg_index i ON i.indrelid = n.inhrelid WHERE n.inhparent = 'entries'::regclass`)
	if err != nil {
		return fmt.Errorf("indexes: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("indexes: %w", err)
	}
	for _, name := range names {
		if _, err := db.Exec(ctx, fmt.Sprintf("ALTER INDEX %s SET (fillfactor = %d)", name, percent)); err != nil {
			return fmt.Errorf("index %s: %w", name, err)
		}
	}
	return nil
}

// inParts writes the entries, balances and grants on several connections: one per core, at most four.
func (h *Journal) inParts(ctx context.Context, url string, done func(share float64)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := min(runtime.NumCPU(), 4, h.Tenants)
	each := max(1, historyPart/(h.Debits+1)) // tenants per part
	errs := make([]error, workers)
	var mu sync.Mutex
	written := 0
	var wg sync.WaitGroup
	for w := range workers {
		first, last := h.Tenants*w/workers, h.Tenants*(w+1)/workers
		wg.Go(func() {
			if errs[w] = h.parts(ctx, url, first, last, each, func(n int) {
				mu.Lock()
				defer mu.Unlock()
				written += n
				done(float64(written) / float64(h.Tenants))
			}); errs[w] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (h *Journal) parts(ctx context.Context, url string, first, last, each int, done func(n int)) error {
	db, err := pgconn.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = db.Close(ctx) }() // each COPY is a transaction of its own
	for from := first; from < last; from += each {
		n := min(each, last-from)
		chains := make([]ledger.Chain, n)
		for _, table := range []struct {
			sql  string
			rows io.Reader
		}{
			{copyEntriesSQL, newCopyStream(h.entryRows(from, chains))},
			{copyBalancesSQL, newCopyStream(h.balanceRows(from, chains))},
			{copyGrantsSQL, newCopyStream(h.grantRows(from, n))},
		} {
			if _, err := db.CopyFrom(ctx, table.rows, table.sql); err != nil {
				return fmt.Errorf("%s: %w", table.sql, err)
			}
		}
		done(n)
	}
	return nil
}

const (
	copyEntriesSQL = `COPY entries (tenant_id, operation_id, line, month, seq, kind, meter, subject, period_start, grant_id, source, amount, remaining_after,
		item, requested, fingerprint, created_at, effective_at, actor) FROM STDIN BINARY`
	copyBalancesSQL = `COPY balances (tenant_id, meter, seq, plan, plan_version, allowance, renews, period_start, period_end, granted, used, head_grant,
		head_source, head_remaining, next_event_at, updated_at, roll_at, chain) FROM STDIN BINARY`
	copyGrantsSQL = `COPY grants (tenant_id, meter, grant_id, source, amount, priority, effective_at, expires_at, operation_id, created_at, remaining, status) FROM STDIN BINARY`

	historyActor = "bootstrap" // the same as in debits with the bootstrap key
)

// entryRows returns a function that appends the next entry. The entries are those of consecutive tenants, from the
// number `first` on. entryRows also extends the tenants' chains.
func (h *Journal) entryRows(first int, chains []ledger.Chain) func(b []byte) []byte {
	fingerprint := []byte("of generated row")
	at, i := 0, 0 // indexes of the current tenant and of its current entry
	e := ledger.Entry{Line: 1, PeriodStart: h.Anchor, Grant: h.grant(), Source: ledger.SourceAllowance}
	e.Meter = Meter
	key := make([]byte, 0, 16)
	return func(b []byte) []byte {
		if at == len(chains) {
			return b
		}
		e.Tenant, e.Seq = TenantID(first+at), int64(i+1)
		if i == 0 {
			e.Kind, e.OperationID, e.Amount, e.Requested, e.Fingerprint, e.Actor = ledger.EntryGrant, h.operation(), historyAmount, 0, nil, ""
			e.CreatedAt, e.EffectiveAt = h.at(1), h.Anchor
		} else {
			key = fmt.Appendf(key[:0], "g%015x", uint64(first+at)*uint64(h.Debits)+uint64(i)) // not a key of the load
			e.Kind, e.OperationID, e.Amount, e.Requested, e.Fingerprint, e.Actor = ledger.EntryDebit, string(key), 1, 1, fingerprint, historyActor
			e.CreatedAt, e.EffectiveAt = h.at(i), time.Time{}
		}
		e.RemainingAfter = historyAmount - int64(i)
		chains[at].Extend(&e)
		b = appendEntryRow(b, &e)
		if i++; i > h.Debits {
			at, i = at+1, 0
		}
		return b
	}
}

func appendEntryRow(b []byte, e *ledger.Entry) []byte {
	created := e.CreatedAt
	b = copyText(copyText(copyRow(b, 19), e.Tenant), e.OperationID)
	b = copyDay(copyInteger(b, e.Line), time.Date(created.Year(), created.Month(), 1, 0, 0, 0, 0, time.UTC))
	b = copyText(copyText(copyText(copyBigint(b, e.Seq), string(e.Kind)), e.Meter), e.Subject)
	b = copyText(copyText(copyInstant(b, e.PeriodStart), e.Grant), string(e.Source))
	b = copyInteger(copyBigint(copyBigint(b, e.Amount), e.RemainingAfter), e.Item)
	if e.Kind == ledger.EntryGrant {
		return copyNull(copyInstant(copyInstant(copyNull(copyNull(b)), created), e.EffectiveAt))
	}
	return copyText(copyNull(copyInstant(copyText(copyBigint(b, e.Requested), e.Fingerprint), created)), e.Actor)
}

func (h *Journal) balanceRows(first int, chains []ledger.Chain) func(b []byte) []byte {
	at := 0
	return func(b []byte) []byte {
		if at == len(chains) {
			return b
		}
		c := &chains[at]
		chain := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(c.From)), uint64(c.Last))
		b = copyText(copyText(copyRow(b, 18), TenantID(first+at)), Meter)
		b = copyBigint(copyInteger(copyText(copyBigint(b, int64(h.Debits+1)), "bench"), 1), historyAmount)
		b = append(binary.BigEndian.AppendUint32(b, 1), 1) // the column renews
		b = copyInstant(copyInstant(b, h.Anchor), h.End)
		b = copyText(copyText(copyBigint(copyBigint(b, historyAmount), int64(h.Debits)), h.grant()), string(ledger.SourceAllowance))
		b = copyInstant(copyInstant(copyInstant(copyBigint(b, historyAmount-int64(h.Debits)), h.End), h.at(h.Debits)), h.End)
		b = copyText(b, append(chain, c.Head[:]...))
		at++
		return b
	}
}

func (h *Journal) grantRows(first, n int) func(b []byte) []byte {
	at := 0
	return func(b []byte) []byte {
		if at == n {
			return b
		}
		b = copyText(copyText(copyText(copyText(copyRow(b, 12), TenantID(first+at)), Meter), h.grant()), string(ledger.SourceAllowance))
		b = copyInstant(copyInstant(copyInteger(copyBigint(b, historyAmount), ledger.PriorityAllowance), h.Anchor), h.End)
		b = copyText(copyBigint(copyInstant(copyText(b, h.operation()), h.at(1)), historyAmount), string(ledger.GrantActive))
		at++
		return b
	}
}
