package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/cowmap"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// cycleMax is the largest number of limits that the fault of a cycle names, and the largest number of faults of one
// cycle.
const cycleMax = 20

// RuleFault is a fault of a limit that can be found only together with other objects.
type RuleFault struct {
	Plan string // the plan that contains the limit; empty: the limit belongs to no plan
	Rule string

	body.Fault
	missing bool // the limit names an object that does not exist
}

// ruleFaults returns the faults in the replacements of limits. A replaced limit must exist, and no chain of
// replacements may be a cycle. The snapshot `before` is valid, so only limits that differ from it can have faults. If
// no limit differs, the time depends only on the number of plans.
func (s *Snapshot) ruleFaults(before *Snapshot) []RuleFault {
	put, plans := s.Changes(before)
	put = slices.DeleteFunc(put, func(l *Limit) bool { // keep only limits whose Replaces was changed
		old := before.limit(l.Rule)
		return old != nil && old.Replaces == l.Replaces
	})
	gone := map[string]bool{}
	old, _ := before.Changes(s)
	for _, l := range old {
		if s.limit(l.Rule) == nil {
			gone[l.Rule] = true
		}
	}
	if len(gone) > 0 { // add the limits that replace a deleted limit
		replacing := slices.DeleteFunc(slices.Clone(s.Limits), func(l *Limit) bool { return !gone[l.Replaces] })
		put = append(put, cowmap.Added(replacing, put, compareRules)...)
	}
	faults := replacementFaults("", put, s.limit)
	if len(put)+len(gone) > 0 {
		plans = slices.Collect(maps.Values(s.Plans)) // all plans, because a plan's limit may replace a changed limit
	}
	for _, p := range plans {
		// For the plan's tenants, the plan's limits replace the general limits of the same names.
		own := byID(p.Limits, func(l *Limit) string { return l.Rule })
		limits := column(p.Limits, func(l *Limit) *Limit { return l })
		faults = append(faults, replacementFaults(p.ID, limits, func(rule string) *Limit {
			if l := own[rule]; l != nil {
				return l
			}
			return s.limit(rule)
		})...)
	}
	slices.SortStableFunc(faults, func(a, b RuleFault) int {
		return strings.Compare(a.Plan+"/"+a.Rule, b.Plan+"/"+b.Rule)
	})
	return faults
}

// replacementFaults returns the faults in the replacements of limits. The function `known` returns the limit that a
// name in Replaces means, or nil if there is no such limit.
func replacementFaults(plan string, limits []*Limit, known func(rule string) *Limit) []RuleFault {
	var faults []RuleFault
	add := func(l *Limit, missing bool, format string, args ...any) {
		faults = append(faults, RuleFault{
			Plan: plan, Rule: l.Rule, Fault: body.Fault{Field: "replaces", Message: fmt.Sprintf(format, args...)}, missing: missing,
		})
	}
	walks := map[*Limit]int{} // number of the walk that visited a limit; no second walk visits the limit again
	for i, l := range limits {
		if l.Replaces == "" {
			continue
		}
		if known(l.Replaces) == nil {
			add(l, true, "names the limit %q, which does not exist", l.Replaces)
			continue
		}
		at := l
		for at != nil && at.Replaces != "" && walks[at] == 0 {
			walks[at] = i + 1
			at = known(at.Replaces)
		}
		if at == nil || walks[at] != i+1 {
			continue
		}
		// The walk has come back to the limit `at`, so this limit is part of a cycle.
		names, members := []string{at.Rule}, []*Limit{at}
		for next := known(at.Replaces); next != at; next = known(next.Replaces) {
			names, members = append(names, next.Rule), append(members, next)
		}
		for j, member := range members[:min(len(members), cycleMax)] {
			if plan == "" || slices.Contains(limits, member) {
				add(member, false, "makes a cycle: %s", cycleFrom(names, j))
			}
		}
	}
	return faults
}

// cycleFrom returns the sentence "a replaces b replaces a" for a cycle. The sentence begins with names[first].
func cycleFrom(names []string, first int) string {
	row := slices.Concat(names[first:], names[:first])
	if len(row) > cycleMax {
		row = append(row[:cycleMax], "...")
	}
	return strings.Join(append(row, names[first]), " replaces ")
}

// requireRules fails if the limits have faults after the changes of this transaction. plan is the changed plan; it is
// empty if a general limit was changed. The function `at` returns the request field to which a fault belongs.
func (tx *txn) requireRules(ctx context.Context, plan string, at func(*RuleFault) string) error {
	faults, err := tx.ruleFaults(ctx)
	if err != nil || len(faults) == 0 {
		return err
	}
	e := &errcode.Error{Code: errcode.InvalidArgument}
	for i := range faults {
		f := &faults[i]
		if f.missing {
			e.Code = errcode.NotFound
		}
		message := f.Message
		if f.Plan != plan {
			message += fmt.Sprintf(" (for tenants of the plan %q)", f.Plan)
		}
		if fault := (body.Fault{Field: at(f), Message: message}); !slices.Contains(e.Fields, fault) {
			e.Fields = append(e.Fields, fault)
		}
	}
	return e
}

// ruleFaults returns the faults that the limits have after the changes of this transaction. It checks only the
// differences from the newest snapshot, whose limits are valid.
func (tx *txn) ruleFaults(ctx context.Context) ([]RuleFault, error) {
	before := tx.store.latest.Load()
	after, err := tx.snapshot(ctx, before)
	if err != nil {
		return nil, err
	}
	faults := after.ruleFaults(before)
	missing, err := tx.missingTenants(ctx, after, before)
	if err != nil {
		return nil, err
	}
	faults = append(faults, missing...)
	if len(faults) == 0 && tx.store.cfg.CheckRules != nil {
		faults = tx.store.cfg.CheckRules(after, before)
	}
	return faults, nil
}

// missingTenants returns a fault for each changed limit whose tenant does not exist. Tenants are never deleted, so
// the other limits are not checked.
func (tx *txn) missingTenants(ctx context.Context, after, before *Snapshot) ([]RuleFault, error) {
	var faults []RuleFault
	var refs []reference
	note := func(plan string, l *Limit) {
		if id := l.Match.Tenant; id != "" {
			faults = append(faults, RuleFault{
				Plan: plan, Rule: l.Rule, Fault: missingReference("match.tenant", kindTenant, id).Fields[0], missing: true,
			})
			refs = append(refs, reference{"match.tenant", id})
		}
	}
	limits, plans := after.Changes(before)
	for _, l := range limits {
		note("", l)
	}
	for _, p := range plans {
		for i := range p.Limits {
			note(p.ID, &p.Limits[i])
		}
	}
	missing, err := tx.missing(ctx, "MissingTenants", refs)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	gone := make(map[reference]bool, len(missing))
	for _, ref := range missing {
		gone[ref] = true
	}
	all := faults
	faults = nil
	for i := range all {
		if gone[refs[i]] {
			faults = append(faults, all[i])
		}
	}
	return faults, nil
}

// requireNotReplaced fails with errcode.Conflict if another limit replaces the limit with the name rule. This
// transaction has deleted that limit.
func (tx *txn) requireNotReplaced(ctx context.Context, rule string) error {
	before := tx.store.latest.Load()
	snapshot, err := tx.snapshot(ctx, before)
	if err != nil {
		return err
	}
	for _, f := range snapshot.ruleFaults(before) {
		switch {
		case !f.missing:
		case f.Plan == "":
			return errcode.Errorf(errcode.Conflict, "", "the limit %q replaces %q; change or delete it first", f.Rule, rule)
		default:
			return errcode.Errorf(errcode.Conflict, "", "the limit %q of the plan %q replaces %q; change it first", f.Rule, f.Plan, rule)
		}
	}
	return nil
}
