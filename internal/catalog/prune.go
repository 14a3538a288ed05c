package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/quotasvc/quotasvc/internal/catalog/diff"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// deleteUnlisted calls the function `do` to delete each stored object of a kind that the file does not name. An object
// in use stays, and a warning names it.
func (a *application) deleteUnlisted(kind string, do func(id string) error) error {
	for _, id := range a.diff.Of(kind, diff.Unlisted) {
		err := do(id)
		if e, ok := errors.AsType[*errcode.Error](err); ok && e.Code == errcode.Conflict {
			a.diff.Warnings = append(a.diff.Warnings, fmt.Sprintf("%s %s stays: %s", kind, id, e.Detail))
			continue
		}
		if err != nil {
			return err
		}
		a.diff.Delete(kind, id)
	}
	return nil
}

// pruneLimits deletes the stored limits that the file does not name. If another limit replaces a deleted limit, the
// later check of all limits fails.
func (a *application) pruneLimits(ctx context.Context, stored []Limit) error {
	if !a.prune || a.file.Limits == nil {
		return nil
	}
	known := byID(stored, func(l *Limit) string { return l.Rule })
	return a.deleteUnlisted(kindLimit, func(rule string) error {
		if err := a.tx.deleteLimit(ctx, known[rule]); err != nil {
			return err
		}
		return a.tx.deleteOrphans(ctx, []string{rule})
	})
}

// pruneMeters deletes the stored meters that the file does not name. It runs last, because the file may remove the
// last use of a meter.
func (a *application) pruneMeters(ctx context.Context) error {
	if !a.prune || a.file.Meters == nil || a.faults != nil {
		return nil
	}
	return a.deleteUnlisted(kindMeter, func(id string) error { return a.tx.deleteMeter(ctx, id) })
}

// Export returns the catalogue as a file from which Apply can restore it. The file has no tenants, because there may
// be millions of tenants.
func (s *Store) Export(ctx context.Context) (f *File, err error) {
	err = s.read(ctx, "export", func(ctx context.Context, tx *txn) error {
		if f, err = tx.export(ctx); err == nil {
			f.Blocks, err = tx.blocks(ctx, "SelectBlocks", "", "", "", unlimited, "")
		}
		return err
	})
	return f, err
}

// export returns a file with all meters, newest plans and limits.
func (tx *txn) export(ctx context.Context) (*File, error) {
	meters, err := tx.meters(ctx, nil, "", unlimited)
	plans, noPlans := tx.plans(ctx, nil, "", unlimited)
	limits, noLimits := tx.limits(ctx, nil, "", unlimited)
	for i := range plans {
		plans[i].Apply = "" // the file says what is sold, not when it took effect
	}
	return &File{Meters: meters, Plans: plans, Limits: limits}, errors.Join(err, noPlans, noLimits)
}

// expected calls the file's Expect with the stored objects.
func (a *application) expected(ctx context.Context) error {
	if a.file.Expect == nil {
		return nil
	}
	stored, err := a.tx.export(ctx)
	if err != nil {
		return err
	}
	return a.file.Expect(stored)
}
