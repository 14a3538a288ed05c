package catalog

import (
	"context"
	"time"
)

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
