package gate

import (
	"context"
	"errors"
	"maps"
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

// nobody is the tenant name for a bucket that all tenants share.
const nobody = "nobody"

const (
	// searchTime bounds a search for buckets. searchWait bounds the wait for another search. Together they are less
	// than the time of a request.
	searchTime = 3 * time.Second
	searchWait = time.Second
)

// overridesAtOnce is the number of overrides that a search for buckets reads at a time.
const overridesAtOnce = 10_000

// namesKept is the number of dimensions whose names are remembered: 8 MB with the longest routes. The fullest buckets
// are charged all the time.
const namesKept = 4096

// LimitState is the state of one bucket.
type LimitState struct {
	Kind string // as in the catalogue

	// Remaining is the number of whole tokens, or of free leases; Limit is the bucket's capacity.
	Remaining, Limit int64

	// Owed is the number of tokens below zero, rounded up.
	Owed int64

	// Next is the time until one more token is available. Full is the time until the bucket is full. Both are zero
	// for leases, because holders decide when leases end.
	Next, Full time.Duration

	// Banned is the time until the bucket's ban ends; zero if it is not banned.
	Banned time.Duration

	Degraded bool // Redis is away: this is the state of the instance's own share
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

// UsedBucket is a bucket of a rule, with its use.
type UsedBucket struct {
	BucketNames

	Tenant string // empty: all tenants share the bucket
	Bucket string // the hash of the names, if they are not known

	Used, Limit int64 // as in ratelimit.BucketUse
}

// FullestBuckets returns the fullest buckets of a rule, at most the number most. complete reports whether all buckets
// could be examined in time. Rules of plans with this id count as well, and each bucket has the numbers in force for
// its tenant. See ratelimit.Limiter.Fullest. One caller is served at a time. Errors are *errcode.Error.
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

// enterSearch waits until no other search runs. The caller must call leave.
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

// bucketSearch finds the rule in force for each bucket of one id.
type bucketSearch struct {
	g         *Gate
	id        string
	compiled  *compiledRules
	rules     []*planRule // the general rule first, if there is one, then the rules of plans
	byTenant  bool        // the rule depends on the tenant's plan or calendar
	overrides map[ratelimit.BucketName]*override.InForce
	names     map[string]BucketNames        // by dimension: names from the catalogue and the overrides
	plans     map[string]catalog.TenantPlan // of the page of buckets, if byTenant
	failed    error                         // why the plans of some tenants could not be read
}

func (g *Gate) newBucketSearch(id string) *bucketSearch {
	compiled := g.tenants.rules()
	s := &bucketSearch{
		g: g, id: id, compiled: compiled, overrides: map[ratelimit.BucketName]*override.InForce{}, names: map[string]BucketNames{"": {}},
	}
	if p := compiled.general.rule(id); p != nil {
		s.rules = append(s.rules, p)
	}
	for _, plan := range slices.Sorted(maps.Keys(compiled.plans)) {
		if p := compiled.plans[plan].own.byID.Get(id); p != nil {
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

// readOverrides reads all overrides of the rule. A subject's override counts only if the subject is the only
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

// readPlans reads the plans of tenants. It is ratelimit.Search.Ahead.
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

// of returns the rule that applies to the buckets of a tenant in a layout. It also returns the calendar of the rule's
// windows if that is the tenant's calendar. It returns nil if no rule applies, because the bucket belongs to an
// earlier rule or plan.
func (s *bucketSearch) of(layout rule.Layout, tenant string) (*planRule, *time.Location) {
	at := slices.IndexFunc(s.rules, func(p *planRule) bool { return p.layout() == layout })
	if !s.byTenant || layout.Shared {
		return s.rules[at], nil
	}
	t, known := s.plans[tenant]
	if !known && s.failed != nil {
		return nil, nil
	}
	set := s.compiled.plans[t.Plan]
	if set == nil {
		set = s.compiled.general
	}
	p := set.rule(s.id)
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

// override returns the override in force for a bucket. It returns nil if there is none.
func (s *bucketSearch) override(b ratelimit.BucketName) *override.InForce {
	if len(s.overrides) == 0 {
		return nil
	}
	if o := s.overrides[b]; o != nil {
		return o
	}
	return s.overrides[ratelimit.BucketName{Tenant: b.Tenant}]
}

// inForce returns the rule in force for a bucket. It is ratelimit.Search.Rule.
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

// name returns a bucket with its names, as far as they are known: keys have only the hash of the names.
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

// BucketNames are the dimensions of a bucket beside the tenant.
type BucketNames struct {
	Subject string
	Route   string // the pattern, if all its routes have one bucket
	IP      string // the network that counts as one caller, or a single address
}

// names returns the names behind dimension.
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

// noteNames remembers the names of a bucket that was charged.
func (g *Gate) noteNames(p *planRule, dimension string, req *Request) {
	if dimension == "" {
		return
	}
	if _, known := g.named.Peek(dimension); !known {
		g.named.Put(dimension, p.names(req))
	}
}
