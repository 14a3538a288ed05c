package archive

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// answers maps the name of each read about a tenant to the answer.
type answers map[string]any

// ask runs all kinds of reads about a tenant in [from, now].
func (b *bundle) ask(tenant string, from time.Time, operations ...string) answers {
	b.t.Helper()
	ctx, out := b.t.Context(), answers{}
	put := func(what string, answer any, err error) {
		if e := errcode.Of(err); e != "" {
			answer = e
		}
		out[what] = answer
	}
	now := b.at
	for _, meter := range []string{"calls", "credits"} {
		balance, err := b.Balance(ctx, tenant, meter, "")
		if err == nil {
			balance.AsOf = time.Time{}
		}
		put("balance "+meter, balance, err)
		for at := from; at.Before(now); at = at.AddDate(0, 0, 5).Add(7 * time.Hour) {
			past, err := b.history.BalanceAsOf(ctx, tenant, meter, "", at)
			put("balance "+meter+" at "+at.Format(time.RFC3339), past, err)
			statement, err := b.history.StatementAt(ctx, tenant, meter, "", at)
			if err == nil {
				statement.AsOf = time.Time{}
			}
			put("statement "+meter+" at "+at.Format(time.RFC3339), statement, err)
		}
		usage, err := b.history.Usage(ctx, history.UsageQuery{Tenant: tenant, Meter: meter, From: from, To: from.AddDate(0, 11, 0), Step: history.UsageByDay})
		put("usage "+meter, usage, err)
	}
	page, err := b.history.Entries(ctx, history.EntryQuery{Tenant: tenant, From: from, Limit: pg.PageMax})
	put("entries", page.Items, err)
	for _, id := range operations {
		operation, err := b.history.Operation(ctx, tenant, id, time.Time{})
		put("operation "+id, operation, err)
	}
	return out
}

func (b *bundle) wantArchived(what string, err error, oldest time.Time) {
	b.t.Helper()
	if e, ok := errors.AsType[*errcode.Error](err); !ok || e.Code != errcode.Archived || !ledger.OldestOf(e).Equal(oldest) {
		b.t.Errorf("%s: got %v, want archived with %s", what, err, oldest)
	}
}

// When a month was dropped without an archive, the balance of prepaid credits on a past day was read as -50.
func TestArchive_AnswersSinceBorder_AreTheSame_OlderOnesSayArchived(t *testing.T) {
	t.Parallel()
	b, begin := year(t)
	border := (begin + 3).Start()
	const oldest = "SELECT min(operation_id) FROM entries WHERE kind = 'debit' AND tenant_id = 'acme' AND "
	kept, old := one[string](b, oldest+"month >= $1", border), one[string](b, oldest+"month < $1", border)
	oldHold := "hold-" + begin.String()
	before := b.ask("acme", border, kept)
	b.run(b.options(begin+3, filepath.Join(t.TempDir(), "a")))
	assert.Equal(t, before, b.ask("acme", border, kept))
	b.check(b.verify(t.Context()))

	ctx, past := t.Context(), border.Add(-time.Microsecond)
	b.wantArchived("balance", errOf(b.history.BalanceAsOf(ctx, "acme", "credits", "", past)), border)
	b.wantArchived("balances", errOf(b.history.BalancesAsOf(ctx, "acme", "", past)), border)
	b.wantArchived("statement", errOf(b.history.StatementAt(ctx, "acme", "calls", "", past)), border)
	err := errOf(b.history.Statement(ctx, "acme", "calls", "", (begin + 1).Start()))
	b.wantArchived("statement of a removed period", err, border)
	usage := history.UsageQuery{Tenant: "acme", Meter: "calls", From: past, To: border.AddDate(0, 1, 0), Step: history.UsageByDay}
	b.wantArchived("usage", errOf(b.history.Usage(ctx, usage)), border)
	entries := history.EntryQuery{Tenant: "acme", From: past, Limit: 10}
	b.wantArchived("entries", errOf(b.history.Entries(ctx, entries)), border)
	page, err := b.history.Entries(ctx, history.EntryQuery{Tenant: "acme", Limit: 10})
	b.check(err)
	assert.True(t, page.ArchivedBefore.Equal(border) && len(page.Items) != 0,
		"a list without from begins at %v with %d entries", page.ArchivedBefore, len(page.Items))
	b.wantArchived("operation", errOf(b.history.Operation(ctx, "acme", old, time.Time{})), border)
	refund := &ledger.Refund{Tenant: "acme", Key: b.key(), OperationID: old}
	b.wantArchived("refund", errOf(pg.Do(ctx, b.Ledger, refund)), border)
	b.wantArchived("dry run of a refund", errOf(pg.Do(ctx, b.Ledger, refund, pg.DryRun(true))), border)
	release := &ledger.HoldChange{Tenant: "acme", Key: b.key(), HoldID: oldHold, Action: ledger.ActionRelease}
	b.wantArchived("release of a hold", errOf(pg.Do(ctx, b.Ledger, release)), border)
	b.wantArchived("hold", errOf(b.HoldByID(ctx, "acme", oldHold)), border)

	// A tenant without archived rows has its usual answers.
	b.tenant("new")
	b.debit("new", "calls", 1)
	err = errOf(b.history.Operation(ctx, "new", old, time.Time{}))
	assert.Equal(t, errcode.OperationNotFound, errcode.Of(err), "operation of a new tenant: %v", err)
	err = errOf(b.history.BalanceAsOf(ctx, "new", "calls", "", past))
	assert.Equal(t, errcode.NotFound, errcode.Of(err), "balance of a new tenant: %v", err)
}

func TestArchive_IdleBalance_VerifyStaysClean_AndSpends(t *testing.T) {
	t.Parallel()
	b, begin := year(t)
	b.clock(begin.Start().AddDate(0, 1, 3))
	b.clock(time.Now())
	// All entries of this tenant are in the oldest month.
	b.moved.Set(begin.Start().Add(48 * time.Hour))
	b.tenant("idle")
	b.topup("idle", 500)
	b.clock(time.Now())
	b.run(b.options(begin+2, filepath.Join(t.TempDir(), "a")))
	b.check(b.verify(t.Context()))
	require.Zero(t, b.count("SELECT count(*) FROM entries WHERE tenant_id = 'idle' AND meter = 'credits'"),
		"entries are left")
	b.debit("idle", "credits", 123)
	balance, err := b.Balance(t.Context(), "idle", "credits", "")
	b.check(err)
	assert.True(t, balance.Remaining == 377 && balance.Granted == 500, "got %+v", balance.Sums)
	b.check(b.verify(t.Context()))
}
