package catalog

import (
	"context"
	"time"
)

// Snapshot is all meters, the newest version of each plan, and all limits at one moment. It is shared and must not be
// changed.
type Snapshot struct {
	Meters map[string]*Meter
	Plans  map[string]*Plan
	Limits []Limit // in order of rules; without the limits of plans

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

// Reading takes at most 1/reloadShare of the time, with pauses of at most reloadSleepMax. A flood of changes must not become
// a flood of reads, and no change waits longer than a second.
const (
	reloadShare    = 5
	reloadSleepMax = 500 * time.Millisecond
)

// reloader keeps one copy of a Catalog current.
type reloader struct {
	what string
	read func(context.Context) error
	kick chan struct{} // capacity 1: a reload is due
}

func newReloader(what string, read func(context.Context) error) *reloader {
	return &reloader{what: what, read: read, kick: make(chan struct{}, 1)}
}

// trigger makes a reload due.
func (r *reloader) trigger() {
	select {
	case r.kick <- struct{}{}:
	default: // one is due already and has not begun to read
	}
}

// reload runs r when a reload is due, and periodically.
func (c *Catalog) reload(ctx context.Context, r *reloader) {
	ticker := time.NewTicker(c.cfg.ReloadEvery)
	defer ticker.Stop()
	failing := false
	for retry := newBackoff(); ; {
		select {
		case <-ctx.Done():
			return
		case <-r.kick:
		case <-ticker.C:
		}
		began := c.cfg.Now()
		err := r.read(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.metrics.reloads.WithLabelValues("failed").Inc()
			if !failing {
				c.log.Warn("catalogue cannot be reloaded; the previous copy stays in use", "what", r.what, "error", err)
			}
			failing = true
			if !retry.wait(ctx) {
				return
			}
			r.trigger()
		default:
			c.metrics.reloads.WithLabelValues("done").Inc()
			if failing {
				c.log.Info("catalogue reloaded again", "what", r.what)
			}
			failing = false
			retry.reset()
			if !sleep(ctx, c.cfg.Now().Sub(began)) {
				return
			}
		}
	}
}

// sleep waits after a read of this duration. It returns false if ctx ends first.
func sleep(ctx context.Context, took time.Duration) bool {
	timer := time.NewTimer(min((reloadShare-1)*took, reloadSleepMax))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
