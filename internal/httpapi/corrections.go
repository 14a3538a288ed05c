package httpapi

import (
	"net/http"
	"strings"

	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func refundMembers() []member[ledger.Refund] {
	return []member[ledger.Refund]{
		{"tenant", true, func(d *document, r *ledger.Refund) { r.Tenant = d.id() }},
		{"operation_id", true, func(d *document, r *ledger.Refund) { r.OperationID = d.key() }},
		{"amount", false, func(d *document, r *ledger.Refund) { r.Amount = d.amount() }},
		{"meter", false, func(d *document, r *ledger.Refund) { r.Meter = d.id() }},
		{"on_expired", false, func(d *document, r *ledger.Refund) { r.Return = d.returnPolicy() }},
		{"reason", false, func(d *document, r *ledger.Refund) { r.Reason = d.reason() }},
	}
}

func voidMembers() []member[ledger.Void] {
	return []member[ledger.Void]{
		{"reason", true, func(d *document, v *ledger.Void) { v.Reason = d.reason() }},
		{"meter", false, func(d *document, v *ledger.Void) { v.Meter = d.id() }},
	}
}

func adjustmentMembers() []member[ledger.Adjust] {
	return []member[ledger.Adjust]{
		{"meter", true, func(d *document, a *ledger.Adjust) { a.Meter = d.id() }},
		{"amount", true, func(d *document, a *ledger.Adjust) { a.Amount = d.difference() }},
		{"reason", true, func(d *document, a *ledger.Adjust) { a.Reason = d.reason() }},
		{"subject", false, func(d *document, a *ledger.Adjust) { a.Subject = d.id() }},
	}
}

// reason reads why something was done. The ledger bounds its bytes, so characters beyond ASCII count as several.
func (d *document) reason() string {
	return d.text(func(s string) bool { return len(s) <= reasonMax && isProse(s, 1, reasonMax) }, mustBeReason)
}

// difference reads an amount to add or, below zero, to take off.
func (d *document) difference() int64 {
	raw, ok := d.value()
	if !ok {
		return 0
	}
	digits, negative := strings.CutPrefix(string(raw), "-")
	n, ok := parseInteger(digits)
	if !ok || n < 1 || n > bound.MaxAmount {
		d.faultHere(bound.MustBeDifference)
		return 0
	}
	if negative {
		return -n
	}
	return n
}

// refund takes back a debit or a capture, in whole or in part.
func (s *Server) refund(x *exchange) error {
	var req dryable[ledger.Refund]
	if err := decode(x, &req, s.requests.refund); err != nil {
		return err
	}
	x.tenant = req.body.Tenant
	var err error
	if req.body.Key, err = x.operationKey(req.dryRun); err != nil {
		return err
	}
	r, err := dryOr(req.dryRun, s.ledger.DryRunRefund, s.ledger.Refund)(x.ctx, &req.body)
	if err != nil {
		return err
	}
	x.noteReplay(r.Replayed)
	return x.send(http.StatusOK, wire.RefundAnswer{
		OperationID: r.OperationID, RefundOf: r.RefundOf, Tenant: r.Tenant, AsOf: r.AsOf.UTC(), DryRun: req.dryRun,
		Items: mapSlice(r.Items, func(it *ledger.RefundItem) wire.RefundedItem {
			return wire.RefundedItem{
				Meter: it.Meter, Refunded: it.Refunded, Draws: mapSlice(it.Draws, drawOf), Forfeited: it.Forfeited, Remaining: it.Remaining,
			}
		}),
	})
}

// voidGrant takes back what is left of a grant.
func (s *Server) voidGrant(x *exchange) error {
	tenant, err := x.tenantParameter()
	if err != nil {
		return err
	}
	id, err := x.idParameter("grant_id")
	if err != nil {
		return err
	}
	req := dryable[ledger.Void]{body: ledger.Void{Tenant: tenant, GrantID: id}}
	if err := decode(x, &req, s.requests.void); err != nil {
		return err
	}
	if req.body.Key, err = x.operationKey(req.dryRun); err != nil {
		return err
	}
	change, err := dryOr(req.dryRun, s.ledger.DryRunVoid, s.ledger.Void)(x.ctx, &req.body)
	if err != nil {
		return err
	}
	return x.sendChange(change, req.dryRun)
}

// adjust corrects a balance by hand.
func (s *Server) adjust(x *exchange) error {
	tenant, err := x.tenantParameter()
	if err != nil {
		return err
	}
	var req dryable[ledger.Adjust]
	if err := decode(x, &req, s.requests.adjustment); err != nil {
		return err
	}
	req.body.Tenant = tenant
	if req.body.IfSeq, err = x.ifMatch("balance, its seq"); err != nil {
		return err
	}
	if req.body.Key, err = x.operationKey(req.dryRun); err != nil {
		return err
	}
	change, err := dryOr(req.dryRun, s.ledger.DryRunAdjust, s.ledger.Adjust)(x.ctx, &req.body)
	if err != nil {
		return err
	}
	return x.sendChange(change, req.dryRun)
}

func (x *exchange) sendChange(c *ledger.Change, dryRun bool) error {
	x.noteReplay(c.Replayed)
	return x.send(http.StatusOK, wire.ChangeAnswer{
		OperationID: c.OperationID, Tenant: c.Tenant, Meter: c.Meter, Subject: c.Subject, Grant: c.Grant, Amount: c.Amount,
		Before: c.Before, Remaining: c.Remaining, Seq: c.Seq, AsOf: c.AsOf.UTC(), DryRun: dryRun,
	})
}
