package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quotasvc/quotasvc/internal/body"
)

// RuleFault is a fault of a limit that depends on other objects.
type RuleFault struct {
	Plan string // plan of the limit; empty: a limit of the catalogue
	Rule string

	body.Fault
	missing bool // it names an object that does not exist
}

// ruleFaults returns the faults of limits among each other: a replaced limit must exist, and no chain of replacements may be
// a cycle.
func (s *Snapshot) ruleFaults() []RuleFault {
	var faults []RuleFault
	general := make(map[string]*Limit, len(s.Limits))
	for i := range s.Limits {
		general[s.Limits[i].Rule] = &s.Limits[i]
	}
	faults = append(faults, replacementFaults("", s.Limits, general)...)
	for id, p := range s.Plans {
		if len(p.Limits) == 0 {
			continue
		}
		// The limits of the plan's tenants: those of the plan replace those of the same name.
		own := make(map[string]*Limit, len(general)+len(p.Limits))
		for name, l := range general {
			own[name] = l
		}
		for i := range p.Limits {
			own[p.Limits[i].Rule] = &p.Limits[i]
		}
		faults = append(faults, replacementFaults(id, p.Limits, own)...)
	}
	slices.SortFunc(faults, func(a, b RuleFault) int {
		return strings.Compare(a.Plan+"/"+a.Rule, b.Plan+"/"+b.Rule)
	})
	return faults
}

// replacementFaults checks the replacements of limits. known has all limits that may be replaced.
func replacementFaults(plan string, limits []Limit, known map[string]*Limit) []RuleFault {
	var faults []RuleFault
	add := func(l *Limit, missing bool, format string, args ...any) {
		faults = append(faults, RuleFault{
			Plan: plan, Rule: l.Rule, Fault: body.Fault{Field: "replaces", Message: fmt.Sprintf(format, args...)}, missing: missing,
		})
	}
	for i := range limits {
		l := &limits[i]
		if l.Replaces == "" {
			continue
		}
		if known[l.Replaces] == nil {
			add(l, true, "names the limit %q, which does not exist", l.Replaces)
			continue
		}
		row := []string{l.Rule}
		for at := known[l.Replaces]; at != nil; at = known[at.Replaces] {
			again := slices.Index(row, at.Rule)
			if row = append(row, at.Rule); again == 0 {
				add(l, false, "makes a cycle: %s", strings.Join(row, " replaces "))
			}
			if again >= 0 { // a cycle that l only leads to is a fault of the limits in it
				break
			}
		}
	}
	return faults
}

// requireRules fails if the limits, as this transaction leaves them, have faults among each other. plan is the changed plan,
// empty for a limit. at returns the field of the request for a fault.
func (tx *txn) requireRules(ctx context.Context, plan string, at func(*RuleFault) string) error {
	faults, err := tx.ruleFaults(ctx)
	if err != nil || len(faults) == 0 {
		return err
	}
	e := &Error{Code: CodeInvalidArgument}
	for i := range faults {
		f := &faults[i]
		if f.missing {
			e.Code = CodeNotFound
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

// ruleFaults returns the faults of the limits as this transaction leaves them.
func (tx *txn) ruleFaults(ctx context.Context) ([]RuleFault, error) {
	snapshot, err := tx.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	faults := snapshot.ruleFaults()
	missing, err := tx.missingTenants(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	faults = append(faults, missing...)
	if len(faults) == 0 && tx.store.cfg.CheckRules != nil {
		faults = tx.store.cfg.CheckRules(snapshot)
	}
	return faults, nil
}

// missingTenants returns the limits of tenants that do not exist.
func (tx *txn) missingTenants(ctx context.Context, s *Snapshot) ([]RuleFault, error) {
	var faults []RuleFault
	var refs []reference
	note := func(plan string, limits []Limit) {
		for i := range limits {
			if id := limits[i].Match.Tenant; id != "" {
				faults = append(faults, RuleFault{
					Plan: plan, Rule: limits[i].Rule, Fault: missingReference("match.tenant", kindTenant, id).Fields[0], missing: true,
				})
				refs = append(refs, reference{"match.tenant", id})
			}
		}
	}
	note("", s.Limits)
	for id, p := range s.Plans {
		note(id, p.Limits)
	}
	missing, err := tx.missing(ctx, "MissingTenants", refs)
	if err != nil {
		return nil, err
	}
	all := faults
	faults = nil
	for i := range all {
		if slices.Contains(missing, refs[i]) {
			faults = append(faults, all[i])
		}
	}
	return faults, nil
}

// requireNotReplaced fails with CodeConflict if a limit replaces rule, which this transaction has deleted.
func (tx *txn) requireNotReplaced(ctx context.Context, rule string) error {
	snapshot, err := tx.snapshot(ctx)
	if err != nil {
		return err
	}
	for _, f := range snapshot.ruleFaults() {
		switch {
		case !f.missing:
		case f.Plan == "":
			return errorf(CodeConflict, "the limit %q replaces %q; change or delete it first", f.Rule, rule)
		default:
			return errorf(CodeConflict, "the limit %q of the plan %q replaces %q; change it first", f.Rule, f.Plan, rule)
		}
	}
	return nil
}
