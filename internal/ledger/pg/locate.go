package pg

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// locate looks up the balances and entries to which the plan's operations refer, unless an earlier attempt has looked
// them up. It adds the balances that earlier debits of the same balances have needed.
func (t *tx) locate(ctx context.Context, p *plan) error {
	if p.located != nil {
		return nil
	}
	found := &ledger.Located{}
	if !p.targets.None() {
		var err error
		if found, err = t.ledger.find(ctx, t.conn, &p.targets); err != nil {
			return err
		}
		p.reissued = found.Reissued(p.calls)
	}
	p.locate(found)
	p.likely = t.ledger.learned.keysFor(p.calls)
	return nil
}

// find looks up targets. It runs before the locks, because the rows that it reads never change. A row that does not
// exist yet does not exist for this batch.
func (l *Ledger) find(ctx context.Context, conn *pgx.Conn, targets *ledger.Targets) (*ledger.Located, error) {
	found := &ledger.Located{}
	sharing := map[ledger.OperationID][]ledger.Entry{} // all entries stored under the ids of operations to be refunded
	out := &pgx.Batch{}
	if len(targets.Holds) > 0 {
		found.Holds = map[ledger.HoldKey][]ledger.BalanceKey{}
		tenants, ids := pairs(targets.Holds, splitHold)
		out.Queue(l.sql["HoldBalances"], tenants, ids).Query(scanPlaces(func(id string, k ledger.BalanceKey) {
			h := ledger.HoldKey{Tenant: k.Tenant, ID: id}
			found.Holds[h] = append(found.Holds[h], k)
		}))
	}
	if len(targets.Grants) > 0 {
		found.Grants = map[ledger.GrantName][]ledger.BalanceKey{}
		tenants, ids := pairs(targets.Grants, func(g ledger.GrantName) (string, string) { return g.Tenant, g.ID })
		out.Queue(l.sql["GrantBalances"], tenants, ids).Query(scanPlaces(func(id string, k ledger.BalanceKey) {
			g := ledger.GrantName{Tenant: k.Tenant, ID: id}
			found.Grants[g] = append(found.Grants[g], k)
		}))
	}
	if len(targets.Operations) > 0 {
		tenants, ids := pairs(targets.Operations, splitReference)
		out.Queue(l.sql["EntriesOfOperations"], tenants, ids).Query(scanEntries(sharing))
	}
	if out.Len() == 0 {
		return found, nil
	}
	if err := send(ctx, conn, out); err != nil {
		return nil, err
	}
	found.Operations = map[ledger.OperationRef][]ledger.Entry{}
	for _, r := range targets.Operations {
		found.Operations[r] = r.Among(sharing[r.OperationID])
	}
	return found, nil
}

// queueTargets queues the reads of the state of the plan's targets. It also looks up which of the grants newGrants
// exist.
func (l *Ledger) queueTargets(out *pgx.Batch, b *ledger.Batch, p *plan, newGrants []ledger.GrantKey) {
	targets := &p.targets
	b.Targets = ledger.NewTargetState()
	if len(newGrants) > 0 {
		tenants, meters, subjects, ids := grantColumns(newGrants)
		out.Queue(l.sql["TakenGrants"], tenants, meters, subjects, ids).Query(scanTaken(b.Targets.Taken))
	}
	if holds := slices.Concat(targets.Holds, targets.NewHolds, p.refunded); len(holds) > 0 {
		tenants, ids := pairs(holds, splitHold)
		out.Queue(l.sql["Holds"], tenants, ids).Query(scanHolds(b.Targets.Holds))
	}
	if len(targets.Operations) > 0 {
		tenants, ids := pairs(targets.Operations, splitReference)
		out.Queue(l.sql["Refunds"], tenants, ids).Query(scanRefunds(b.Targets.Refunds))
	}
}

// pairs returns the elements as two columns for unnest, without duplicates.
func pairs[E comparable](in []E, split func(E) (string, string)) (a, b []string) {
	seen := map[E]bool{}
	for _, e := range in {
		if seen[e] {
			continue
		}
		seen[e] = true
		x, y := split(e)
		a, b = append(a, x), append(b, y)
	}
	return a, b
}

func splitHold(k ledger.HoldKey) (string, string)           { return k.Tenant, k.ID }
func splitReference(r ledger.OperationRef) (string, string) { return r.Tenant, r.Key }
