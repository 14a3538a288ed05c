package pg

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/agreed"
)

// loading holds the results of the statements that queueLoad queued. The results arrive when the batch of statements
// is sent.
type loading struct {
	grants, named map[ledger.BalanceKey][]*ledger.OpenGrant
	holds         map[ledger.BalanceKey][]*ledger.HoldLine
	terms         *agreed.Terms
}

// queueLoad queues the reads of the open grants and hold lines of balances, and of terms and plan versions. It also
// queues the reads of what the operations of the plan name: grants in any state, all lines of holds, and the grants of
// the lines of holds whose captures are to be refunded.
func (l *Ledger) queueLoad(out *pgx.Batch, p *plan, grants, terms []ledger.BalanceKey) *loading {
	more := &loading{
		grants: map[ledger.BalanceKey][]*ledger.OpenGrant{},
		named:  map[ledger.BalanceKey][]*ledger.OpenGrant{},
		holds:  map[ledger.BalanceKey][]*ledger.HoldLine{},
		terms:  agreed.Queue(out, l.sql, terms),
	}
	if len(grants) > 0 {
		tenants, meters, subjects := columnsOf(grants)
		out.Queue(l.sql["OpenGrants"], tenants, meters, subjects).Query(scanGrants(more.grants))
		holdTenants, holdIDs := pairs(slices.Concat(p.targets.Holds, p.refunded), splitHold)
		out.Queue(l.sql["HoldLines"], tenants, meters, subjects, holdTenants, holdIDs).Query(scanHoldLines(more.holds))
	}
	if len(p.named) > 0 {
		tenants, meters, subjects, ids := grantColumns(p.named)
		out.Queue(l.sql["NamedGrants"], tenants, meters, subjects, ids).Query(scanGrants(more.named))
	}
	if len(p.refunded) > 0 {
		holdTenants, holdIDs := pairs(p.refunded, splitHold)
		out.Queue(l.sql["PayingGrants"], holdTenants, holdIDs).Query(scanGrants(more.named))
	}
	return more
}

// attach adds the rows that were read to books: grants and hold lines to the books of grantKeys, terms to the books
// of termKeys. It stores the allowances of the books' plans in learned.
func (more *loading) attach(
	books map[ledger.BalanceKey]*ledger.Book, grantKeys, termKeys []ledger.BalanceKey, learned *learnedCache,
) {
	for _, k := range grantKeys {
		grants := more.grants[k]
		for _, g := range more.named[k] {
			if !slices.ContainsFunc(grants, func(o *ledger.OpenGrant) bool { return o.ID == g.ID }) {
				grants = append(grants, g)
			}
		}
		books[k].LoadGrants(grants, more.holds[k])
	}
	for _, k := range termKeys {
		b := books[k]
		b.History, b.Plans, b.Broken = more.terms.History[k.Tenant], more.terms.Plans, more.terms.Faults[k.Tenant]
		b.Timeline = ledger.NewTimeline(k, b.History, b.Plans)
		if b.Plan != "" {
			if b.Terms = ledger.AllowanceOf(k, more.terms.Plans, b.Plan, b.PlanVersion); b.Terms != nil {
				learned.keepAllowance(k, b.Plan, b.PlanVersion, b.Terms)
			}
		}
	}
}

// readPastUse reads the use that counts after a change of the interval, for the books that need it up to the instant
// now. Entries that were written after a book was read do not count: the statement is bounded by the book's seq.
func (l *Ledger) readPastUse(
	ctx context.Context, conn *pgx.Conn, books map[ledger.BalanceKey]*ledger.Book, keys []ledger.BalanceKey,
	now time.Time,
) error {
	for {
		round := &pgx.Batch{}
		for _, k := range keys {
			b := books[k]
			u, wants := b.WantsPastUse(now)
			if !wants {
				continue
			}
			from, until := []time.Time{}, []time.Time{}
			for i := range u.ApartFrom {
				from, until = append(from, toDB(u.ApartFrom[i])), append(until, toDB(u.ApartUntil[i]))
			}
			round.Queue(l.sql["PastUse"], k.Tenant, k.Meter, k.Subject, u.Since, b.Seq, from, until).QueryRow(
				func(row pgx.Row) error {
					if err := row.Scan(&u.Drawn, &u.Overage); err != nil {
						return fmt.Errorf("read the use of %v since %s: %w", k, u.Since.Format(time.RFC3339), err)
					}
					b.AddPastUse(u)
					return nil
				})
		}
		if round.Len() == 0 {
			return nil
		}
		if err := conn.SendBatch(ctx, round).Close(); err != nil {
			return err //nolint:wrapcheck // the functions of the batch name what was read
		}
	}
}
