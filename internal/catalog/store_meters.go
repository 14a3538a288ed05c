package catalog

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
)

// PutMeter creates or replaces a meter. It returns the stored meter and whether it is new.
func (s *Store) PutMeter(ctx context.Context, m Meter) (stored Meter, created bool, err error) {
	if err := validate(&m); err != nil {
		return Meter{}, false, err
	}
	err = s.write(ctx, "put meter", alone, func(ctx context.Context, tx *txn) error {
		before, err := tx.meters(ctx, []string{m.ID}, "", 1)
		if err != nil {
			return err
		}
		created = len(before) == 0
		stored, err = tx.putMeter(ctx, first(before), m)
		return err
	})
	return stored, created, err
}

// Meter returns the meter with this id.
func (s *Store) Meter(ctx context.Context, id string) (m Meter, err error) {
	err = s.read(ctx, "read meter", func(ctx context.Context, tx *txn) error {
		items, err := tx.meters(ctx, []string{id}, "", 1)
		m, err = one(items, err, notFound(kindMeter, id))
		return err
	})
	return m, err
}

// ListMeters returns a page of all meters.
func (s *Store) ListMeters(ctx context.Context, p listing.Query) (list listing.Page[Meter], err error) {
	after, err := p.After()
	if err != nil {
		return list, err
	}
	err = s.read(ctx, "list meters", func(ctx context.Context, tx *txn) error {
		items, err := tx.meters(ctx, nil, after, p.Limit+1)
		list = listing.Cut(items, p, func(m *Meter) string { return m.ID })
		return err
	})
	return list, err
}

// DeleteMeter deletes an unused meter. It fails with errcode.Conflict if a version of a plan, a limit, a gauge or a
// balance with entries refers to the meter. Refused requests create balances without entries. DeleteMeter deletes
// these balances as well.
func (s *Store) DeleteMeter(ctx context.Context, id string) error {
	return s.write(ctx, "delete meter", alone, func(ctx context.Context, tx *txn) error { return tx.deleteMeter(ctx, id) })
}

func (tx *txn) deleteMeter(ctx context.Context, id string) error {
	// This check comes first, to avoid useless locks: a meter of a plan may have many balances without entries.
	if err := tx.meterUnused(ctx, id); err != nil {
		return err
	}
	n, err := tx.exec(ctx, "LockMeter", id)
	if err != nil {
		return wrap("lock", err)
	}
	if n == 0 {
		return notFound(kindMeter, id)
	}
	if _, err := tx.exec(ctx, "DeleteEmptyBalances", id); err != nil {
		return wrap("delete empty balances", err)
	}
	before, err := tx.meters(ctx, []string{id}, "", 1)
	if err != nil {
		return err
	}
	// Check again: a balance may have received its first entry while this transaction waited for locks.
	if err := tx.meterUnused(ctx, id); err != nil {
		return err
	}
	if _, err := tx.exec(ctx, "DeleteMeter", id); err != nil {
		return wrap("delete", err)
	}
	tx.changed(ctx, kindMeter, id, change{action: "delete", before: orNil(first(before))})
	return nil
}

// meterUnused fails with errcode.Conflict if a plan, limit, gauge or balance refers to the meter. The error names one
// of them.
func (tx *txn) meterUnused(ctx context.Context, id string) error {
	uses, err := pgx.CollectRows(tx.query(ctx, "MeterInUse", id), pgx.RowTo[string])
	if err != nil {
		return wrap("meter in use", err)
	}
	if len(uses) > 0 {
		return errcode.Errorf(errcode.Conflict, "", "the meter %q is used by %s", id, uses[0])
	}
	return nil
}

// meters reads the meters whose ids are in the list ids, or all meters if the list is nil. It omits meters whose ids
// are not greater than `after`. It returns the first meters in the order of their ids, at most as many as `limit` says.
func (tx *txn) meters(ctx context.Context, ids []string, after string, limit int) ([]Meter, error) {
	rows := tx.query(ctx, "SelectMeters", ids, after, limit)
	items, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Meter, error) {
		var m Meter
		err := row.Scan(&m.ID, &m.Unit, &m.Description, &m.Kind, &m.DenialReplay, &m.Dimensions, &m.CreatedAt, &m.UpdatedAt)
		m.CreatedAt, m.UpdatedAt = m.CreatedAt.UTC(), m.UpdatedAt.UTC()
		if len(m.Dimensions) == 0 {
			m.Dimensions = nil
		}
		return m, err
	})
	return items, wrap("select meters", err)
}

// putMeter stores m. The argument `before` is the stored meter, read under the catalogue's lock. It is nil if m is
// new.
func (tx *txn) putMeter(ctx context.Context, before *Meter, m Meter) (Meter, error) {
	m.Kind = cmp.Or(m.Kind, KindCounter)
	statement := "InsertMeter"
	if before != nil && m.Kind != before.Kind {
		if err := tx.meterUnused(ctx, m.ID); err != nil {
			return Meter{}, err // the kind of a meter in use cannot be changed
		}
	}
	if before != nil {
		if m.same(*before) {
			return *before, nil
		}
		statement = "UpdateMeter"
	}
	err := tx.queryRow(ctx, statement, m.ID, m.Unit, m.Description, m.DenialReplay, append([]string{}, m.Dimensions...), m.Kind).Scan(&m.CreatedAt, &m.UpdatedAt)
	m.CreatedAt, m.UpdatedAt = m.CreatedAt.UTC(), m.UpdatedAt.UTC()
	tx.changed(ctx, kindMeter, m.ID, change{action: "put", before: orNil(before), after: &m})
	return m, wrap("store meter "+m.ID, err)
}

// first returns a pointer to the first of items. It returns nil if items is empty.
func first[T any](items []T) *T {
	if len(items) == 0 {
		return nil
	}
	return &items[0]
}
