package ratelimit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// Search is a search for the fullest buckets of a rule.
type Search struct {
	// Layouts are the layouts of the rule's keys.
	Layouts []rule.Layout
	// Most is the largest number of buckets to return, at least 1. It must be small, because the buckets found so far
	// are kept in a sorted list.
	Most int
	// Ahead is called with the tenants of each page of buckets, before Rule is called for these buckets. So it can
	// read, in one query, the data that Rule needs. It may be nil.
	Ahead func(ctx context.Context, tenants []string)
	// Rule returns the rule in force for a bucket, and the calendar of its windows; a nil calendar is the rule's own.
	// A bucket is left out if Rule returns nil or a rule of another kind.
	Rule func(layout rule.Layout, b BucketName) (*rule.Rule, *time.Location)
}

// BucketName identifies a bucket of a rule by its tenant and dimension. Tenant is empty for a shared rule.
type BucketName struct{ Tenant, Dimension string }

// BucketUse is the use of a bucket at the time of the search.
type BucketUse struct {
	BucketName

	Used  int64 // tokens missing from the bucket, rounded up, or held leases
	Limit int64 // capacity of the rule in force
}

// Fullest returns the fullest buckets in Redis, or in this process in local mode. They are ordered by Used/Limit,
// then by Used, both largest first, then by name. Unused buckets are left out. If a bucket changes during the search,
// its use is the one that the search read. complete is false if ctx ended first, or if keys were moving in a cluster.
// Then there may be fuller buckets that the search did not find. The search delays decisions little. It takes 1.1 to
// 1.5 s for 100,000 buckets among 1,100,000 keys, so callers must limit the number of searches at a time. Errors are
// ErrUnavailable (Redis is away) and ErrStopped.
func (l *Limiter) Fullest(ctx context.Context, s Search) (top []BucketUse, complete bool, err error) {
	if l.stopped.Load() {
		return nil, false, ErrStopped
	}
	found := fullest{search: &s}
	complete = true
	for _, layout := range s.Layouts {
		if l.store == nil {
			found.takeLocal(ctx, l, layout)
			continue
		}
		all, err := l.store.Walk(ctx, redisstore.Scan{
			Match: layout.Pattern(),
			Keep: func(key string) bool {
				_, _, ok := layout.Parse(key)
				return ok
			},
			Ends: layout.Kind == rule.KindConcurrency,
			Visit: func(p redisstore.Page) {
				if now := l.cfg.redisNow(); now > 0 {
					p.Now = now
				}
				found.take(ctx, layout, p)
			},
		})
		if err != nil {
			return nil, false, fmt.Errorf("%w: find the buckets: %w", ErrUnavailable, err)
		}
		complete = complete && all
	}
	return found.top, complete, nil
}

// fullest contains the fullest buckets found so far, the fullest first.
type fullest struct {
	search *Search
	top    []BucketUse
}

// use is a function that returns the number of used tokens of a bucket, with a given rule and time zone. ok is false
// if the bucket does not belong to the rule.
type use func(*rule.Rule, *time.Location) (tokens int64, ok bool)

// take reads the use of each bucket in a page, and keeps the fullest buckets.
func (f *fullest) take(ctx context.Context, layout rule.Layout, p redisstore.Page) {
	names := make([]BucketName, len(p.Keys))
	for i, key := range p.Keys {
		names[i].Tenant, names[i].Dimension, _ = layout.Parse(key)
	}
	f.ahead(ctx, names)
	for i, name := range names {
		f.consider(layout, name, func(r *rule.Rule, zone *time.Location) (int64, bool) {
			if layout.Kind == rule.KindConcurrency {
				return p.Counts[i], true
			}
			return r.Used(p.Values[i], rule.Moment{Now: p.Now, Zone: zone})
		})
	}
}

func (f *fullest) ahead(ctx context.Context, names []BucketName) {
	if f.search.Ahead == nil {
		return
	}
	tenants := make([]string, len(names))
	for i := range names {
		tenants[i] = names[i].Tenant
	}
	slices.Sort(tenants)
	f.search.Ahead(ctx, slices.Compact(tenants))
}

// consider adds a bucket if it is among the fullest. It calls the function `used` only if the bucket's rule is in
// force.
func (f *fullest) consider(layout rule.Layout, name BucketName, used use) {
	r, zone := f.search.Rule(layout, name)
	if r == nil || r.Kind != layout.Kind {
		return
	}
	zone = cmp.Or(zone, r.Zone)
	n, ok := used(r, zone)
	if !ok || n < 1 {
		return
	}
	b := BucketUse{BucketName: name, Used: n, Limit: r.Burst}
	if len(f.top) == f.search.Most && compareUse(b, f.top[len(f.top)-1]) > 0 {
		return
	}
	if slices.ContainsFunc(f.top, func(known BucketUse) bool { return known.BucketName == name }) {
		return // the search has already found this bucket
	}
	at, _ := slices.BinarySearchFunc(f.top, b, compareUse)
	f.top = slices.Insert(f.top, at, b)
	f.top = f.top[:min(len(f.top), f.search.Most)]
}

// compareUse orders buckets, the fullest first.
func compareUse(a, b BucketUse) int {
	aHigh, aLow := bits.Mul64(uint64(a.Used), uint64(b.Limit))
	bHigh, bLow := bits.Mul64(uint64(b.Used), uint64(a.Limit))
	return cmp.Or(cmp.Compare(bHigh, aHigh), cmp.Compare(bLow, aLow), cmp.Compare(b.Used, a.Used),
		strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Dimension, b.Dimension))
}

// takeLocal reads the use of each bucket of a layout in local mode, and keeps the fullest buckets.
func (f *fullest) takeLocal(ctx context.Context, l *Limiter, layout rule.Layout) {
	now := l.micros()
	uses := map[BucketName]use{}
	add := func(key string, used use) {
		if tenant, dimension, ok := layout.Parse(key); ok {
			uses[BucketName{tenant, dimension}] = used
		}
	}
	if layout.Kind == rule.KindConcurrency {
		for key, held := range l.leases.table.heldBy(now) {
			add(key, func(*rule.Rule, *time.Location) (int64, bool) { return held, true })
		}
	} else {
		for i := range l.local.stripes {
			for key, e := range l.local.stripes[i].copied() {
				add(key, func(r *rule.Rule, zone *time.Location) (int64, bool) {
					return r.UsedIn(e.in(r.Limit()), rule.Moment{Now: now, Zone: zone}), e.fullAt > now
				})
			}
		}
	}
	f.ahead(ctx, slices.Collect(maps.Keys(uses)))
	for name, used := range uses {
		f.consider(layout, name, used)
	}
}

// copied returns a copy of the levels of a stripe. The copy shares the slices of the logs, whose elements do not
// change.
func (s *stripe) copied() map[string]localLevel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.all)
}

// heldBy returns the number of held leases of each bucket, by the bucket's key.
func (t *leaseTable) heldBy(now int64) map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := make(map[string]int64, len(t.buckets))
	for key := range t.buckets {
		held[key] = int64(len(t.current(key, now).leases))
	}
	return held
}
