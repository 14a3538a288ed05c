package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/quotasvc/quotasvc/internal/catalog/block"
	"github.com/quotasvc/quotasvc/internal/catalog/diff"
)

// pruneLimits deletes the stored limits that the file does not name. Whether another limit replaces one of them is checked with the other
// rules, at the end.
func (a *application) pruneLimits(ctx context.Context, stored []Limit) error {
	if !a.prune || a.file.Limits == nil {
		return nil
	}
	known := byID(stored, func(l *Limit) string { return l.Rule })
	for _, rule := range a.diff.Of(kindLimit, diff.Unlisted) {
		if err := a.tx.deleteLimit(ctx, known[rule]); err != nil {
			return err
		}
		if err := a.tx.deleteOrphans(ctx, []string{rule}); err != nil {
			return err
		}
		a.diff.Delete(kindLimit, rule)
	}
	return nil
}

// pruneBlocks deletes the blocks that the file, which has the section, does not name.
func (a *application) pruneBlocks(ctx context.Context, known map[string]*block.Block, others []string) error {
	a.diff.AddUnlisted(kindBlock, others, nil)
	for _, id := range others {
		if err := a.tx.deleteBlock(ctx, known[id]); err != nil {
			return err
		}
		a.diff.Delete(kindBlock, id)
	}
	return nil
}

// pruneMeters deletes the unused meters that the file does not name. It comes last: the file may take the last use of a meter away.
func (a *application) pruneMeters(ctx context.Context) error {
	if !a.prune || a.file.Meters == nil || a.faults != nil {
		return nil
	}
	for _, id := range a.diff.Of(kindMeter, diff.Unlisted) {
		err := a.tx.deleteMeter(ctx, id)
		if e, ok := errors.AsType[*Error](err); ok && e.Code == CodeConflict {
			a.diff.Warnings = append(a.diff.Warnings, fmt.Sprintf("meter %s stays: %s", id, e.Detail))
			continue
		}
		if err != nil {
			return err
		}
		a.diff.Delete(kindMeter, id)
	}
	return nil
}

// Export returns the catalogue as a file: what Apply needs to make it again. Tenants are left out; there may be millions.
func (s *Store) Export(ctx context.Context) (*File, error) {
	f := &File{}
	err := s.read(ctx, "export", func(ctx context.Context, tx *txn) (err error) {
		if f.Meters, err = tx.meters(ctx, nil, "", unlimited); err != nil {
			return err
		}
		if f.Plans, err = tx.plans(ctx, nil, "", unlimited); err != nil {
			return err
		}
		if f.Limits, err = tx.limits(ctx, nil, "", unlimited); err != nil {
			return err
		}
		f.Blocks, err = tx.blocks(ctx, "SelectBlocks", "", "", "", unlimited, "")
		return err
	})
	return f, err
}
