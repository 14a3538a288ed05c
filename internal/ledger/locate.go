package ledger

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// references is what the requests of a batch name that lies on balances they do not name.
type references struct {
	holds  []holdKey // to be changed: their balances are looked up
	fresh  []holdKey // to be made: whether the id is taken is looked up under the lock
	grants []homeKey
	debits []opKey
}

func referencesOf(calls []*call) references {
	var r references
	for _, c := range calls {
		switch req := c.req.(type) {
		case *Hold:
			r.fresh = append(r.fresh, holdKey{req.Tenant, req.HoldID})
		case *HoldChange:
			r.holds = append(r.holds, holdKey{req.Tenant, req.HoldID})
		case *Void:
			r.grants = append(r.grants, homeKey{req.Tenant, req.GrantID})
		case *Refund:
			r.debits = append(r.debits, req.target())
		}
	}
	return r
}

func (r *references) none() bool { return len(r.holds)+len(r.grants)+len(r.debits) == 0 }

// pairs turns elements into the two columns of an unnest, each pair once.
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

func splitHold(k holdKey) (string, string) { return k.tenant, k.id }
func splitHome(k homeKey) (string, string) { return k.tenant, k.grantID }
func splitOp(k opKey) (string, string)     { return k.tenant, k.id }

// locate looks up what the references lie on. It runs before the locks: none of what it reads ever changes, and what is not
// there yet is not there for this operation.
func (l *Ledger) locate(ctx context.Context, conn *pgx.Conn, r references) (found, error) {
	f := found{holds: map[holdKey][]key{}, grants: map[homeKey][]key{}, debits: map[opKey][]line{}}
	if r.none() {
		return f, nil
	}
	b := &pgx.Batch{}
	if len(r.holds) > 0 {
		tenants, ids := pairs(r.holds, splitHold)
		b.Queue(l.queries["HoldBalances"], tenants, ids).Query(scanHomes(func(tenant, id string, k key) {
			f.holds[holdKey{tenant, id}] = append(f.holds[holdKey{tenant, id}], k)
		}))
	}
	if len(r.grants) > 0 {
		tenants, ids := pairs(r.grants, splitHome)
		b.Queue(l.queries["GrantBalances"], tenants, ids).Query(scanHomes(func(tenant, id string, k key) {
			f.grants[homeKey{tenant, id}] = append(f.grants[homeKey{tenant, id}], k)
		}))
	}
	if len(r.debits) > 0 {
		tenants, ids := pairs(r.debits, splitOp)
		b.Queue(l.queries["EntriesOfOperations"], tenants, ids).Query(scanLines(f.debits))
	}
	if err := sendBatch(ctx, conn, b); err != nil {
		return found{}, err
	}
	for _, lines := range f.debits {
		slices.SortFunc(lines, func(a, b line) int { return int(a.line - b.line) })
	}
	return f, nil
}

// queueState queues the reads, under the lock, of what the references stand at.
func (l *Ledger) queueState(b *pgx.Batch, m *machine, r references) {
	if holds := slices.Concat(r.holds, r.fresh); len(holds) > 0 {
		tenants, ids := pairs(holds, splitHold)
		b.Queue(l.queries["Holds"], tenants, ids).Query(scanHolds(m.holds))
	}
	if len(r.debits) > 0 {
		tenants, ids := pairs(r.debits, splitOp)
		b.Queue(l.queries["Refunds"], tenants, ids).Query(scanRefunds(m.refunds))
	}
}

// namedGrants lists the grants that refunds may return units to. They may be exhausted, and then are not open.
func (f *found) namedGrants() []grantKey {
	var out []grantKey
	for _, lines := range f.debits {
		for i := range lines {
			if lines[i].grantID != "" {
				out = append(out, grantKey{lines[i].key, lines[i].grantID})
			}
		}
	}
	return out
}
