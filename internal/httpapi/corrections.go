package httpapi

import (
	"net/http"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

func refundMembers() []body.Member[ledger.Refund] {
	return []body.Member[ledger.Refund]{
		body.Required("tenant", func(d *body.Document, r *ledger.Refund) { r.Tenant = d.Name() }),
		body.Required("operation_id", func(d *body.Document, r *ledger.Refund) { r.OperationID = d.Key() }),
		body.Optional("at", func(d *body.Document, r *ledger.Refund) { r.At = d.Instant() }),
		body.Optional("amount", func(d *body.Document, r *ledger.Refund) { r.Amount = d.Amount() }),
		body.Optional("meter", func(d *body.Document, r *ledger.Refund) { r.Meter = d.ID() }),
		body.Optional("on_expired", func(d *body.Document, r *ledger.Refund) { r.Return = returnPolicy(d) }),
		body.Optional("reason", func(d *body.Document, r *ledger.Refund) { r.Reason = d.Prose(1, reasonMax) }),
	}
}

func voidMembers() []body.Member[ledger.GrantChange] {
	return []body.Member[ledger.GrantChange]{
		body.Required("reason", func(d *body.Document, v *ledger.GrantChange) { v.Reason = d.Prose(1, reasonMax) }),
		body.Optional("meter", func(d *body.Document, v *ledger.GrantChange) { v.Meter = d.ID() }),
	}
}

// extensionMembers returns the members of the body of extendGrant: the members of a void, and expires_at. If
// expires_at is null, the grant has no end. expires_at is required, because a forgotten member must not remove the
// end.
func extensionMembers() []body.Member[ledger.GrantChange] {
	return append(voidMembers(), body.Required("expires_at", func(d *body.Document, x *ledger.GrantChange) { x.ExpiresAt = d.InstantOrNull() }))
}

func adjustmentMembers() []body.Member[ledger.Adjust] {
	return []body.Member[ledger.Adjust]{
		body.Required("meter", func(d *body.Document, a *ledger.Adjust) { a.Meter = d.ID() }),
		body.Required("amount", func(d *body.Document, a *ledger.Adjust) { a.Amount = d.Difference() }),
		body.Required("reason", func(d *body.Document, a *ledger.Adjust) { a.Reason = d.Prose(1, reasonMax) }),
		body.Optional("subject", func(d *body.Document, a *ledger.Adjust) { a.Subject = d.Name() }),
	}
}

// refund refunds units of a debit or a capture: all units, or a part of them.
func (s *Server) refund(rc *request) error {
	var req withDryRun[ledger.Refund]
	if err := readOperation(rc, &req, s.bodies.refund, &req.request.Tenant, &req.request.Key); err != nil {
		return err
	}
	r, err := pg.Do(rc.ctx, s.ledger, &req.request, pg.DryRun(req.dryRun))
	if err != nil {
		return err
	}
	rc.markReplayed(r.Replayed)
	return rc.send(http.StatusOK, client.RefundAnswer{
		OperationID: r.OperationID, RefundOf: r.RefundOf, RefundOfAt: r.RefundOfAt.UTC(), Tenant: r.Tenant, AsOf: r.AsOf.UTC(), DryRun: req.dryRun,
		Items: answers.Map(r.Items, func(it *ledger.RefundItem) client.RefundedItem {
			return client.RefundedItem{
				Meter: it.Meter, Refunded: it.Refunded, Draws: answers.Map(it.Draws, drawOf), Forfeited: it.Forfeited, Remaining: it.Remaining,
			}
		}),
	})
}

// voidGrant removes the remaining units of a grant.
func (s *Server) voidGrant(rc *request) error {
	change, dryRun, err := s.changeGrant(rc, ledger.VoidGrant, s.bodies.void)
	if err != nil {
		return err
	}
	return rc.sendChange(change, dryRun)
}

// extendGrant gives a grant a later end.
func (s *Server) extendGrant(rc *request) error {
	c, dryRun, err := s.changeGrant(rc, ledger.ExtendGrant, s.bodies.extension)
	if err != nil {
		return err
	}
	rc.markReplayed(c.Replayed)
	return rc.send(http.StatusOK, client.GrantExtension{
		OperationID: c.OperationID, Tenant: c.Tenant, Meter: c.Meter, Subject: c.Subject, Grant: c.Grant, Units: c.Units, Held: c.Held,
		PreviousExpiresAt: period.OrZero(c.Ended), ExpiresAt: answers.TimeOrNull(period.OrZero(c.ExpiresAt)), Remaining: c.Remaining, Seq: c.Seq, AsOf: c.AsOf.UTC(), DryRun: dryRun,
	})
}

// changeGrant voids or extends the grant in the path. It also reports whether the request was a dry run.
func (s *Server) changeGrant(rc *request, action ledger.GrantAction, members []body.Member[withDryRun[ledger.GrantChange]]) (*ledger.Change, bool, error) {
	asked := ledger.GrantChange{Tenant: rc.tenant, GrantID: rc.parameter("grant_id"), Action: action}
	req := withDryRun[ledger.GrantChange]{request: asked}
	if err := readOperation(rc, &req, members, &req.request.Tenant, &req.request.Key); err != nil {
		return nil, false, err
	}
	change, err := pg.Do(rc.ctx, s.ledger, &req.request, pg.DryRun(req.dryRun))
	return change, req.dryRun, err
}

// adjust adds units to a balance, or removes units from it, as a correction.
func (s *Server) adjust(rc *request) error {
	var req withDryRun[ledger.Adjust]
	err := decode(rc, &req, s.bodies.adjustment)
	if err != nil {
		return err
	}
	req.request.Tenant = rc.tenant
	if req.request.IfSeq, err = rc.ifMatch("balance, its seq"); err != nil {
		return err
	}
	if req.request.Key, err = rc.operationKey(req.dryRun); err != nil {
		return err
	}
	change, err := pg.Do(rc.ctx, s.ledger, &req.request, pg.DryRun(req.dryRun))
	if err != nil {
		return err
	}
	return rc.sendChange(change, req.dryRun)
}

func (rc *request) sendChange(c *ledger.Change, dryRun bool) error {
	rc.markReplayed(c.Replayed)
	return rc.send(http.StatusOK, client.ChangeAnswer{
		OperationID: c.OperationID, Tenant: c.Tenant, Meter: c.Meter, Subject: c.Subject, Grant: c.Grant, Amount: c.Amount,
		Before: c.Before, Remaining: c.Remaining, Seq: c.Seq, AsOf: c.AsOf.UTC(), DryRun: dryRun,
	})
}
