package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// missing lists the plan's balances that have no row and are not known to be absent.
func (t *tx) missing(p *plan) []ledger.BalanceKey {
	var out []ledger.BalanceKey
	for _, k := range p.keys {
		if _, ok := t.batch.Books[k]; ok || t.locked.has(k) {
			continue
		}
		if _, ok := p.absent[k]; !ok {
			out = append(out, k)
		}
	}
	return out
}

// For each balance without a row, addNewBalances adds an empty book (the balance in memory) to the batch. The batch
// then creates the row. addNewBalances returns false if an earlier transaction must create the rows: the plan's state
// is not stateUsual, or some rows cannot be created.
func (t *tx) addNewBalances(ctx context.Context, keys []ledger.BalanceKey, p *plan) (added bool, err error) {
	if p.state != stateUsual {
		return false, nil
	}
	tenants, meters := ledger.NamesOf(keys)
	var homes int
	if err := t.conn.QueryRow(ctx, t.ledger.sql["KeepHomes"], tenants, meters).Scan(&homes); err != nil {
		return false, fmt.Errorf("look up the homes of balances: %w", err)
	}
	if homes < len(tenants)+len(meters) {
		return false, nil
	}
	t.newBalances = setOf(keys)
	for _, k := range keys {
		t.batch.Books[k] = ledger.NewBook(ledger.BalanceRow{BalanceKey: k})
		t.batch.Books[k].LoadGrants(nil, nil) // a balance without a row has no grants and no holds
	}
	return true, nil
}

// createMissing creates missing rows in a transaction of its own, and notes in p why other rows cannot be created.
func (t *tx) createMissing(ctx context.Context, keys []ledger.BalanceKey, p *plan) error {
	tenants, meters, subjects := columnsOf(keys)
	err := t.insertMissing(ctx, tenants, meters, subjects)
	if isLockTimeout(err) && (p.state == stateSkipLocked || p.state == stateWaitLong) {
		p.park(setOf(keys), t.ledger.learned) // the tenant or the meter is locked
		return nil
	}
	if err != nil {
		return fmt.Errorf("create balances: %w", err)
	}
	rows, err := t.conn.Query(ctx, t.ledger.sql["WhyAbsent"], tenants, meters)
	if err != nil {
		return fmt.Errorf("look up missing balances: %w", err)
	}
	if p.absent == nil {
		p.absent = map[ledger.BalanceKey]ledger.Absence{}
	}
	return scanAbsent(keys, p.absent)(rows)
}

// insertMissing runs CreateBalances. On Citus a lock_timeout reaches the node only within a transaction.
func (t *tx) insertMissing(ctx context.Context, tenants, meters, subjects []string) error {
	if t.ledger.cluster == nil {
		_, err := t.conn.Exec(ctx, t.ledger.sql["CreateBalances"], tenants, meters, subjects)
		return err
	}
	out := &pgx.Batch{}
	out.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	out.Queue("SET LOCAL lock_timeout = " + milliseconds(lockTimeout))
	out.Queue(t.ledger.sql["CreateBalances"], tenants, meters, subjects)
	queueCommit(out)
	err := send(ctx, t.conn, out)
	if err != nil {
		t.ledger.restoreCode(err)
		t.rollBack(ctx)
	}
	return err
}
