package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/override"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/httpapi/encoding"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/report/denial"
)

// putLimit creates or replaces a rate limit.
func (s *Server) putLimit(rc *request) error {
	l := catalog.Limit{Rule: rc.parameter("rule")}
	if err := rc.decodeObject(&l, "rule"); err != nil {
		return err
	}
	stored, created, err := s.store.PutLimit(rc.ctx, l)
	return sendObject(rc, createdStatus(created), &stored, err, answers.Limit)
}

// getLimit answers with the rate limit in the path.
func (s *Server) getLimit(rc *request) error {
	explain, tenant, subject, plan := rc.query.word("explain", "1") != "", rc.query.name("tenant"), rc.query.name("subject"), rc.query.id("plan")
	if tenant != "" && !explain {
		rc.query.faults.Add("tenant", "requires explain=1")
	}
	if subject != "" && tenant == "" {
		rc.query.faults.Add("subject", "requires tenant")
	}
	if err := rc.query.err(); err != nil {
		return err
	}
	if tenant != "" {
		if err := rc.ofTenant(tenant); err != nil {
			return err
		}
	}
	l, err := s.limitFor(rc, rc.parameter("rule"), plan, tenant)
	if err != nil {
		return err
	}
	if l.Match.Tenant != "" {
		if err := rc.ofTenant(l.Match.Tenant); err != nil {
			return err
		}
	}
	answer := answers.Limit(&l)
	if explain {
		e, err := s.gate.ExplainLimit(rc.ctx, &l, tenant, subject)
		if err != nil {
			return err
		}
		answer.Explain = answers.Explanation(&e)
	}
	return rc.send(http.StatusOK, answer)
}

// limitFor returns the limit that rule names. If plan is not empty, it is the limit in the plan's newest version. If
// tenant is not empty, it is the limit that applies to the tenant, which may come from the tenant's plan. Otherwise
// it is the general limit.
func (s *Server) limitFor(rc *request, rule, plan, tenant string) (catalog.Limit, error) {
	if plan != "" {
		p, err := s.store.Plan(rc.ctx, plan, 0)
		if err != nil {
			return catalog.Limit{}, err
		}
		if l, ok := planLimit(&p, rule); ok {
			return l, nil
		}
		return catalog.Limit{}, &errcode.Error{Code: errcode.NotFound, Detail: fmt.Sprintf("the plan %q has no limit %q", plan, rule)}
	}
	if tenant != "" {
		found, err := s.catalog.Tenant(rc.ctx, tenant)
		if err != nil {
			return catalog.Limit{}, err
		}
		if p := s.catalog.Snapshot().Plan(found.Plan, found.PlanVersion); p != nil {
			if l, ok := planLimit(p, rule); ok {
				return l, nil
			}
		}
	}
	l, err := s.store.Limit(rc.ctx, rule)
	if failed, ok := errors.AsType[*errcode.Error](err); ok && failed.Code == errcode.NotFound {
		hinted := *failed
		hinted.Detail += "; a plan's own limit is shown with plan=, or with explain=1 and tenant="
		return l, &hinted
	}
	return l, err
}

// planLimit returns the limit named rule of a plan. ok reports whether the plan has such a limit.
func planLimit(p *catalog.Plan, rule string) (l catalog.Limit, ok bool) {
	at := slices.IndexFunc(p.Limits, func(l catalog.Limit) bool { return l.Rule == rule })
	if at < 0 {
		return catalog.Limit{}, false
	}
	l = p.Limits[at]
	l.CreatedAt, l.UpdatedAt = p.CreatedAt, p.CreatedAt
	return l, true
}

func resetMembers() []body.Member[gate.BucketRequest] {
	return []body.Member[gate.BucketRequest]{
		body.Optional("tenant", func(d *body.Document, r *gate.BucketRequest) { r.Tenant = d.Name() }),
		body.Optional("subject", func(d *body.Document, r *gate.BucketRequest) { r.Subject = d.Name() }),
		body.Optional("route", func(d *body.Document, r *gate.BucketRequest) { r.Route = d.Route() }),
		body.Optional("ip", func(d *body.Document, r *gate.BucketRequest) { r.IP = d.Address() }),
	}
}

// resetLimit fills one bucket of a limit with tokens again.
func (s *Server) resetLimit(rc *request) error {
	rule := rc.parameter("rule")
	if _, err := rc.idempotencyKey(); err != nil {
		return err // a reset is idempotent without a key; a key that is sent must be valid
	}
	req := gate.BucketRequest{Rule: rule}
	if rc.Request().ContentLength != 0 { // without a body, the limit must have only one bucket
		if err := decode(rc, &req, s.bodies.reset); err != nil {
			return err
		}
	}
	if err := rc.ofTenant(req.Tenant); err != nil {
		return err
	}
	existed, err := s.gate.ResetLimit(rc.ctx, req)
	if err != nil {
		return err
	}
	return rc.send(http.StatusOK, client.ResetAnswer{Rule: rule, Existed: existed})
}

// limitState answers with the state of one bucket of a limit.
func (s *Server) limitState(rc *request) error {
	name := rc.parameter("rule")
	q := &rc.query
	req := gate.BucketRequest{Rule: name, Tenant: q.name("tenant"), Subject: q.name("subject"), Route: q.route("route"), IP: q.address("ip")}
	if err := q.err(); err != nil {
		return err
	}
	if err := rc.ofTenant(req.Tenant); err != nil {
		return err
	}
	state, err := s.gate.LimitState(rc.ctx, req)
	if err != nil {
		return err
	}
	return rc.send(http.StatusOK, client.LimitState{
		Rule: name, Kind: client.LimitKind(state.Kind), Remaining: state.Remaining, Owed: state.Owed, Limit: state.Limit, NextAfterMs: encoding.Ceil(state.Next, time.Millisecond),
		ResetAfterMs: encoding.Ceil(state.Full, time.Millisecond), BannedMs: encoding.Ceil(state.Banned, time.Millisecond), Degraded: state.Degraded,
	})
}

// The maximum and the default number of buckets in an answer of limitTop, as in the contract.
const (
	topMax     = 100
	topDefault = 10
)

// limitTop answers with the fullest buckets of a limit.
func (s *Server) limitTop(rc *request) error {
	name := rc.parameter("rule")
	most := rc.query.integer("limit", 1, topMax, topDefault)
	if err := rc.query.err(); err != nil {
		return err
	}
	found, complete, err := s.gate.FullestBuckets(rc.ctx, name, int(most))
	if err != nil {
		return err
	}
	return rc.send(http.StatusOK, client.LimitTop{Rule: name, Items: answers.Map(found, answers.TopItem), Incomplete: !complete})
}

// limitShadow answers with the number of requests that a limit in shadow mode would have denied. If there are no
// counts, and neither the catalogue nor a plan has such a limit, it answers with an error.
func (s *Server) limitShadow(rc *request) error {
	name := rc.parameter("rule")
	counts, err := denial.ReadShadow(rc.reporting(), s.history, s.ledger.Now(), name)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(counts, func(c denial.ShadowCount) bool { return c.Denies+c.DeniesRefused > 0 || len(c.Limits) > 0 }) {
		if _, err := s.store.Limit(rc.ctx, name); err != nil && !s.ofAPlan(name) {
			return err
		}
	}
	return rc.send(http.StatusOK, answers.Shadow(name, counts))
}

// ofAPlan reports whether a plan, in a version that may be in force, has a limit named rule.
func (s *Server) ofAPlan(rule string) bool {
	return slices.ContainsFunc(s.catalog.Snapshot().AllPlans(), func(p *catalog.Plan) bool {
		_, ok := planLimit(p, rule)
		return ok
	})
}

// listLimits answers with a page of rate limits.
func (s *Server) listLimits(rc *request) error {
	page, err := rc.catalogPage()
	if err != nil {
		return err
	}
	list, err := s.store.ListLimits(rc.ctx, page)
	if err != nil {
		return err
	}
	list.Items = slices.DeleteFunc(list.Items, func(l catalog.Limit) bool { return l.Match.Tenant != "" && !rc.key.May(l.Match.Tenant) })
	return sendPage(rc, list.Items, list.NextCursor, err, answers.Limit)
}

// deleteLimit deletes a rate limit.
func (s *Server) deleteLimit(rc *request) error {
	return rc.sendNoContent(s.store.DeleteLimit(rc.ctx, rc.parameter("rule")))
}

// overrideParameters returns the override that the path names. It refuses a key that is bound to another tenant.
func (rc *request) overrideParameters() (override.Override, error) {
	o := override.Override{Rule: rc.parameter("rule")}
	var err error
	subject := strings.HasSuffix(rc.Path(), "/:subject")
	if o.Tenant, err = rc.idParameter("tenant"); err != nil {
		return o, err
	}
	if subject {
		if o.Subject, err = rc.idParameter("subject"); err != nil {
			return o, err
		}
	}
	return o, rc.ofTenant(o.Tenant)
}

// putOverride creates or replaces the override of a limit for a tenant or a subject.
func (s *Server) putOverride(rc *request) error {
	o, err := rc.overrideParameters()
	if err != nil {
		return err
	}
	if err := rc.decodeObject(&o, "rule", "tenant", "subject"); err != nil {
		return err
	}
	stored, created, err := s.overrides.Put(rc.ctx, o)
	return sendObject(rc, createdStatus(created), &stored, err, answers.Override)
}

// getOverride answers with the override in the path.
func (s *Server) getOverride(rc *request) error {
	o, err := rc.overrideParameters()
	if err != nil {
		return err
	}
	o, err = s.overrides.Get(rc.ctx, o.Rule, o.Tenant, o.Subject)
	return sendObject(rc, http.StatusOK, &o, err, answers.Override)
}

// deleteOverride deletes the override in the path.
func (s *Server) deleteOverride(rc *request) error {
	o, err := rc.overrideParameters()
	if err != nil {
		return err
	}
	return rc.sendNoContent(s.overrides.Delete(rc.ctx, o.Rule, o.Tenant, o.Subject))
}

// listOverrides answers with a page of the overrides of a limit.
func (s *Server) listOverrides(rc *request) error {
	page, err := rc.catalogPage()
	if err != nil {
		return err
	}
	list, err := s.overrides.List(rc.ctx, rc.parameter("rule"), page)
	return sendPage(rc, list.Items, list.NextCursor, err, answers.Override)
}

// createdStatus returns 201 if the request created an object. Otherwise, for example after a dry run, it returns 200.
func createdStatus(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// catalogPage returns the limit and the cursor of a listing from the query, and its tenant from the key. If the key is
// bound to a tenant, the listing has only objects of that tenant.
func (rc *request) catalogPage() (listing.Query, error) {
	limit, cursor := rc.query.page()
	return listing.Query{Limit: limit, Cursor: cursor, Tenant: rc.key.Tenant}, rc.query.err()
}
