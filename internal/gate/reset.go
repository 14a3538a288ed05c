package gate

import (
	"context"
	"net/netip"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// ResetRequest names one bucket of a rule: by what divides the rule's buckets, and nothing else.
type ResetRequest struct {
	Rule    string
	Tenant  string // whose bucket it is; '' for rules that all tenants share
	Subject string
	Route   string
	IP      netip.Addr
}

// ResetLimit makes a bucket what it was before it was first charged, and tells every instance. Of a concurrency rule it forgets
// the leases. It reports whether anything was taken. Errors are *ledger.Error; doing it again is safe.
func (g *Gate) ResetLimit(ctx context.Context, req ResetRequest) (existed bool, err error) {
	facts, err := g.terms.of(ctx, req.Tenant)
	if err != nil {
		return false, err
	}
	m := facts.rules.byID[req.Rule]
	if m == nil {
		return false, &ledger.Error{Code: ledger.CodeNotFound, Detail: "there is no limit of this name for the tenant; it may be a moment old"}
	}
	if err := m.namesBucket(&req); err != nil {
		return false, err
	}
	ask := Request{Tenant: req.Tenant, Subject: req.Subject, Route: req.Route, IP: req.IP}
	name, err := rule.Bucket{Tenant: req.Tenant, Rule: &m.compiled, Dimension: m.dimension(&ask)}.Name()
	if err != nil {
		return false, limiterError(err)
	}
	if existed, err = g.limiter.Reset(ctx, name); err != nil {
		return false, unavailable("the bucket could not be reset; trying again is safe", err)
	}
	if err := g.terms.catalog.AnnounceReset(ctx, name); err != nil {
		return existed, unavailable("the bucket was reset, and other instances were not told: they may deny for a second more", err)
	}
	return existed, nil
}

// namesBucket says what req names too much or too little of.
func (m *member) namesBucket(req *ResetRequest) error {
	for _, part := range []struct {
		field        string
		named, needs bool
	}{
		{catalog.PerTenant, req.Tenant != "", !m.compiled.Shared},
		{catalog.PerSubject, req.Subject != "", m.perSubject},
		{catalog.PerRoute, req.Route != "", m.perRoute},
		{catalog.PerIP, req.IP.IsValid(), m.perIP},
	} {
		switch {
		case part.needs && !part.named:
			return &ledger.Error{Code: ledger.CodeInvalidArgument, Field: part.field, Detail: "is required: the limit has a bucket for each"}
		case part.named && !part.needs:
			return &ledger.Error{Code: ledger.CodeInvalidArgument, Field: part.field, Detail: "must be absent: it does not divide the limit's buckets"}
		}
	}
	return nil
}
