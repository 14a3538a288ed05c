package catalog

import (
	"context"
	"time"
)

// Snapshot is all meters, the newest version of every plan, and all limits, at one moment. It is shared: read it only.
type Snapshot struct {
	Meters map[string]*Meter
	Plans  map[string]*Plan
	Limits []Limit // in order of their rules; without those that are part of a plan

	// ReadAt is when the process began to read it, by its own clock.
	ReadAt time.Time
}

// readSnapshot reads a snapshot from PostgreSQL, in one view of the database.
func (s *Store) readSnapshot(ctx context.Context, now time.Time) (*Snapshot, error) {
	var snapshot *Snapshot
	err := s.read(ctx, "read the catalogue", func(ctx context.Context, tx *txn) (err error) {
		snapshot, err = tx.snapshot(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	snapshot.ReadAt = now
	return snapshot, nil
}

// snapshot reads the catalogue as this transaction sees it.
func (tx *txn) snapshot(ctx context.Context) (*Snapshot, error) {
	snapshot := &Snapshot{Meters: map[string]*Meter{}, Plans: map[string]*Plan{}}
	meters, err := tx.meters(ctx, nil, "", unlimited)
	if err != nil {
		return nil, err
	}
	for i := range meters {
		snapshot.Meters[meters[i].ID] = &meters[i]
	}
	plans, err := tx.plans(ctx, nil, "", unlimited)
	if err != nil {
		return nil, err
	}
	for i := range plans {
		snapshot.Plans[plans[i].ID] = &plans[i]
	}
	snapshot.Limits, err = tx.limits(ctx, nil, "", unlimited)
	return snapshot, err
}
