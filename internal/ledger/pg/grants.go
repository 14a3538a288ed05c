package pg

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// GrantsOpen is the status in a GrantQuery for all grants that can be drawn from, now or later.
const GrantsOpen ledger.GrantStatus = "open"

// GrantQuery selects grants of a tenant, in the order of meter, subject and grant id.
type GrantQuery struct {
	Tenant string
	Meter  string             // empty: all
	Status ledger.GrantStatus // or GrantsOpen; empty: all
	Limit  int                // 1..PageMax
	Cursor string
}

// GrantPage is a page of grants. NextCursor is empty on the last page.
type GrantPage struct {
	Items      []ledger.GrantRecord
	NextCursor string
}

// afterAllGrants sorts after every grant id.
const afterAllGrants = "\x7f"

// grantPosition is the position of a grant in the order of lists.
type grantPosition struct{ meter, subject, id string }

func (p grantPosition) compare(o grantPosition) int {
	return cmp.Or(cmp.Compare(p.meter, o.meter), cmp.Compare(p.subject, o.subject), cmp.Compare(p.id, o.id))
}

func positionOf(g *ledger.GrantRecord) grantPosition { return grantPosition{g.Meter, g.Subject, g.ID} }

// Grants returns a page of a tenant's grants as they are now, including those that have ended. Like a balance, a
// grant shows changes that are due but not written yet. If q has a status, a page may have fewer grants than the
// limit although more follow.
func (l *Ledger) Grants(ctx context.Context, q GrantQuery) (GrantPage, error) {
	if e := ledger.FirstOf(ledger.ValidateName("tenant", q.Tenant), ValidLimit(q.Limit)); e != nil {
		return GrantPage{}, e
	}
	if q.Meter != "" && !bound.ID(q.Meter) {
		return GrantPage{}, ledger.ValidateID("meter", q.Meter)
	}
	cursor, err := OpenCursor(q.Cursor, 3)
	if err != nil {
		return GrantPage{}, err
	}
	if q.Cursor != "" && q.Meter != "" && cursor[0] != q.Meter {
		return GrantPage{}, errcode.Errorf(errcode.InvalidArgument, "cursor", "belongs to another list, not to this one of meter %q", q.Meter)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := l.MustExist(ctx, q.Tenant); err != nil {
		return GrantPage{}, err
	}
	after := grantPosition{cursor[0], cursor[1], cursor[2]}
	stored, err := l.storedGrants(ctx, &q, after)
	if err != nil {
		return GrantPage{}, err
	}
	until, more := grantPosition{}, len(stored) > q.Limit // the last position of the page; zero: this is the last page
	if more {
		stored = stored[:q.Limit]
		until = positionOf(&stored[q.Limit-1])
	}
	keys, err := l.balancesBetween(ctx, &q, after, until)
	if err != nil {
		return GrantPage{}, err
	}
	if len(keys) > q.Limit {
		keys, more = keys[:q.Limit], true
		last := keys[q.Limit-1]
		until = grantPosition{last.Meter, last.Subject, afterAllGrants}
	}
	view, err := l.viewBalances(ctx, time.Time{}, keys...)
	if err != nil {
		return GrantPage{}, err
	}
	items := mergeGrants(stored, view, after, until)
	page := GrantPage{Items: items}
	if len(items) > q.Limit {
		page.Items, more = items[:q.Limit], true
		until = positionOf(&items[q.Limit-1])
	}
	if more {
		page.NextCursor = SealCursor(until.meter, until.subject, until.id)
	}
	page.Items = slices.DeleteFunc(page.Items, func(g ledger.GrantRecord) bool { return !q.selects(g.Status) })
	return page, nil
}

// storedStates returns the stored states that a grant of the wanted status can have, nil for all.
func (q *GrantQuery) storedStates() []string {
	switch q.Status {
	case "":
		return nil
	case GrantsOpen, ledger.GrantActive, ledger.GrantPending:
		return []string{string(ledger.GrantPending), string(ledger.GrantActive)}
	case ledger.GrantVoided:
		return []string{string(ledger.GrantVoided)}
	case ledger.GrantExhausted, ledger.GrantExpired:
	}
	return []string{string(q.Status), string(ledger.GrantPending), string(ledger.GrantActive)}
}

func (q *GrantQuery) selects(status ledger.GrantStatus) bool {
	open := status == ledger.GrantActive || status == ledger.GrantPending
	return q.Status == "" || q.Status == status || q.Status == GrantsOpen && open
}

// storedGrants returns the stored grants of a page, and one more grant if another page follows.
func (l *Ledger) storedGrants(ctx context.Context, q *GrantQuery, after grantPosition) ([]ledger.GrantRecord, error) {
	rows, _ := l.readers.Query(ctx, l.sql["GrantsPage"], q.Tenant, after.meter, after.subject, after.id, q.Meter, q.storedStates(), q.Limit+1)
	var items []ledger.GrantRecord
	var g ledger.GrantRecord
	if _, err := pgx.ForEachRow(rows, grantTargets(&g), func() error { items = append(items, g); return nil }); err != nil {
		return nil, unavailable("read grants", err)
	}
	return items, nil
}

// balancesBetween returns the balances whose grants may lie after one position and up to another. It returns at most
// one balance more than the limit of a page.
func (l *Ledger) balancesBetween(ctx context.Context, q *GrantQuery, after, until grantPosition) ([]ledger.BalanceKey, error) {
	rows, err := l.readers.Query(ctx, l.sql["BalancesBetween"], q.Tenant, after.meter, after.subject, until.meter, until.subject, q.Meter, q.Limit+1,
		after.id == afterAllGrants, l.Now())
	if err != nil {
		return nil, unavailable("list balances", err)
	}
	var keys []ledger.BalanceKey
	k := ledger.BalanceKey{Tenant: q.Tenant}
	if _, err = pgx.ForEachRow(rows, []any{&k.Meter, &k.Subject}, func() error { keys = append(keys, k); return nil }); err != nil {
		return nil, unavailable("list balances", err)
	}
	return keys, nil
}

// mergeGrants returns the grants after one position and up to another, as they are at the view's instant. These are
// the stored grants with the view's changes, and the view's new grants.
func mergeGrants(stored []ledger.GrantRecord, view *ledger.Batch, after, until grantPosition) []ledger.GrantRecord {
	all := map[grantPosition]ledger.GrantRecord{}
	add := func(g *ledger.GrantRecord) {
		p := positionOf(g)
		if p.compare(after) > 0 && (until == grantPosition{} || p.compare(until) <= 0) {
			all[p] = g.At(view.Now)
		}
	}
	for i := range stored {
		add(&stored[i])
	}
	for _, book := range view.Books {
		if book.Broken != nil {
			continue
		}
		for _, g := range book.Grants {
			add(&g.GrantRecord)
		}
	}
	items := slices.Collect(maps.Values(all))
	slices.SortFunc(items, func(a, b ledger.GrantRecord) int { return positionOf(&a).compare(positionOf(&b)) })
	return items
}
