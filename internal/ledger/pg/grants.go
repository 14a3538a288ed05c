package pg

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// GrantQuery selects grants of a tenant. Order: meter, subject, grant id.
type GrantQuery struct {
	Tenant string
	Meter  string // empty: all
	Limit  int    // 1..PageMax
	Cursor string
}

// GrantPage is a page of grants. NextCursor is empty on the last page.
type GrantPage struct {
	Items      []ledger.GrantRecord
	NextCursor string
}

// Grants returns a page of a tenant's grants, including those that have ended.
func (l *Ledger) Grants(ctx context.Context, q GrantQuery) (GrantPage, error) {
	if e := ledger.FirstOf(ledger.ValidateID("tenant", q.Tenant), ValidLimit(q.Limit)); e != nil {
		return GrantPage{}, e
	}
	if q.Meter != "" && !bound.ID(q.Meter) {
		return GrantPage{}, ledger.ValidateID("meter", q.Meter)
	}
	after, err := OpenCursor(q.Cursor, 3)
	if err != nil {
		return GrantPage{}, err
	}
	if q.Cursor != "" && q.Meter != "" && after[0] != q.Meter {
		return GrantPage{}, ledger.Errorf(ledger.CodeInvalidArgument, "cursor", "belongs to another list, not to this one of meter %q", q.Meter)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := l.MustExist(ctx, q.Tenant); err != nil {
		return GrantPage{}, err
	}
	rows, err := l.readers.Query(ctx, l.sql["GrantsPage"], q.Tenant, after[0], after[1], after[2], q.Meter, q.Limit+1)
	if err != nil {
		return GrantPage{}, unavailable("read grants", err)
	}
	items, now := []ledger.GrantRecord{}, l.Now()
	var g ledger.GrantRecord
	_, err = pgx.ForEachRow(rows, grantTargets(&g), func() error {
		items = append(items, g.At(now))
		return nil
	})
	if err != nil {
		return GrantPage{}, unavailable("read grants", err)
	}
	page := GrantPage{Items: items}
	if len(items) > q.Limit {
		last := items[q.Limit-1]
		page.Items, page.NextCursor = items[:q.Limit], SealCursor(last.Meter, last.Subject, last.ID)
	}
	return page, nil
}
