package catalog

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/kit/null"
)

// Terms are the terms of a tenant since EffectiveAt.
type Terms struct {
	EffectiveAt time.Time
	Plan        string
	Anchor      time.Time
	Timezone    string
	Overrides   map[string]int64
	Apply       string // applyNow or applyNextPeriod; applyNow for the first terms
	Prorate     bool
	Usage       string // usageCarry or usageReset
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
	t := Terms{Apply: applyNextPeriod}
	now := false
	err := row.Scan(&t.EffectiveAt, &t.Plan, &t.Anchor, &t.Timezone, &t.Overrides, &now, &t.Prorate, &t.Usage, &t.Reason)
	t.EffectiveAt, t.Anchor = t.EffectiveAt.UTC(), t.Anchor.UTC()
	if now {
		t.Apply = applyNow
	}
	return t, err
}

// timing says when changed terms take effect, and why they change.
type timing struct {
	now     bool // the terms take effect at once, not at the next periods
	prorate bool
	reset   bool   // use in the open periods is not deducted from the new allowances
	reason  string // empty: not given
	dry     bool   // the transaction is rolled back
	patch   bool   // a patch changes some fields; a put replaces all
}

// action returns the name of the change of the tenant for the audit log.
func (t timing) action() string {
	if t.patch {
		return "patch"
	}
	return "put"
}

// termsWait reports whether a change of a locked tenant's terms waits for the next periods. This is so if the newest
// terms do not apply at once, or if the tenant's plan got a newer version after these terms.
func (tx *txn) termsWait(ctx context.Context, tenant string) (wait bool, err error) {
	err = tx.queryRow(ctx, "TermsWait", tenant).Scan(&wait)
	return wait, wrap("look for terms that wait of tenant "+tenant, err)
}

// insertTerms writes the terms of t, whose row is locked. It changes no balance, for any number of balances. Instead,
// the ledger reads with every batch whether a tenant of the batch got terms that apply at once. A concurrent decision
// may miss the new terms. Then the terms end the open period after the entries of that decision.
func (tx *txn) insertTerms(ctx context.Context, t *Tenant, when timing) error {
	now, err := tx.now(ctx)
	if err != nil {
		return err
	}
	usage := usageCarry
	if when.reset {
		usage = usageReset
	}
	_, err = tx.exec(ctx, "InsertTerms",
		t.ID, t.Plan, t.Anchor, t.Timezone, orEmpty(t.Overrides), when.now, when.prorate, null.IfZero(when.reason), usage, now)
	return err
}

// orEmpty returns overrides as the value of a column: an empty object if overrides is nil.
func orEmpty(overrides map[string]int64) map[string]int64 {
	if overrides == nil {
		return map[string]int64{}
	}
	return overrides
}
