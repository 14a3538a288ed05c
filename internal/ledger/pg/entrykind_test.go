package pg

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/namedsql"
)

// moved is what one unit of an entry adds to the sums of its balance and to its remaining units.
type moved struct {
	ledger.Moves

	Remaining int64
	Unknown   int64 // entries of a kind that the auditor does not have
}

// TestEntryKind_MovesMatchAuditorSums compares the table of package ledger with the auditor's SQL, which lists the kinds by
// itself.
func TestEntryKind_MovesMatchAuditorSums(t *testing.T) {
	t.Parallel()
	want := map[ledger.EntryKind]moved{}
	for _, kind := range ledger.EntryKinds() {
		m, known := kind.Moves()
		if !known {
			t.Fatalf("kind %s has no moves", kind)
		}
		want[kind] = moved{Moves: m, Remaining: m.Remaining()}
	}
	got := auditedMoves(t, ledger.EntryKinds())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("package ledger and the auditor's SQL add entries up differently (-ledger +auditor):\n%s", diff)
	}
}

func TestVerify_UnknownEntryKind_MovesNothing(t *testing.T) {
	t.Parallel()
	want := map[ledger.EntryKind]moved{"gift": {Unknown: 1}}
	if diff := cmp.Diff(want, auditedMoves(t, []ledger.EntryKind{"gift"})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// insertEntriesOfKinds gives each kind of $1 three balances: the kind is their meter, and their subject is -1, 0 or 1. Each
// balance has entry 2, with 10 units remaining, and then an entry of the kind and amount 1, after which 10 units plus the
// subject remain. Without entry 1, any remainder can be the first.
const insertEntriesOfKinds = `INSERT INTO entries (tenant_id, operation_id, line, month, seq, kind, meter, subject, period_start, grant_id, source,
		amount, remaining_after, item, created_at)
	SELECT 'acme', kind || subject, line, '2030-01-01', line + 1, CASE line WHEN 1 THEN 'denial' ELSE kind END, kind, subject, $2,
		CASE line WHEN 1 THEN 'before' ELSE 'measured' END, '', line - 1, 10 + (line - 1) * subject, 0, $2
	FROM unnest($1::text[]) AS kind, generate_series(-1, 1) AS subject, generate_series(1, 2) AS line`

// auditedMoves returns what the auditor's statements add up for one unit of each kind.
func auditedMoves(t *testing.T, kinds []ledger.EntryKind) map[ledger.EntryKind]moved {
	t.Helper()
	statements, err := namedsql.Load(os.DirFS("../audit"))
	if err != nil {
		t.Fatal(err)
	}
	b := newBundle(t)
	b.exec(insertEntriesOfKinds, kinds, time.Date(2030, 1, 10, 0, 0, 0, 0, time.UTC))
	var tenants, meters, subjects []string
	for _, kind := range kinds {
		for _, subject := range []string{"-1", "0", "1"} {
			tenants, meters, subjects = append(tenants, "acme"), append(meters, string(kind)), append(subjects, subject)
		}
	}
	out := map[ledger.EntryKind]moved{}
	b.eachRow(statements["VerifySums"], []any{tenants, meters, subjects}, func(row pgx.CollectableRow) {
		var meter, subject, grant string
		var m moved
		var none any
		err := row.Scan(&none, &meter, &subject, &none, &grant, &none, &m.Granted, &m.Refunded, &m.Used, &m.Expired, &m.Adjusted, &m.Overage,
			&none, &none, &none, &m.Owed, &m.Paid, &m.Held, &none, &none, &m.Unknown)
		if err != nil {
			t.Fatal(err)
		}
		if grant == "measured" && subject == "0" {
			out[ledger.EntryKind(meter)] = m
		}
	})
	b.eachRow(statements["VerifyChain"], []any{tenants, meters, subjects}, func(row pgx.CollectableRow) {
		var meter, subject string
		var broken int64
		var none any
		if err := row.Scan(&none, &meter, &subject, &none, &none, &none, &none, &broken, &none, &none); err != nil {
			t.Fatal(err)
		}
		if broken != 0 {
			return
		}
		m := out[ledger.EntryKind(meter)]
		if m.Remaining, err = strconv.ParseInt(subject, 10, 64); err != nil {
			t.Fatal(err)
		}
		out[ledger.EntryKind(meter)] = m
	})
	return out
}

func (b *bundle) eachRow(sql string, args []any, each func(pgx.CollectableRow)) {
	b.t.Helper()
	rows, err := b.db.Query(b.t.Context(), sql, args...)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
		each(row)
		return struct{}{}, nil
	}); err != nil {
		b.t.Fatal(err)
	}
}
