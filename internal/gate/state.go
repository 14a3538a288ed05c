package gate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/override"
	"github.com/quotasvc/quotasvc/internal/kit/address"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// nobody replaces the name of the tenant for a bucket that all tenants share.
const nobody = "nobody"

const (
	// searchTime is the longest time of a search for buckets. searchWait is the longest wait for another search to
	// end. Together they are shorter than the time limit of a request.
	searchTime = 3 * time.Second
	searchWait = time.Second
)

// overridesAtOnce is the number of overrides that a search for buckets reads at a time.
const overridesAtOnce = 10_000

// namesKept is the number of buckets whose names are remembered. They take 8 MB if all routes have the greatest
// length. The names of the fullest buckets stay remembered, because these buckets are charged all the time.
const namesKept = 4096

// LimitState is the state of one bucket.
type LimitState struct {
	Kind string // kind of the limit, as in the catalogue

	// Remaining is the number of whole tokens, or of free leases. Limit is the capacity of the bucket.
	Remaining, Limit int64

	// Owed is the number of tokens by which the bucket is below zero, rounded up.
	Owed int64

	// Next is the time until one more token is available. Full is the time until the bucket is full. Both are zero
	// for leases, because holders decide when leases end.
	Next, Full time.Duration

	// Banned is the time until the bucket's ban ends. It is zero if the bucket is not banned.
	Banned time.Duration

	Degraded bool // Redis is down: this is the state of this instance's share of the limit
}

// LimitState returns the state of a bucket, and charges nothing. Errors are *errcode.Error.
func (g *Gate) LimitState(ctx context.Context, req BucketRequest) (LimitState, error) {
	return withNewest(ctx, g, func() (LimitState, error) { return g.limitState(ctx, req) })
}

func (g *Gate) limitState(ctx context.Context, req BucketRequest) (LimitState, error) {
	facts, p, dimension, err := g.bucket(ctx, &req)
	switch {
	case err != nil:
		return LimitState{}, err
	case req.Tenant == "":
		req.Tenant = nobody
	case facts.unknown:
		return LimitState{}, noTenant(req.Tenant)
	}
	out := LimitState{Kind: p.compiled.Kind.String(), Limit: p.compiled.Burst}
	if p.compiled.Kind == rule.KindConcurrency {
		lease, err := g.limiter.Count(ctx, ratelimit.LeaseRequest{Tenant: req.Tenant, Rule: &p.compiled, Dimension: dimension})
		if err != nil || lease.Unknown {
			return LimitState{}, unavailable("the leases could not be counted", err)
		}
		out.Remaining, out.Limit, out.Degraded = lease.Remaining, lease.Limit, lease.Degraded
		return out, nil
	}
	charge := ratelimit.Charge{Rule: &p.compiled, Dimension: dimension, Cost: 1}
	if p.zoneOfTenant {
		charge.Zone = facts.zone
	}
	decision, err := g.limiter.Peek(ctx, ratelimit.Request{Tenant: req.Tenant, Charges: []ratelimit.Charge{charge}, Fresh: true})
	if err == nil && decision.Verdicts[0].Unknown {
		err = errors.New("the limit is open while Redis is away")
	}
	if err != nil {
		return LimitState{}, unavailable("the bucket could not be read", err)
	}
	v := &decision.Verdicts[0]
	out.Remaining, out.Owed, out.Limit, out.Next, out.Full, out.Banned, out.Degraded = v.Remaining, v.Owed, v.Limit, v.Next, v.Reset, v.Banned, decision.Degraded
	return out, nil
}

// UsedBucket is a bucket of a rule, with the number of used tokens or leases.
type UsedBucket struct {
	BucketNames

	Tenant string // empty: all tenants share the bucket
	Bucket string // hash of the names, if the names are not known

	Used, Limit int64 // as in ratelimit.BucketUse
}

// FullestBuckets returns the fullest buckets of a rule, at most as many as the argument `most` says. complete reports
// whether all buckets could be examined in time. The result includes the buckets of plans' own rules with this id.
// Each bucket has the rate and burst in force for its tenant. See ratelimit.Limiter.Fullest. One search runs at a
// time. Errors are *errcode.Error.
func (g *Gate) FullestBuckets(ctx context.Context, id string, most int) (found []UsedBucket, complete bool, err error) {
	leave, err := g.enterSearch(ctx)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	s := g.newBucketSearch(id)
	if len(s.rules) == 0 {
		return nil, false, &errcode.Error{Code: errcode.NotFound, Detail: "there is no limit of this name, in plans neither; a limit that was just created is known within moments"}
	}
	if err := s.readOverrides(ctx); err != nil {
		return nil, false, unavailable("the overrides of the limit could not be read", err)
	}
	search := ratelimit.Search{Most: most, Rule: s.inForce}
	for _, p := range s.rules {
		if layout := p.layout(); !slices.Contains(search.Layouts, layout) {
			search.Layouts = append(search.Layouts, layout)
		}
	}
	if s.byTenant {
		search.Ahead = s.readPlans
	}
	top, complete, err := g.limiter.Fullest(ctx, search)
	switch {
	case err != nil:
		return nil, false, unavailable("the buckets could not be read", err)
	case complete && s.failed != nil:
		return nil, false, unavailable("the plans of tenants could not be read", s.failed)
	}
	found = make([]UsedBucket, len(top))
	for i := range top {
		found[i] = s.name(&top[i])
	}
	return found, complete, nil
}

// enterSearch waits at most searchWait until no other search runs. The caller must call leave after its search.
func (g *Gate) enterSearch(ctx context.Context) (leave func(), err error) {
	wait, cancel := context.WithTimeout(ctx, searchWait)
	defer cancel()
	select {
	case g.searching <- struct{}{}:
		return func() { <-g.searching }, nil
	case <-wait.Done():
		return nil, &errcode.Error{
			Code: errcode.QueueFull, RetryAfter: searchTime, Detail: "this instance looks for the fullest buckets for another caller", Cause: wait.Err(),
		}
	}
}

// bucketSearch finds the rule in force for each bucket of the rules with one id.
type bucketSearch struct {
	g         *Gate
	id        string
	snapshot  *catalog.Snapshot
	compiled  *compiledRules
	rules     []*planRule // first the general rule, if there is one, then the plans' own rules
	byTenant  bool        // the rule in force depends on the tenant's plan or calendar
	overrides map[ratelimit.BucketName]*override.InForce
	names     map[string]BucketNames        // names from the catalogue and the overrides, by dimension
	plans     map[string]catalog.TenantPlan // plans of the tenants of one page of buckets, if byTenant
	failed    error                         // error of a read of tenants' plans
}

func (g *Gate) newBucketSearch(id string) *bucketSearch {
	snapshot := g.tenants.catalog.Snapshot()
	compiled := snapshot.Compiled.(*compiledRules)
	s := &bucketSearch{
		g: g, id: id, snapshot: snapshot, compiled: compiled, overrides: map[ratelimit.BucketName]*override.InForce{}, names: map[string]BucketNames{"": {}},
	}
	if p := compiled.general.rule(id); p != nil {
		s.rules = append(s.rules, p)
	}
	plans := snapshot.AllPlans()
	slices.SortFunc(plans, func(a, b *catalog.Plan) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), cmp.Compare(b.Version, a.Version))
	})
	for _, plan := range plans {
		set := compiled.rulesOf(snapshot, plan)
		if set.own == nil {
			continue
		}
		if p := set.own.byID.Get(id); p != nil {
			s.rules, s.byTenant = append(s.rules, p), true
		}
	}
	for _, p := range s.rules {
		s.byTenant = s.byTenant || p.zoneOfTenant
		if p.byPattern && !p.perSubject && !p.perIP {
			s.names[p.dimension(&Request{})] = p.names(&Request{})
		}
	}
	return s
}

// readOverrides reads all overrides of the rule. A subject's override is used only if the subject is the only
// dimension besides the tenant.
func (s *bucketSearch) readOverrides(ctx context.Context) error {
	if s.g.overrides == nil {
		return nil
	}
	page := listing.Query{Limit: overridesAtOnce}
	for {
		list, err := s.g.overrides.List(ctx, s.id, page)
		if err != nil {
			return err
		}
		for i := range list.Items {
			o := &override.InForce{Override: list.Items[i]}
			name := ratelimit.BucketName{Tenant: o.Tenant}
			if o.Subject == "" {
				s.overrides[name] = o
				continue
			}
			for _, p := range s.rules {
				if p.perSubject && !p.perIP && (!p.perRoute || p.byPattern) {
					req := Request{Subject: o.Subject}
					name.Dimension = p.dimension(&req)
					s.overrides[name], s.names[name.Dimension] = o, p.names(&req)
				}
			}
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			return nil
		}
	}
}

// layout returns the layout of the rule's keys.
func (r *limitRule) layout() rule.Layout {
	return r.compiled.Layout(r.perSubject || r.perRoute || r.perIP)
}

// readPlans reads the plans of the tenants of the next page of buckets. It is ratelimit.Search.Ahead.
func (s *bucketSearch) readPlans(ctx context.Context, tenants []string) {
	if s.failed != nil {
		return
	}
	var plans []catalog.TenantPlan
	plans, s.failed = s.g.tenants.catalog.TenantPlans(ctx, tenants)
	s.plans = make(map[string]catalog.TenantPlan, len(plans))
	for _, p := range plans {
		s.plans[p.ID] = p
	}
}

// of returns the rule for those buckets of a tenant that have keys with this layout. If the rule's windows follow the
// tenant's calendar, it also returns that calendar. It returns nil if the buckets belong to an earlier rule or plan,
// or if the tenant's plan could not be read.
func (s *bucketSearch) of(layout rule.Layout, tenant string) (*planRule, *time.Location) {
	at := slices.IndexFunc(s.rules, func(p *planRule) bool { return p.layout() == layout })
	if !s.byTenant || layout.Shared {
		return s.rules[at], nil
	}
	t, known := s.plans[tenant]
	if !known && s.failed != nil {
		return nil, nil
	}
	p := s.compiled.rulesOf(s.snapshot, s.snapshot.Plan(t.Plan, t.Version)).rule(s.id)
	if p == nil || p.layout() != layout {
		return nil, nil
	}
	if p.zoneOfTenant {
		if zone, err := s.g.tenants.zones.Parse(t.Timezone); err == nil {
			return p, zone
		}
	}
	return p, nil
}

// override returns the override in force for a bucket. It returns nil if no override is in force.
func (s *bucketSearch) override(b ratelimit.BucketName) *override.InForce {
	if len(s.overrides) == 0 {
		return nil
	}
	if o := s.overrides[b]; o != nil {
		return o
	}
	return s.overrides[ratelimit.BucketName{Tenant: b.Tenant}]
}

// inForce returns the rule in force for a bucket, and its calendar. It is ratelimit.Search.Rule.
func (s *bucketSearch) inForce(layout rule.Layout, b ratelimit.BucketName) (*rule.Rule, *time.Location) {
	p, zone := s.of(layout, b.Tenant)
	if p == nil {
		return nil, nil
	}
	if o := s.override(b); o != nil && !layout.Shared {
		p = p.with(o)
	}
	return &p.compiled, zone
}

// name returns a bucket with its names. If the names are not known, it returns the bucket with the hash from its key.
func (s *bucketSearch) name(b *ratelimit.BucketUse) UsedBucket {
	names, known := s.names[b.Dimension]
	if !known {
		names, known = s.g.named.Get(b.Dimension)
	}
	out := UsedBucket{Tenant: b.Tenant, BucketNames: names, Used: b.Used, Limit: b.Limit}
	if !known {
		out.Bucket = b.Dimension
	}
	return out
}

// BucketNames are the names that identify a bucket besides the tenant.
type BucketNames struct {
	Subject string
	Route   string // the pattern, if all its routes share one bucket
	IP      string // an address, or the network whose addresses share one bucket
}

// names returns the names from which r.dimension makes the dimension of req.
func (r *limitRule) names(req *Request) (n BucketNames) {
	if r.perSubject {
		n.Subject = strings.Clone(req.Subject)
	}
	switch {
	case r.perRoute && r.byPattern:
		n.Route = r.route.String()
	case r.perRoute:
		n.Route = strings.Clone(req.routeIn(r.forms[req.way()]))
	}
	if r.perIP {
		n.IP = address.Text(req.IP, r.prefix)
	}
	return n
}

// noteNames remembers the names of a bucket that was charged, because the bucket's key has only their hash.
func (g *Gate) noteNames(p *planRule, dimension string, req *Request) {
	if dimension == "" {
		return
	}
	if _, known := g.named.Peek(dimension); !known {
		g.named.Put(dimension, p.names(req))
	}
}
