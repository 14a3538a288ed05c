package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// HoldRecord is a hold in its present state.
type HoldRecord struct {
	Tenant, ID, Subject  string
	Status               ledger.HoldStatus
	Items                []ledger.HoldItem // without Draws, Remaining and Limit
	CreatedAt, ExpiresAt time.Time
}

// HoldQuery selects holds of a tenant, in the order of their ids.
type HoldQuery struct {
	Tenant string
	Status ledger.HoldStatus // empty: all
	Limit  int               // 1..PageMax
	Cursor string
}

// HoldPage is a page of holds. NextCursor is empty on the last page.
type HoldPage struct {
	Items      []HoldRecord
	NextCursor string
}

// Holds returns a page of a tenant's holds, including those that have ended.
func (l *Ledger) Holds(ctx context.Context, q HoldQuery) (HoldPage, error) {
	if e := ledger.FirstOf(ledger.ValidateName("tenant", q.Tenant), ValidLimit(q.Limit)); e != nil {
		return HoldPage{}, e
	}
	switch q.Status {
	case "", ledger.HoldActive, ledger.HoldCaptured, ledger.HoldReleased, ledger.HoldExpired:
	default:
		return HoldPage{}, errcode.Errorf(errcode.InvalidArgument, "status", "must be one of: active, captured, released, expired")
	}
	after, err := OpenCursor(q.Cursor, 1)
	if err != nil {
		return HoldPage{}, err
	}
	if err := l.MustExist(ctx, q.Tenant); err != nil {
		return HoldPage{}, err
	}
	items, err := l.readHolds(ctx, q.Tenant, after[0], q.Status, "", q.Limit+1)
	if err != nil {
		return HoldPage{}, err
	}
	page := HoldPage{Items: items}
	if len(items) > q.Limit {
		page.Items, page.NextCursor = items[:q.Limit], SealCursor(items[q.Limit-1].ID)
	}
	return page, nil
}

// HoldByID returns one hold of a tenant. It returns errcode.HoldNotFound if no hold has this id.
func (l *Ledger) HoldByID(ctx context.Context, tenant, id string) (*HoldRecord, error) {
	if e := ledger.FirstOf(ledger.ValidateName("tenant", tenant), ledger.ValidateName("hold_id", id)); e != nil {
		return nil, e
	}
	if err := l.MustExist(ctx, tenant); err != nil {
		return nil, err
	}
	items, err := l.readHolds(ctx, tenant, "", "", id, 1)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, l.OrArchived(ctx, tenant, errcode.Errorf(errcode.HoldNotFound, "hold_id", "tenant %q has no hold %q", tenant, id))
	}
	return &items[0], nil
}

func (l *Ledger) readHolds(ctx context.Context, tenant, after string, status ledger.HoldStatus, id string, limit int) ([]HoldRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	rows, _ := l.readers.Query(ctx, l.sql["HoldsPage"], tenant, after, string(status), id, limit, l.Now())
	out := []HoldRecord{}
	h, stored := HoldRecord{Tenant: tenant}, []byte(nil)
	var items, held []int64
	_, err := pgx.ForEachRow(rows, []any{&h.ID, &h.Subject, &h.Status, &stored, &h.CreatedAt, &h.ExpiresAt, &items, &held}, func() error {
		record := h
		record.CreatedAt, record.ExpiresAt = h.CreatedAt.UTC(), h.ExpiresAt.UTC()
		if err := json.Unmarshal(stored, &record.Items); err != nil {
			return fmt.Errorf("items of hold %s: %w", h.ID, err)
		}
		for i, item := range items {
			record.Items[item].Held = held[i]
		}
		out = append(out, record)
		return nil
	})
	if err != nil {
		return nil, unavailable("read holds", err)
	}
	return out, nil
}
