package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quotasvc/quotasvc/internal/catalog/block"
	"github.com/quotasvc/quotasvc/internal/catalog/diff"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

// maxUnlisted bounds the tenants that Apply reports as not in the file, because there may be millions of them. Without
// pruning, it bounds the reported blocks as well.
const maxUnlisted = 100

// Apply changes the catalogue to the content of f, in one transaction. It does not change objects (meters, plans,
// limits, tenants, blocks) that f does not name, and reports them. A dry run makes the same changes and rolls them
// back. Its diff shows what the real run would change at that moment.
//
// The error is an *errcode.Error. It lists all references to missing objects, with their lines. Apply may take
// applyTimeout. Other changes of meters, plans, limits, blocks and the file's tenants wait until Apply ends.
func (s *Store) Apply(ctx context.Context, f *File, dryRun bool) (*diff.Report, error) {
	return s.apply(ctx, f, dryRun, false)
}

// ApplyPruning applies f like Apply. It also deletes the meters, limits and blocks that f does not name. If f lacks
// the section of a kind, it deletes nothing of that kind. A meter in use is not deleted, and a warning names the
// meter. Plans and tenants are never deleted.
func (s *Store) ApplyPruning(ctx context.Context, f *File, dryRun bool) (*diff.Report, error) {
	return s.apply(ctx, f, dryRun, true)
}

func (s *Store) apply(ctx context.Context, f *File, dryRun, prune bool) (*diff.Report, error) {
	var report *diff.Report
	err := s.write(ctx, "apply", pgstore.Options{Timeout: applyTimeout, Alone: true}, func(ctx context.Context, tx *txn) error {
		a := &application{tx: tx, file: f, prune: prune, diff: &diff.Report{DryRun: dryRun}}
		for _, step := range []func(context.Context) error{a.expected, a.meters, a.plans, a.limits, a.tenants, a.rules, a.blocks, a.pruneMeters} {
			if err := step(ctx); err != nil {
				return err
			}
		}
		if a.faults != nil {
			return a.faults
		}
		report = a.diff
		if dryRun {
			return pgstore.ErrRollback
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return report, nil
}

// application is one run of Apply.
type application struct {
	tx     *txn
	file   *File
	prune  bool
	diff   *diff.Report
	faults *errcode.Error
}

// refused records err as a fault of the object at path if the content of the file has caused err. It returns false
// for other errors. The transaction is still usable after such a fault, so Apply checks the other objects as well.
func (a *application) refused(path string, err error) bool {
	e, ok := errors.AsType[*errcode.Error](err)
	if !ok || len(e.Fields) == 0 {
		return false
	}
	if a.faults == nil {
		a.faults = &errcode.Error{Code: e.Code}
	}
	for _, f := range e.Fields {
		at := path + "." + f.Field
		if line, ok := a.file.lines[at]; ok {
			f.Message += fmt.Sprintf(" (line %d)", line)
		}
		a.faults.Fields = append(a.faults.Fields, body.Fault{Field: at, Message: f.Message})
	}
	return true
}

func (a *application) meters(ctx context.Context) error {
	stored, err := a.tx.meters(ctx, nil, "", unlimited)
	if err != nil {
		return err
	}
	id := func(m *Meter) string { return m.ID }
	known := byID(stored, id)
	for i := range a.file.Meters {
		m := a.file.Meters[i]
		after, err := a.tx.putMeter(ctx, known[m.ID], m)
		if err != nil {
			return err
		}
		if err := a.diff.Add(kindMeter, m.ID, orNil(known[m.ID]), &after); err != nil {
			return err
		}
	}
	a.diff.AddUnlisted(kindMeter, column(stored, id), column(a.file.Meters, id))
	return nil
}

func (a *application) plans(ctx context.Context) error {
	stored, err := a.tx.plans(ctx, nil, "", unlimited)
	if err != nil {
		return err
	}
	older, err := a.tx.olderPlans(ctx)
	if err != nil {
		return err
	}
	id := func(p *Plan) string { return p.ID }
	known := byID(stored, id)
	for i := range a.file.Plans {
		p := a.file.Plans[i]
		p.normalize()
		after, err := a.tx.putPlan(ctx, known[p.ID], p)
		if a.refused("plans."+p.ID, err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := a.diff.Add(kindPlan, p.ID, versioned(known[p.ID]), versioned(&after)); err != nil {
			return err
		}
		if known[p.ID] != nil && known[p.ID].Version == after.Version {
			continue
		}
		warnings, err := a.tx.warnings(ctx, known[p.ID], older[p.ID], &after)
		if err != nil {
			return err
		}
		a.diff.Warnings = append(a.diff.Warnings, warnings...)
	}
	a.diff.AddUnlisted(kindPlan, column(stored, id), column(a.file.Plans, id))
	return nil
}

func (a *application) limits(ctx context.Context) error {
	stored, err := a.tx.limits(ctx, nil, "", unlimited)
	if err != nil {
		return err
	}
	id := func(l *Limit) string { return l.Rule }
	known := byID(stored, id)
	for i := range a.file.Limits {
		l := a.file.Limits[i]
		l.normalize()
		after, err := a.tx.putLimit(ctx, known[l.Rule], l)
		if a.refused("limits."+l.Rule, err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := a.diff.Add(kindLimit, l.Rule, orNil(known[l.Rule]), &after); err != nil {
			return err
		}
	}
	a.diff.AddUnlisted(kindLimit, column(stored, id), column(a.file.Limits, id))
	return a.pruneLimits(ctx, stored)
}

// rules checks all limits together, at the end, because limits may refer to each other and to tenants in any order.
func (a *application) rules(ctx context.Context) error {
	if a.faults != nil || !slices.ContainsFunc(a.tx.writing.Announcements(), func(change string) bool {
		return strings.HasPrefix(change, kindLimit+":") || strings.HasPrefix(change, kindPlan+":")
	}) {
		return nil
	}
	faults, err := a.tx.ruleFaults(ctx)
	for i := range faults {
		f := &faults[i]
		code, path := errcode.InvalidArgument, "limits."+f.Rule
		if f.missing {
			code = errcode.NotFound
		}
		if f.Plan != "" {
			path = fmt.Sprintf("plans.%s.limits[%s]", f.Plan, f.Rule)
			for j := range a.file.Plans {
				if at := slices.IndexFunc(a.file.Plans[j].Limits, func(l Limit) bool { return l.Rule == f.Rule }); a.file.Plans[j].ID == f.Plan && at >= 0 {
					path = fmt.Sprintf("plans.%s.limits[%d]", f.Plan, at)
				}
			}
		}
		a.refused(path, &errcode.Error{Code: code, Fields: []body.Fault{f.Fault}})
	}
	return err
}

func (a *application) tenants(ctx context.Context) error {
	if a.file.Tenants == nil {
		return nil
	}
	wanted := slices.Clone(a.file.Tenants)
	refs := make([]reference, len(wanted))
	for i := range wanted {
		wanted[i].normalize()
		refs[i] = reference{wanted[i].ID, wanted[i].Plan}
	}
	// The tenants are sorted by id, as in every transaction that inserts or locks several tenants, to prevent
	// deadlocks.
	slices.SortFunc(wanted, func(a, b Tenant) int { return strings.Compare(a.ID, b.ID) })
	missing, err := a.tx.missing(ctx, "MissingPlans", refs)
	if err != nil {
		return err
	}
	for _, ref := range missing {
		a.refused("tenants."+ref.field, missingReference("plan", kindPlan, ref.id))
	}
	if a.faults != nil {
		return nil
	}
	locked, err := a.tx.lockTenants(ctx, wanted)
	if err != nil {
		return err
	}
	if err := a.requireOverridable(ctx, locked, wanted); err != nil || a.faults != nil {
		return err
	}
	for i := range wanted {
		t := wanted[i]
		before := locked[t.ID]
		after, err := a.tx.putTenant(ctx, before, t)
		if err != nil {
			return err
		}
		after = after.agreed()
		var old any
		if before != nil { // a change that waits is a change, and is none when the file is applied again
			old = new(before.agreed())
		} else if t.Anchor.IsZero() {
			after.Anchor = t.Anchor // the instant of creation: it is not in the file, and differs in each dry run
		}
		if err := a.diff.Add(kindTenant, t.ID, old, &after); err != nil {
			return err
		}
	}
	return a.unlistedTenants(ctx)
}

// requireOverridable records a fault for each new override of a meter that the tenant's plan will not have after
// Apply.
func (a *application) requireOverridable(ctx context.Context, locked map[string]*lockedTenant, wanted []Tenant) error {
	var list []override
	for i := range wanted {
		list = append(list, newOverrides(locked[wanted[i].ID], &wanted[i])...)
	}
	faulty, err := a.tx.notOverridable(ctx, list)
	for i := range faulty {
		a.refused("tenants."+faulty[i].tenant, errcode.Invalid(faulty[i].fault()))
	}
	return err
}

func (a *application) unlistedTenants(ctx context.Context) error {
	listed := column(a.file.Tenants, func(t *Tenant) string { return t.ID })
	others, err := a.tx.tenantIDs(ctx, listed, maxUnlisted+1)
	if err != nil {
		return err
	}
	if len(others) > maxUnlisted {
		others, a.diff.MoreTenants = others[:maxUnlisted], true
	}
	a.diff.AddUnlisted(kindTenant, others, nil)
	return nil
}

// blocks stores the blocks of the file that have not expired. An expired block is no error, because a file must stay
// usable after one of its blocks has expired.
func (a *application) blocks(ctx context.Context) error {
	if a.file.Blocks == nil || a.faults != nil {
		return nil
	}
	stored, err := a.tx.blocks(ctx, "SelectBlocks", "", "", "", unlimited, "")
	if err != nil {
		return err
	}
	id := func(b *block.Block) string { return b.ID() }
	known := byID(stored, id)
	for i := range a.file.Blocks {
		b := a.file.Blocks[i]
		before := known[b.ID()]
		after, err := a.tx.putBlock(ctx, before, b)
		if e, ok := errors.AsType[*errcode.Error](err); ok && e.Code == errcode.InvalidArgument {
			after, err = b, nil // expired
			if before == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if err := a.diff.Add(kindBlock, b.ID(), orNil(before), &after); err != nil {
			return err
		}
	}
	named := byID(a.file.Blocks, id)
	others := slices.DeleteFunc(column(stored, id), func(id string) bool { return named[id] != nil })
	if !a.prune && len(others) > maxUnlisted {
		others, a.diff.MoreBlocks = others[:maxUnlisted], true
	}
	a.diff.AddUnlisted(kindBlock, others, nil)
	if !a.prune {
		return nil
	}
	return a.deleteUnlisted(kindBlock, func(id string) error { return a.tx.deleteBlock(ctx, known[id]) })
}

// versioned returns a plan with its version as a field. It returns nil if p is nil.
func versioned(p *Plan) any {
	if p == nil {
		return nil
	}
	return struct {
		*Plan

		Version int32 `json:"version"`
	}{p, p.Version}
}

// orNil returns p as an interface, which is nil if p is nil.
func orNil[T any](p *T) any {
	if p == nil {
		return nil
	}
	return p
}

func byID[T any](items []T, id func(*T) string) map[string]*T {
	m := make(map[string]*T, len(items))
	for i := range items {
		m[id(&items[i])] = &items[i]
	}
	return m
}
