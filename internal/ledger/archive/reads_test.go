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

// answers has the answer of each read about a tenant, by the name of the read.
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
	var kept, old string
	b.check(b.db.QueryRow(t.Context(), "SELECT min(operation_id) FROM entries WHERE kind = 'debit' AND tenant_id = 'acme' AND month >= $1", border).Scan(&kept))
	b.check(b.db.QueryRow(t.Context(), "SELECT min(operation_id) FROM entries WHERE kind = 'debit' AND tenant_id = 'acme' AND month < $1", border).Scan(&old))
	oldHold := "hold-" + begin.String()
	before := b.ask("acme", border, kept)
	_, err := Run(t.Context(), b.options(begin+3, filepath.Join(t.TempDir(), "a")))
	require.NoError(t, err)
	assert.Equal(t, before, b.ask("acme", border, kept))
	b.check(b.verify(t.Context()))

	ctx, past := t.Context(), border.Add(-time.Microsecond)
	_, err = b.history.BalanceAsOf(ctx, "acme", "credits", "", past)
	b.wantArchived("balance", err, border)
	_, err = b.history.BalancesAsOf(ctx, "acme", "", past)
	b.wantArchived("balances", err, border)
	_, err = b.history.StatementAt(ctx, "acme", "calls", "", past)
	b.wantArchived("statement", err, border)
	_, err = b.history.Statement(ctx, "acme", "calls", "", (begin + 1).Start())
	b.wantArchived("statement of a removed period", err, border)
	_, err = b.history.Usage(ctx, history.UsageQuery{Tenant: "acme", Meter: "calls", From: past, To: border.AddDate(0, 1, 0), Step: history.UsageByDay})
	b.wantArchived("usage", err, border)
	_, err = b.history.Entries(ctx, history.EntryQuery{Tenant: "acme", From: past, Limit: 10})
	b.wantArchived("entries", err, border)
	page, err := b.history.Entries(ctx, history.EntryQuery{Tenant: "acme", Limit: 10})
	b.check(err)
	assert.True(t, page.ArchivedBefore.Equal(border) && len(page.Items) != 0,
		"a list without from begins at %v with %d entries", page.ArchivedBefore, len(page.Items))
	_, err = b.history.Operation(ctx, "acme", old, time.Time{})
	b.wantArchived("operation", err, border)
	refund := &ledger.Refund{Tenant: "acme", Key: b.key(), OperationID: old}
	_, err = pg.Do(ctx, b.Ledger, refund)
	b.wantArchived("refund", err, border)
	_, err = pg.Do(ctx, b.Ledger, refund, pg.DryRun(true))
	b.wantArchived("dry run of a refund", err, border)
	_, err = pg.Do(ctx, b.Ledger, &ledger.HoldChange{Tenant: "acme", Key: b.key(), HoldID: oldHold, Action: ledger.ActionRelease})
	b.wantArchived("release of a hold", err, border)
	_, err = b.HoldByID(ctx, "acme", oldHold)
	b.wantArchived("hold", err, border)

	// A tenant without archived rows has its usual answers.
	b.tenant("new")
	b.debit("new", "calls", 1)
	_, err = b.history.Operation(ctx, "new", old, time.Time{})
	assert.True(t, errcode.Of(err) == errcode.OperationNotFound, "operation of a new tenant: %v", err)
	_, err = b.history.BalanceAsOf(ctx, "new", "calls", "", past)
	assert.True(t, errcode.Of(err) == errcode.NotFound, "balance of a new tenant: %v", err)
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
	_, err := Run(t.Context(), b.options(begin+2, filepath.Join(t.TempDir(), "a")))
	require.NoError(t, err)
	b.check(b.verify(t.Context()))
	require.Zero(t, b.count("SELECT count(*) FROM entries WHERE tenant_id = 'idle' AND meter = 'credits'"),
		"entries are left")
	b.debit("idle", "credits", 123)
	balance, err := b.Balance(t.Context(), "idle", "credits", "")
	b.check(err)
	assert.True(t, balance.Remaining == 377 && balance.Granted == 500, "got %+v", balance.Sums)
	b.check(b.verify(t.Context()))
}
