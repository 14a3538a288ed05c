package catalog

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// PutMeter creates or replaces a meter and returns it as it is stored, and whether it is new.
func (s *Store) PutMeter(ctx context.Context, m Meter) (stored Meter, created bool, err error) {
	if err := validate(&m); err != nil {
		return Meter{}, false, err
	}
	err = s.write(ctx, "put meter", writeTimeout, true, func(ctx context.Context, tx *txn) error {
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

// Meter returns the meter id.
func (s *Store) Meter(ctx context.Context, id string) (m Meter, err error) {
	err = s.read(ctx, "read meter", func(ctx context.Context, tx *txn) error {
		items, err := tx.meters(ctx, []string{id}, "", 1)
		m, err = one(items, err, notFound(kindMeter, id))
		return err
	})
	return m, err
}

// ListMeters returns a page of all meters.
func (s *Store) ListMeters(ctx context.Context, p Page) (list List[Meter], err error) {
	after, err := p.after()
	if err != nil {
		return list, err
	}
	err = s.read(ctx, "list meters", func(ctx context.Context, tx *txn) error {
		items, err := tx.meters(ctx, nil, after, p.Limit+1)
		list = listed(items, p, func(m *Meter) string { return m.ID })
		return err
	})
	return list, err
}

// DeleteMeter deletes a meter that nothing refers to. It fails with CodeConflict while a version of a plan, a limit or a
// balance does. What a refused request has left of a balance, a row without an entry, goes with the meter.
func (s *Store) DeleteMeter(ctx context.Context, id string) error {
	return s.write(ctx, "delete meter", writeTimeout, true, func(ctx context.Context, tx *txn) error {
		// First of all, because a meter of a plan may have very many balances without an entry, and is not to be locked in vain.
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
		// And again: a balance may have got its first entry while its row, or the meter's, was waited for.
		if err := tx.meterUnused(ctx, id); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, "DeleteMeter", id); err != nil {
			return wrap("delete", err)
		}
		tx.changed(kindMeter, id)
		return nil
	})
}

// meterUnused returns CodeConflict with what refers to the meter.
func (tx *txn) meterUnused(ctx context.Context, id string) error {
	rows, err := tx.query(ctx, "MeterInUse", id)
	if err != nil {
		return wrap("meter in use", err)
	}
	uses, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return wrap("meter in use", err)
	}
	if len(uses) > 0 {
		return errorf(CodeConflict, "the meter %q is used by %s", id, uses[0])
	}
	return nil
}

// meters reads the meters ids (all if nil) after an id.
func (tx *txn) meters(ctx context.Context, ids []string, after string, limit int) ([]Meter, error) {
	rows, err := tx.query(ctx, "SelectMeters", ids, after, limit)
	if err != nil {
		return nil, wrap("select meters", err)
	}
	items, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Meter, error) {
		var m Meter
		err := row.Scan(&m.ID, &m.Unit, &m.Description, &m.DenialReplay, &m.CreatedAt, &m.UpdatedAt)
		m.CreatedAt, m.UpdatedAt = m.CreatedAt.UTC(), m.UpdatedAt.UTC()
		return m, err
	})
	return items, wrap("select meters", err)
}

// putMeter stores m where before, nil if there is none, was read under the catalogue's lock.
func (tx *txn) putMeter(ctx context.Context, before *Meter, m Meter) (Meter, error) {
	statement := "InsertMeter"
	if before != nil {
		if m.same(*before) {
			return *before, nil
		}
		statement = "UpdateMeter"
	}
	err := tx.queryRow(ctx, statement, m.ID, m.Unit, m.Description, m.DenialReplay).Scan(&m.CreatedAt, &m.UpdatedAt)
	m.CreatedAt, m.UpdatedAt = m.CreatedAt.UTC(), m.UpdatedAt.UTC()
	tx.changed(kindMeter, m.ID)
	return m, wrap("store meter "+m.ID, err)
}

// first is the first of items, or nil.
func first[T any](items []T) *T {
	if len(items) == 0 {
		return nil
	}
	return &items[0]
}
