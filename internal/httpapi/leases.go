package httpapi

import (
	"net/http"
	"time"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
	"github.com/quotasvc/quotasvc/internal/httpapi/limitheaders"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

func leaseMembers() []body.Member[gate.LeaseRequest] {
	return []body.Member[gate.LeaseRequest]{
		body.Required("rule", func(d *body.Document, r *gate.LeaseRequest) { r.Rule = d.ID() }),
		body.Required("tenant", func(d *body.Document, r *gate.LeaseRequest) { r.Tenant = d.Name() }),
		body.Optional("subject", func(d *body.Document, r *gate.LeaseRequest) { r.Subject = d.Name() }),
		body.Optional("route", func(d *body.Document, r *gate.LeaseRequest) { r.Route = d.Route() }),
		body.Optional("ip", func(d *body.Document, r *gate.LeaseRequest) { r.IP = d.Address() }),
		body.Optional("ttl_seconds", func(d *body.Document, r *gate.LeaseRequest) { r.TTL = leaseTTL(d) }),
		body.Optional("dry_run", func(d *body.Document, r *gate.LeaseRequest) { r.DryRun = d.Boolean() }),
	}
}

func renewalMembers() []body.Member[time.Duration] {
	return []body.Member[time.Duration]{
		body.Optional("ttl_seconds", func(d *body.Document, ttl *time.Duration) { *ttl = leaseTTL(d) }),
	}
}

func leaseTTL(d *body.Document) time.Duration {
	return time.Duration(d.Integer(int64(rule.MinLeaseTTL/time.Second), int64(rule.MaxLeaseTTL/time.Second))) * time.Second
}

// acquireLease acquires a lease of a limit of kind concurrency.
func (s *Server) acquireLease(rc *request) error {
	var req gate.LeaseRequest
	err := decode(rc, &req, s.bodies.lease)
	if err != nil {
		return err
	}
	if err := rc.ofTenant(req.Tenant); err != nil {
		return err
	}
	if req.Key, err = rc.idempotencyKey(); err != nil {
		return err
	}
	lease, err := s.gate.Acquire(rc.ctx, req)
	if err != nil {
		return err
	}
	rc.markReplayed(lease.Replayed)
	return rc.sendLease(createdStatus(!req.DryRun), &lease, req.DryRun)
}

// leaseForwarded acquires a lease for a forwarded request. The id of the lease is in a header of the answer: the gateway
// ends the lease when the request has ended. A repetition with the same id gets the same lease.
func (s *Server) leaseForwarded(rc *request, rule string) error {
	req := gate.LeaseRequest{
		Tenant: rc.gateRequest.Tenant, Rule: rule, Subject: rc.gateRequest.Subject, Route: rc.gateRequest.Route, IP: rc.gateRequest.IP,
		Forwarded: rc.gateRequest.Forwarded,
	}
	if rc.gateRequest.Once != "" {
		req.Key = forwarded.OperationKey(rc.gateRequest.Once, nil)
	}
	lease, err := s.gate.Acquire(rc.ctx, req)
	if err != nil {
		return err
	}
	rc.markReplayed(lease.Replayed)
	h := rc.Response().Header()
	if lease.ID != "" {
		set(h, forwarded.HeaderLease, lease.ID)
	}
	rc.writeLease(&lease)
	return nil
}

// renewLease extends a lease.
func (s *Server) renewLease(rc *request) error {
	id, err := rc.leaseParameter()
	if err != nil {
		return err
	}
	var ttl time.Duration
	if err := decode(rc, &ttl, s.bodies.renewal); err != nil {
		return err
	}
	lease, err := s.gate.Renew(rc.ctx, id, ttl)
	if err != nil {
		return err
	}
	return rc.sendLease(http.StatusOK, &lease, false)
}

// releaseLease ends a lease before its time.
func (s *Server) releaseLease(rc *request) error {
	id, err := rc.leaseParameter()
	if err != nil {
		return err
	}
	return rc.sendNoContent(s.gate.Release(rc.ctx, id))
}

// leaseParameter returns the lease in the path. It records the lease's tenant for the access log, and refuses a key
// that is bound to another tenant. A malformed id is answered like a lease that does not exist.
func (rc *request) leaseParameter() (ratelimit.LeaseID, error) {
	id, err := rc.server.gate.ParseLease(rc.parameter("lease_id"))
	if err != nil {
		return ratelimit.LeaseID{}, err
	}
	return id, rc.ofTenant(id.Tenant)
}

func (rc *request) sendLease(status int, l *gate.Lease, dryRun bool) error {
	out := client.LeaseAnswer{
		LeaseID: l.ID, Rule: l.Rule, Replaces: l.Verdict.Replaces, Limit: l.Limit, Shadow: l.Verdict.Shadow, Degraded: l.Degraded, DryRun: dryRun,
	}
	if !dryRun {
		out.ExpiresAt, out.ExpiresInMs = l.ExpiresAt.UTC(), l.TTL.Milliseconds()
	}
	if l.Counted {
		out.InUse, out.Remaining = &l.InUse, &l.Remaining
	}
	rc.writeLease(l)
	return rc.send(status, out)
}

// writeLease writes the RateLimit headers of a lease.
func (rc *request) writeLease(l *gate.Lease) {
	h := rc.Response().Header()
	if l.Counted {
		rc.server.limits.Write(h, []gate.LimitVerdict{l.Verdict})
	}
	limitheaders.WriteMode(h, l.Degraded)
}
