package verifier

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// corruption says how a column of a row is changed, and why verify does not see the change, if it does not. An empty
// set changes the value as its type permits, and an empty row is that of the table.
type corruption struct{ row, set, unseen string }

// ledgerRows has a row of each table of the ledger.
var ledgerRows = map[string]string{
	"balances": own, "periods": oldest, "grants": "grant_id = 'paid'",
	"entries": "tenant_id = 'acme' AND operation_id = 'd1'", "holds": "hold_id = 'h1'", "hold_lines": "hold_id = 'h2'",
	"refunds":      "tenant_id = 'buyer'",
	"overflows":    "tenant_id = 'buyer'",
	"tenant_terms": "tenant_id = 'acme'", "plans": "plan = 'hourly'", "plan_allowances": "plan = 'hourly'",
	"terms_chains": "tenant_id = 'acme'",
	"gauges":       "true", "gauge_entries": "true",
}

const (
	noGaugeChain = "entries of gauges have no hash chain"
	notRead      = "only the version before reads it"
)

// corruptions lists the columns that need something else than their table's row and their type. verify sees a change
// of each other column.
var corruptions = map[string]corruption{
	"balances.span_used": {unseen: notRead},
	"balances.span_end":  {unseen: notRead},

	"periods.idle":        {row: "idle > 0 AND tenant_id = 'saver'"},
	"periods.terms_at":    {row: "idle > 0 AND tenant_id = 'saver'"},
	"grants.status":       {row: "grant_id = 'used'", set: "'active'"},
	"grants.expires_at":   {row: "source = 'allowance' AND status = 'active' AND tenant_id = 'acme'"},
	"hold_lines.refunded": {row: "hold_id = 'h3'"},

	"overflows.operations": {unseen: "the entries of one balance do not say it"},

	"gauge_entries.actor":        {unseen: noGaugeChain},
	"gauge_entries.allowed":      {set: "2"},
	"gauge_entries.fingerprint":  {unseen: noGaugeChain},
	"gauge_entries.operation_id": {unseen: noGaugeChain},

	"tenant_terms.anchor":    {set: "anchor + interval '1 minute'"},
	"tenant_terms.overrides": {set: `'{"api_calls": 5}'`},
	"tenant_terms.timezone":  {row: "tenant_id = 'zoned'", set: "'Asia/Kolkata'"},

	"plan_allowances.rollover_max":          {row: "plan = 'rolling'", set: "140"},
	"plan_allowances.overage_at_period_end": {row: "plan = 'owing'", set: "NULL"},
	"plan_allowances.per_subject":           {row: "plan = 'ratio'", set: "9000"},
	"plan_allowances.expires_in_days":       {row: "plan = 'trial'"},
}

// unverified says why verify reads no column of a table.
var unverified = map[string]string{
	"tenants":            "present settings: periods open by tenant_terms",
	"meters":             "names; amounts belong to balances",
	"checkpoints":        "results of verify itself: a full pass does not use them, except archived ones",
	"full_pass":          "the position of verify itself",
	"verifications":      "results of verify itself",
	"chain_start":        "one instant: entries before it may be outside of the hash chain",
	"seals":              "verify --seal compares them with a file that somebody else holds",
	"sealed_heads":       "verify --seal compares them with a file that somebody else holds",
	"archives":           "the archive's own check compares them with its files",
	"rollups":            "sums of entries that reports read; verify does not compare them yet",
	"journal_months":     "where keys are looked up; the next write adds what is missing",
	"grant_reminders":    "events to be emitted",
	"event_marks":        "events that were emitted",
	"rolls":              "progress of rolls",
	"roll_turn":          "which roll runs",
	"database_identity":  "the name of the database",
	"goose_db_version":   "migrations",
	"audit":              "no part of the ledger: who changed what",
	"tenant_changes":     "no part of the ledger: answers to repeated requests",
	"blocks":             "no part of the ledger: who is refused",
	"limits":             "no part of the ledger: rates",
	"limit_overrides":    "no part of the ledger: rates",
	"denial_counts":      "no part of the ledger: refusals",
	"denials_recent":     "no part of the ledger: refusals",
	"shadow_counts":      "no part of the ledger: refusals",
	"events":             "no part of the ledger: what was told",
	"event_listing":      "no part of the ledger: what was told",
	"webhooks":           "no part of the ledger: who is told",
	"webhook_secrets":    "no part of the ledger: who is told",
	"webhook_deliveries": "no part of the ledger: who was told",
	"keys":               "no part of the ledger: who may call",
	"key_secrets":        "no part of the ledger: who may call",
	"signing_keys":       "no part of the ledger: who may call",
	"console_sessions":   "no part of the ledger: who may call",
	"portal_sessions":    "no part of the ledger: who may call",
	"river_job":          "no part of the ledger: work in the background",
	"river_leader":       "no part of the ledger: work in the background",
	"river_migration":    "no part of the ledger: work in the background",
	"river_notification": "no part of the ledger: work in the background",
	"river_queue":        "no part of the ledger: work in the background",
}

// moreRows adds rows whose columns the other rows do not use: holds for which credits pay at 1 for 1,000, a cap of a
// subject, days of the calendar in another zone, a trial, and a gauge.
func (b *bundle) moreRows() *bundle {
	b.t.Helper()
	b.plan("ratio", 6000, "day", "ratio_meter = 'credits', ratio_units = 1, ratio_per = 1000, per_subject = 8000")
	b.plan("calendar", 10, "day", "anchor = 'calendar'")
	b.plan("trial", 10, "once", "expires_in_days = 14")
	for tenant, plan := range map[string]string{"buyer": "ratio", "zoned": "calendar", "visitor": "trial"} {
		b.signUp(tenant, plan)
	}
	mustDo(b, debitOf("zoned", "d1", 1))
	mustDo(b, debitOf("visitor", "d1", 1))
	capped := debitOf("buyer", "d1", 6000)
	capped.Subject = "ann"
	mustDo(b, capped)
	mustDo(b, topupOf("buyer", "g", "credits", 20))
	captured := func(hold, key string, amount int64) {
		b.t.Helper()
		mustDo(b, &ledger.HoldChange{
			Tenant: "buyer", Key: key, HoldID: hold, Action: ledger.ActionCapture,
			Items: []ledger.Item{{Meter: "api_calls", Amount: amount}},
		})
	}
	mustDo(b, holdOf("buyer", "k2", "h2", 2000))
	captured("h2", "c1", 1500)
	mustDo(b, holdOf("buyer", "k3", "h3", 5000))
	captured("h3", "c2", 2000)
	captured("h3", "c3", 700)
	mustDo(b, &ledger.Refund{Tenant: "buyer", Key: "r", OperationID: "c2", Amount: 1500})
	b.exec(`INSERT INTO gauges (tenant_id, meter, subject, value, seq, updated_at)
		VALUES ('acme', 'seats', '', 3, 1, '2026-03-01')`)
	b.exec(`INSERT INTO gauge_entries
		(tenant_id, meter, subject, seq, operation_id, fingerprint, before, after, allowed, created_at)
		VALUES ('acme', 'seats', '', 1, 'k', '', 0, 3, 5, '2026-03-01')`)
	return b
}

// columnOf is a row of information_schema.columns.
type columnOf struct{ Table, Column, Type string }

// otherValue returns an expression that differs from the value of the column.
func (c *columnOf) otherValue() string {
	expression := map[string]string{
		"text": "coalesce(%s, '') || 'x'", "bigint": "coalesce(%s, 0) + 1", "integer": "coalesce(%s, 0) + 1",
		"boolean": "NOT %s", "date": "%s + 31", "timestamp with time zone": "coalesce(%s, now()) + interval '1 day'",
		"jsonb": `coalesce(%s, '{}') || '{"x": 1}'`,
		"bytea": `coalesce(%s, '') || '\x00'`, "ARRAY": "coalesce(%s[:0], '{7}')",
	}[c.Type]
	return fmt.Sprintf(expression, c.Column)
}

// Each column of the database is listed here: its corruption is seen, or a sentence says why it is not.
func TestVerify_EveryColumn_CorruptionIsSeenOrExplained(t *testing.T) {
	t.Parallel()
	notOnCitus(t)
	b := newBundle(t).history().idleRuns().moreRows()
	b.mustVerify()
	b.uncheck()
	rows, err := b.db.Query(t.Context(), `SELECT c.table_name::text, c.column_name::text, c.data_type::text
		FROM information_schema.columns c
		JOIN pg_class r ON r.relname = c.table_name AND r.relnamespace = c.table_schema::regnamespace
			AND r.relkind IN ('r', 'p') AND NOT r.relispartition
		WHERE c.table_schema = 'public'
		ORDER BY c.table_name, c.ordinal_position`)
	b.must(err)
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[columnOf])
	b.must(err)
	known := maps.Clone(corruptions)
	for _, c := range columns {
		row, ofLedger := ledgerRows[c.Table]
		if !ofLedger {
			assert.NotEmpty(t, unverified[c.Table], "table %s is new: list it, or say why it is not read", c.Table)
			continue
		}
		name := c.Table + "." + c.Column
		how := known[name]
		delete(known, name)
		if how.row == "" {
			how.row = row
		}
		if how.set == "" {
			how.set = c.otherValue()
		}
		change := fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", c.Table, c.Column, how.set, how.row)
		report := b.verifyDamaged(damage{name, change, ""})
		if how.unseen == "" {
			assert.NotZero(t, report.Count, "a change of %s is not seen", name)
		} else {
			assert.Zero(t, report.Count, "a change of %s is seen now (%s): %v", name, how.unseen, report.Differences)
		}
	}
	require.Empty(t, slices.Collect(maps.Keys(known)), "columns that do not exist")
	b.mustVerify()
}
