package catalog

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/cowmap"
)

// Snapshot is all meters, the versions of each plan that are in force, and all limits at one moment. It is shared and
// must not be changed. If a meter, plan or limit is equal in two successive snapshots, both have the same pointer.
type Snapshot struct {
	Meters map[string]*Meter
	Plans  map[string]*Plan

	// Older has the older versions of plans that may be in force for some tenants, without their allowances.
	Older map[PlanVersion]*Plan

	Limits []*Limit // in order of their names; without the limits of plans

	// Compiled is the result of the function given to Catalog.Compile for this snapshot; nil: no function was given.
	Compiled any

	// ReadAt is the instant of the process's clock at which the read of the newest change began.
	ReadAt time.Time

	sums map[group]sum
}

// group identifies a part of a table: the rows whose ids have the same hash (place).
type group struct {
	table int16 // the table's number in SelectSums
	place int32
}

const (
	meterRows = 1 + iota
	planRows
	limitRows
)

// sum is the number of rows of a group and a checksum of the rows. It differs after the rows were changed.
type sum struct{ rows, of int64 }

// groupsMax is the largest number of changed groups of limits that are read separately. There are about a thousand
// groups. If more than groupsMax groups were changed, all limits are read.
const groupsMax = 50

// placeOf returns the place of the group to which an id belongs, as SelectSums computes it.
func placeOf(id string) int32 {
	n := len(id)
	return int32(id[n-1])<<10 + int32(id[max(n-2, 0)])<<3 + int32(n&7) //nolint:gosec // at most bound.MaxID
}

// sums returns the sums of all groups, from PostgreSQL.
func (tx *txn) sums(ctx context.Context) (map[group]sum, error) {
	rows := tx.query(ctx, "SelectSums")
	sums := map[group]sum{}
	var (
		g group
		s sum
	)
	_, err := pgx.ForEachRow(rows, []any{&g.table, &g.place, &s.rows, &s.of}, func() error {
		sums[g] = s
		return nil
	})
	return sums, wrap("select sums", err)
}

// readSnapshot reads a snapshot from PostgreSQL, in one read-only transaction. It reads only the data that differs
// from the previous snapshot. It returns the previous snapshot if nothing was changed.
func (s *Store) readSnapshot(ctx context.Context, before *Snapshot, now time.Time) (*Snapshot, error) {
	var snapshot *Snapshot
	err := s.fill(ctx, "read the catalogue", func(ctx context.Context, tx *txn) (err error) {
		snapshot, err = tx.snapshot(ctx, before)
		return err
	})
	if err != nil {
		return nil, err
	}
	if snapshot != before {
		snapshot.ReadAt = now
	}
	return snapshot, nil
}

// snapshot returns the catalogue as this transaction sees it. It reads all meters or all plans if a sum of their
// groups differs from the sum in the previous snapshot. Of the limits it reads the groups that differ. If no sum
// differs, it returns the previous snapshot.
func (tx *txn) snapshot(ctx context.Context, before *Snapshot) (*Snapshot, error) {
	sums, err := tx.sums(ctx)
	if err != nil {
		return nil, err
	}
	if before.sums != nil && maps.Equal(sums, before.sums) {
		return before, nil
	}
	s := &Snapshot{Meters: before.Meters, Plans: before.Plans, Older: before.Older, Limits: before.Limits, sums: sums}
	stale := before.stale(sums)
	if len(stale[meterRows]) > 0 || s.Meters == nil {
		meters, err := tx.meters(ctx, nil, "", unlimited)
		if err != nil {
			return nil, err
		}
		s.Meters = reused(before.Meters, meters, func(m *Meter) string { return m.ID })
	}
	if len(stale[planRows]) > 0 || s.Plans == nil {
		plans, err := tx.plans(ctx, nil, "", unlimited)
		if err != nil {
			return nil, err
		}
		older, err := tx.collectPlans(ctx, "SelectOlderPlans", tx.store.db.Now())
		if err != nil {
			return nil, err
		}
		s.Plans = reused(before.Plans, plans, func(p *Plan) string { return p.ID })
		s.Older = reused(before.Older, older, func(p *Plan) PlanVersion { return PlanVersion{p.ID, p.Version} })
	}
	if len(stale[limitRows]) > 0 {
		s.Limits, err = tx.changedLimits(ctx, before.Limits, stale[limitRows])
	}
	return s, err
}

// stale returns the places of the groups whose sum differs between s and sums, for each table.
func (s *Snapshot) stale(sums map[group]sum) [limitRows + 1][]int32 {
	var stale [limitRows + 1][]int32
	note := func(g group) { stale[g.table] = append(stale[g.table], g.place) }
	for g, sum := range sums {
		if s.sums[g] != sum {
			note(g)
		}
	}
	for g := range s.sums {
		if _, ok := sums[g]; !ok {
			note(g)
		}
	}
	return stale
}

// reused returns the elements of the list `read` as a map by id. If the map `before` has an equal object with the
// same id, the result has the pointer from that map.
func reused[K comparable, T any](before map[K]*T, read []T, id func(*T) K) map[K]*T {
	all := make(map[K]*T, len(read))
	for _, item := range read {
		if known := before[id(&item)]; known != nil && reflect.DeepEqual(*known, item) {
			all[id(&item)] = known
		} else {
			all[id(&item)] = &item
		}
	}
	return all
}

// changedLimits returns the stored limits, as pointers. It takes limits from the list `before`, except limits of the
// groups at places, which it reads from PostgreSQL.
func (tx *txn) changedLimits(ctx context.Context, before []*Limit, places []int32) ([]*Limit, error) {
	statement, args := "SelectLimitsIn", []any{places}
	if len(places) > groupsMax {
		statement, args = "SelectLimits", []any{nil, "", unlimited}
	}
	read, err := tx.collectLimits(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	known, stale := map[string]*Limit{}, make(map[int32]bool, len(places))
	for _, place := range places {
		stale[place] = true
	}
	kept := make([]*Limit, 0, len(before)+1)
	for i, l := range before {
		cowmap.Yield(i)
		if stale[placeOf(l.Rule)] {
			known[l.Rule] = l
		} else {
			kept = append(kept, l)
		}
	}
	var others []*Limit
	for _, l := range read { // l is a copy: a pointer to one element would keep the memory of all elements
		switch old := known[l.Rule]; {
		case !stale[placeOf(l.Rule)]:
		case old != nil && old.UpdatedAt.Equal(l.UpdatedAt) && l.same(*old):
			others = append(others, old)
		default:
			others = append(others, &l)
		}
	}
	slices.SortFunc(others, compareRules)
	return cowmap.Merged(kept, others, compareRules), nil
}

// Plan returns a version of a plan that is in force for some tenant. If the snapshot does not have that version, which
// is older or newer than the snapshot's versions, Plan returns the newest. It returns nil if there is no such plan.
func (s *Snapshot) Plan(id string, version int32) *Plan {
	if p := s.Older[PlanVersion{id, version}]; p != nil {
		return p
	}
	return s.Plans[id]
}

// AllPlans returns the newest versions of all plans, and the older ones that may be in force for some tenants.
func (s *Snapshot) AllPlans() []*Plan {
	return slices.AppendSeq(slices.Collect(maps.Values(s.Plans)), maps.Values(s.Older))
}

// compareRules orders limits by their names.
func compareRules(a, b *Limit) int { return strings.Compare(a.Rule, b.Rule) }

// limit returns the limit named rule that belongs to no plan. It returns nil if no such limit exists.
func (s *Snapshot) limit(rule string) *Limit {
	if at, found := slices.BinarySearchFunc(s.Limits, &Limit{Rule: rule}, compareRules); found {
		return s.Limits[at]
	}
	return nil
}

// Changes returns the limits and plans of s that the snapshot `before` does not have, or has with other content. It
// allocates nothing for unchanged limits and plans.
func (s *Snapshot) Changes(before *Snapshot) (limits []*Limit, plans []*Plan) {
	limits = cowmap.Added(s.Limits, before.Limits, compareRules)
	for id, p := range s.Plans {
		if before.Plans[id] != p {
			plans = append(plans, p)
		}
	}
	slices.SortFunc(plans, func(a, b *Plan) int { return strings.Compare(a.ID, b.ID) })
	return limits, plans
}
