package catalog

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/kit/null"
)

// Terms are the terms of a tenant since EffectiveAt, or from then on if they wait.
type Terms struct {
	EffectiveAt time.Time
	Plan        string
	Anchor      time.Time
	Timezone    string
	Overrides   map[string]int64
	Apply       string // how the change was asked for: applyNow, applyNextPeriod or applyAt; applyNow for the first terms
	Prorate     bool
	Usage       string // usageCarry, usageReset or usageAdd
	Reason      string // empty: not given
}

// termsCursor is the time layout of a cursor. A cursor is the effective_at of the last terms on the page.
const termsCursor = "2006-01-02T15:04:05.000000Z"

// ListTerms returns a page of the history of a tenant's terms, oldest first.
func (s *Store) ListTerms(ctx context.Context, tenant string, p listing.Query) (list listing.Page[Terms], err error) {
	cursor, err := p.After()
	if err != nil {
		return list, err
	}
	var after *time.Time
	if cursor != "" {
		at, err := time.Parse(termsCursor, cursor)
		if err != nil {
			return list, errcode.Errorf(errcode.InvalidArgument, "cursor", listing.MustBeCursor)
		}
		after = &at
	}
	err = s.read(ctx, "list terms", func(ctx context.Context, tx *txn) error {
		items, err := pgx.CollectRows(tx.query(ctx, "SelectTerms", tenant, after, p.Limit+1), scanTerms)
		if err != nil {
			return wrap("select terms", err)
		}
		if len(items) == 0 { // every tenant has terms, so perhaps the tenant does not exist
			known, err := tx.tenants(ctx, []string{tenant}, "", "", 1)
			if _, err = one(known, err, notFound(kindTenant, tenant)); err != nil {
				return err
			}
		}
		list = listing.Cut(items, p, func(t *Terms) string { return t.EffectiveAt.Format(termsCursor) })
		return nil
	})
	return list, err
}

func scanTerms(row pgx.CollectableRow) (Terms, error) {
	var t Terms
	err := row.Scan(&t.EffectiveAt, &t.Plan, &t.Anchor, &t.Timezone, &t.Overrides, &t.Apply, &t.Prorate, &t.Usage, &t.Reason)
	t.EffectiveAt, t.Anchor = t.EffectiveAt.UTC(), t.Anchor.UTC()
	return t, err
}

// termsWait reports whether periods of a locked tenant may be open under other terms than those in force. This is so if
// the newest terms do not apply at once, as programs before version 1.2 stored them, or if the tenant's plan got a newer
// version after these terms.
func (tx *txn) termsWait(ctx context.Context, t *Tenant) (wait bool, err error) {
	err = tx.queryRow(ctx, "TermsWait", t.ID, t.pendingAt()).Scan(&wait)
	return wait, wrap("look for terms that wait of tenant "+t.ID, err)
}

// pendingAt returns the instant of the pending change, or nil.
func (t *Tenant) pendingAt() *time.Time {
	if t.Pending == nil {
		return nil
	}
	return &t.Pending.From
}

// insertTerms writes the terms of t, whose row is locked, from now on. It changes no balance, for any number of
// balances. Instead, the ledger reads with every batch whether a tenant of the batch got terms that apply at once. A
// concurrent decision may miss the new terms. Then the terms take effect after the entries of that decision.
//
// It returns the instant at which they take effect.
func (tx *txn) insertTerms(ctx context.Context, t *Tenant, when *timing) (from time.Time, err error) {
	now, err := tx.now(ctx)
	if err != nil {
		return from, err
	}
	err = tx.queryRow(ctx, "InsertTerms", t.ID, t.Plan, t.Anchor, t.Timezone, orEmpty(t.Overrides),
		when.prorate, null.IfZero(when.reason), when.usage, when.apply, now, t.pendingAt()).Scan(&from)
	return from, wrap("store terms of tenant "+t.ID, err)
}

// orEmpty returns overrides as the value of a column: an empty object if overrides is nil.
func orEmpty(overrides map[string]int64) map[string]int64 {
	if overrides == nil {
		return map[string]int64{}
	}
	return overrides
}
