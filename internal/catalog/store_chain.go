package catalog

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// agreement is a history that has a chain: the terms of a tenant, or the versions of a plan.
type agreement struct {
	tenant, plan string     // one of them is empty
	rows         string     // the statement that selects the rows
	pending      *time.Time // instant of the terms that wait; nil: none wait
	replaced     bool       // the transaction has written or removed terms that wait
	written      time.Time  // instant of the row that the transaction has written; zero: none
}

// agreementOf returns the history of the terms of t.
func agreementOf(t *Tenant, written time.Time, replaced bool) *agreement {
	return &agreement{tenant: t.ID, rows: "TermsAfter", pending: t.pendingAt(), replaced: replaced, written: written}
}

// extendChain adds to the chain of a history what this transaction has written or put into force. The transaction holds
// the lock of the tenant, or of the catalogue. Nothing else joins a chain that exists, so verify finds rows that were
// inserted by hand. While the version before may have written rows, all rows join.
func (tx *txn) extendChain(ctx context.Context, a *agreement) error {
	stored, start, err := tx.termsChain(ctx, a)
	if err != nil {
		return err
	}
	c, valid := ledger.DecodeTermsChain(stored)
	if stored != nil && !valid {
		return nil // verify reports it
	}
	before := c
	open := stored == nil || c.Until.Before(start)
	waits, began := false, false // whether terms wait, and whether those that waited have taken effect
	var at time.Time
	var document []byte
	rows := tx.query(ctx, a.rows, a.tenant+a.plan, period.OrNil(c.Until), a.written)
	_, err = pgx.ForEachRow(rows, []any{&at, &document}, func() error {
		hash := ledger.RowHash(document)
		switch {
		case a.pending != nil && at.Equal(*a.pending):
			if waits = true; open || a.replaced {
				c.Waits = hash
			}
		case open, at.Equal(a.written), hash == before.Waits:
			c.Add(at, document)
			began = began || hash == before.Waits
		}
		return nil
	})
	if err != nil {
		return wrap("read the rows of a chain of terms", err)
	}
	if !waits && (open || a.replaced || began) {
		c.Waits = [len(c.Waits)]byte{}
	}
	if c == before {
		return nil
	}
	_, err = tx.exec(ctx, "StoreTermsChain", a.tenant, a.plan, c.Encode())
	return wrap("store a chain of terms", err)
}

// termsChain reads the chain of a history, nil if there is none yet, and the instant since which chains cover all rows.
func (tx *txn) termsChain(ctx context.Context, a *agreement) (stored []byte, start time.Time, err error) {
	b := &pgx.Batch{}
	b.Queue(tx.store.queries["TermsChain"], a.tenant, a.plan).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&stored}, func() error { return nil })
		return err
	})
	b.Queue(tx.store.queries["TermsChainStart"]).QueryRow(func(row pgx.Row) error { return row.Scan(&start) })
	return stored, start, wrap("read a chain of terms", tx.SendBatch(ctx, b).Close())
}
