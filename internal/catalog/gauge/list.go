package gauge

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	// behindAll is greater than every meter's id, because no id contains a tilde.
	behindAll = "~"
	separator = " " // no id contains a blank
)

// Query selects gauges of a tenant, in the order of meters and subjects.
type Query struct {
	Tenant string
	Meter  string // empty: all
	Limit  int    // at least 1
	Cursor string // empty for the first page, then the NextCursor of the previous page
}

// Page is a page of a list of gauges.
type Page struct {
	Items      []State
	NextCursor string // empty on the last page
}

// begin returns the meter and the subject with which the page begins, and the last meter of the list.
func (q *Query) begin() (meter, subject, last string, err error) {
	if last = q.Meter; last == "" {
		last = behindAll
	}
	if q.Cursor == "" {
		return q.Meter, "", last, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	meter, subject, found := strings.Cut(string(raw), separator)
	if err != nil || !found || !bound.ID(meter) || subject != "" && !bound.Name(subject) || q.Meter != "" && meter != q.Meter {
		return "", "", "", errcode.Errorf(errcode.InvalidArgument, "cursor", "is an unknown cursor; it must be the next_cursor of the page before")
	}
	return meter, subject, last, nil
}

// List returns a page of the gauges of a tenant. The list has the tenant's own gauges of the plan, even if they were
// never set. It also has the gauges of subjects that were set. If the plan no longer has a gauge, the list has it
// while its value is above 0. The cost depends only on the size of the page and on the plan's allowances.
func (s *Store) List(ctx context.Context, q Query) (page Page, err error) {
	if e := ledger.FirstOf(ledger.ValidateName("tenant", q.Tenant)); e != nil {
		return page, e
	}
	meter, subject, last, err := q.begin()
	if err != nil {
		return page, err
	}
	err = s.db.View(ctx, "list gauges", func(ctx context.Context, tx pgx.Tx) (err error) {
		var exists bool
		if err := tx.QueryRow(ctx, s.queries["TenantExists"], q.Tenant).Scan(&exists); err != nil {
			return fmt.Errorf("look up tenant: %w", err)
		}
		if !exists {
			return errcode.Errorf(errcode.TenantNotFound, "tenant", "tenant %q does not exist", q.Tenant)
		}
		now := s.db.Now()
		version, err := s.version(ctx, tx, q.Tenant, now)
		if err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, s.queries["ListGauges"], q.Tenant, meter, subject, last, q.Limit+1, now, version)
		page.Items, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (state State, err error) {
			state.Tenant = q.Tenant
			err = row.Scan(&state.Meter, &state.Subject, &state.Value, &state.Limit, &state.At)
			state.At = state.At.UTC()
			return state, err
		})
		return err
	})
	if len(page.Items) > q.Limit {
		next := &page.Items[q.Limit]
		page.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(next.Meter + separator + next.Subject))
		page.Items = page.Items[:q.Limit]
	}
	return page, err
}
