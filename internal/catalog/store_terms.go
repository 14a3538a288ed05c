package catalog

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Terms are what a tenant has agreed to since EffectiveAt.
type Terms struct {
	EffectiveAt time.Time
	Plan        string
	Anchor      time.Time
	Timezone    string
	Overrides   map[string]int64
	Apply       string // ApplyNow, as the first ones, or ApplyNextPeriod
	Prorate     bool
	Reason      string // "": nobody said
}

// termsCursor is how a cursor names the last terms of a page: their instant, which is their key.
const termsCursor = "2006-01-02T15:04:05.000000Z"

// ListTerms returns a page of the history of a tenant's terms, the oldest first.
func (s *Store) ListTerms(ctx context.Context, tenant string, p Page) (list List[Terms], err error) {
	cursor, err := p.after()
	if err != nil {
		return list, err
	}
	var after *time.Time
	if cursor != "" {
		at, err := time.Parse(termsCursor, cursor)
		if err != nil {
			return list, fieldError(CodeInvalidArgument, "cursor", mustBeCursor)
		}
		after = &at
	}
	err = s.read(ctx, "list terms", func(ctx context.Context, tx *txn) error {
		rows, err := tx.query(ctx, "SelectTerms", tenant, after, p.Limit+1)
		if err != nil {
			return wrap("select terms", err)
		}
		items, err := pgx.CollectRows(rows, scanTerms)
		if err != nil {
			return wrap("select terms", err)
		}
		if len(items) == 0 { // every tenant has its first ones
			known, err := tx.tenants(ctx, []string{tenant}, "", 1)
			if _, err = one(known, err, notFound(kindTenant, tenant)); err != nil {
				return err
			}
		}
		list = listed(items, p, func(t *Terms) string { return t.EffectiveAt.Format(termsCursor) })
		return nil
	})
	return list, err
}

func scanTerms(row pgx.CollectableRow) (Terms, error) {
	t := Terms{Apply: applyNextPeriod}
	now := false
	err := row.Scan(&t.EffectiveAt, &t.Plan, &t.Anchor, &t.Timezone, &t.Overrides, &now, &t.Prorate, &t.Reason)
	t.EffectiveAt, t.Anchor = t.EffectiveAt.UTC(), t.Anchor.UTC()
	if now {
		t.Apply = applyNow
	}
	return t, err
}

// timing is when changed terms take hold, and why they changed.
type timing struct {
	now     bool // instead of at the next periods
	prorate bool
	reason  string // "": nobody said
	dry     bool   // the transaction is rolled back, so the ledger need not wait for it
}

// termsWait reports whether the newest terms of a locked tenant, or a newer version of its plan, wait for the next periods.
func (tx *txn) termsWait(ctx context.Context, tenant string) (wait bool, err error) {
	err = tx.queryRow(ctx, "TermsWait", tenant).Scan(&wait)
	return wait, wrap("look for terms that wait of tenant "+tenant, err)
}

// insertTerms writes the terms of t, whose row is locked. Those that apply now end open periods: everything that could open or
// use a period is locked first, so that the terms are later than anything decided under the old ones, and made due.
func (tx *txn) insertTerms(ctx context.Context, t *Tenant, when timing) error {
	if when.now {
		// Each in a statement of its own: one that waits for a lock does not see what was made meanwhile.
		for _, statement := range []string{"LockTenantAlone", "LockBalances"} {
			if _, err := tx.exec(ctx, statement, t.ID); err != nil {
				return err
			}
		}
	}
	var at time.Time
	err := tx.queryRow(ctx, "InsertTerms",
		t.ID, t.Plan, t.Anchor, t.Timezone, orEmpty(t.Overrides), when.now, when.prorate, orNull(when.reason)).Scan(&at)
	if err != nil || !when.now {
		return err
	}
	_, err = tx.exec(ctx, "MakeDue", t.ID, at)
	return err
}

// orNull is text as a column has it.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// orEmpty is overrides as a column has them: an object, if an empty one.
func orEmpty(overrides map[string]int64) map[string]int64 {
	if overrides == nil {
		return map[string]int64{}
	}
	return overrides
}
