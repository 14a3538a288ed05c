package gate

import (
	"context"
	"net/netip"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// BucketRequest identifies one bucket of a rule by the rule's dimensions. A field is empty if the rule does not have
// that dimension.
type BucketRequest struct {
	Rule    string
	Tenant  string // the bucket's tenant; empty for a rule whose buckets all tenants share
	Subject string
	Route   string
	IP      netip.Addr
}

// ResetLimit deletes the state of a bucket, and announces the reset to all instances. The state of a concurrency rule
// is its leases. existed reports whether the bucket had a state. The line in the audit log is written first. If it
// cannot be written, nothing is reset. Errors are *errcode.Error; a retry is safe, and writes another line.
func (g *Gate) ResetLimit(ctx context.Context, req BucketRequest) (existed bool, err error) {
	return withNewest(ctx, g, func() (bool, error) { return g.resetLimit(ctx, &req) })
}

func (g *Gate) resetLimit(ctx context.Context, req *BucketRequest) (existed bool, err error) {
	_, p, dimension, err := g.bucket(ctx, req)
	if err != nil {
		return false, err
	}
	name, err := rule.Bucket{Tenant: req.Tenant, Rule: &p.compiled, Dimension: dimension}.Name()
	if err != nil {
		return false, limiterError(err)
	}
	line := catalog.Reset{Bucket: name, Rule: req.Rule, Tenant: req.Tenant, Subject: req.Subject, Route: req.Route}
	if req.IP.IsValid() {
		line.IP = req.IP.String()
	}
	if err := g.tenants.catalog.RecordReset(ctx, line); err != nil {
		return false, unavailable("the bucket was not reset, because the audit log could not be written; a retry is safe", err)
	}
	if existed, err = g.limiter.Reset(ctx, name); err != nil {
		return false, unavailable("the bucket could not be reset; a retry is safe", err)
	}
	if err := g.tenants.catalog.AnnounceReset(ctx, name); err != nil {
		return existed, unavailable("the bucket was reset, but other instances may still deny requests for a second; a retry is safe", err)
	}
	return existed, nil
}

// bucket returns the facts of the tenant, the rule of a bucket, and the bucket's dimension. The error is an
// *errcode.Error.
func (g *Gate) bucket(ctx context.Context, req *BucketRequest) (tenantFacts, *planRule, string, error) {
	facts, err := g.tenants.facts(ctx, req.Tenant)
	if err != nil {
		return facts, nil, "", err
	}
	p := facts.rules.rule(req.Rule)
	if p == nil {
		return facts, nil, "", &errcode.Error{Code: errcode.NotFound, Detail: "the tenant has no limit of this name; a limit that was just created is known within moments"}
	}
	if err := p.namesBucket(req); err != nil {
		return facts, nil, "", err
	}
	p = g.overridden(ctx, p, &facts, req.Subject)
	return facts, p, p.dimension(&Request{Tenant: req.Tenant, Subject: req.Subject, Route: req.Route, IP: req.IP}), nil
}

// namesBucket returns an error if req lacks a dimension of the rule, or has a field that is not a dimension of the
// rule. If all routes of a pattern share one bucket, req may have a route.
func (p *planRule) namesBucket(req *BucketRequest) error {
	if p.byPattern && req.Route != "" && !p.route.Match(req.Route) {
		return errcode.Errorf(errcode.InvalidArgument, catalog.PerRoute, "must match the limit's pattern, or be absent: the limit has one bucket for all its routes")
	}
	for _, part := range []struct {
		field        string
		named, needs bool
	}{
		{catalog.PerTenant, req.Tenant != "", !p.compiled.Shared},
		{catalog.PerSubject, req.Subject != "", p.perSubject},
		{catalog.PerRoute, req.Route != "" && !p.byPattern, p.perRoute && !p.byPattern},
		{catalog.PerIP, req.IP.IsValid(), p.perIP},
	} {
		switch {
		case part.needs && !part.named:
			return errcode.Errorf(errcode.InvalidArgument, part.field, "is required: the limit has one bucket for each")
		case part.named && !part.needs:
			return errcode.Errorf(errcode.InvalidArgument, part.field, "must be absent: it is not a dimension of the limit")
		}
	}
	return nil
}
