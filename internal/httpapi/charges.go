package httpapi

import (
	"net/http"

	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/httpapi/encoding"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// chargeIDMax is the maximum length of a charge's id in bytes. If a charge has 16 limits with the longest names, its
// id has 4,900 bytes.
const chargeIDMax = 5120

func chargeMembers() []body.Member[gate.ChargeRequest] {
	return []body.Member[gate.ChargeRequest]{
		body.Required("tenant", func(d *body.Document, r *gate.ChargeRequest) { r.Tenant = d.Name() }),
		body.Optional("subject", func(d *body.Document, r *gate.ChargeRequest) { r.Subject = d.Name() }),
		body.Optional("route", func(d *body.Document, r *gate.ChargeRequest) { r.Route = d.Route() }),
		body.Optional("ip", func(d *body.Document, r *gate.ChargeRequest) { r.IP = d.Address() }),
		body.Optional("method", func(d *body.Document, r *gate.ChargeRequest) { r.Method = d.Method() }),
		body.Optional("cost", func(d *body.Document, r *gate.ChargeRequest) { r.Cost = d.Amount() }),
		body.Optional("after_the_fact", func(d *body.Document, r *gate.ChargeRequest) { r.AfterTheFact = d.Boolean() }),
		body.Optional("rules", func(d *body.Document, r *gate.ChargeRequest) {
			body.ReadList(d, &r.Rules, 1, ratelimit.MaxCharges, func(d *body.Document, rule *string) { *rule = d.ID() })
		}),
		body.Optional("dry_run", func(d *body.Document, r *gate.ChargeRequest) { r.DryRun = d.Boolean() }),
	}
}

// settlement is a charge and its cost.
type settlement struct {
	id   string
	cost int64
}

func chargeRefundMembers() []body.Member[settlement] {
	return []body.Member[settlement]{
		body.Required("charge_id", func(d *body.Document, s *settlement) { s.id = d.Visible(chargeIDMax) }),
	}
}

func chargeSettleMembers() []body.Member[settlement] {
	return append(chargeRefundMembers(),
		body.Required("cost", func(d *body.Document, s *settlement) { s.cost = d.Integer(0, bound.MaxAmount) }))
}

// chargeLimits charges rate limits and debits no units.
func (s *Server) chargeLimits(rc *request) error {
	var req gate.ChargeRequest
	err := decode(rc, &req, s.bodies.charge)
	if err != nil {
		return err
	}
	if err := rc.ofTenant(req.Tenant); err != nil {
		return err
	}
	if req.Key, err = rc.idempotencyKey(); err != nil {
		return err
	}
	done, err := s.charge(rc, req)
	if err != nil {
		return err
	}
	rc.markReplayed(done.Replayed)
	return rc.sendBytes(http.StatusOK, typeJSON, encoding.AppendCharge(rc.out[:0], &done, req.DryRun))
}

// charge charges limits, and writes the RateLimit headers of the answer.
func (s *Server) charge(rc *request, req gate.ChargeRequest) (gate.Charged, error) {
	done, err := s.gate.Charge(rc.ctx, req)
	rc.writeLimits(done.Limits, done.LimitsDegraded, err)
	return done, err
}

// refundCharge refunds the tokens of a charge.
func (s *Server) refundCharge(rc *request) error {
	return s.settle(rc, s.bodies.chargeRefund, "refunded")
}

// settleCharge changes the cost of a charge.
func (s *Server) settleCharge(rc *request) error {
	return s.settle(rc, s.bodies.chargeSettle, "settled")
}

// settle changes the cost of a charge. The answer reports under `member` whether this call has changed the cost.
func (s *Server) settle(rc *request, members []body.Member[settlement], member string) error {
	var req settlement
	if err := decode(rc, &req, members); err != nil {
		return err
	}
	if _, err := rc.idempotencyKey(); err != nil {
		return err // a settlement is idempotent without a key; a key that is sent must be valid
	}
	charge, err := s.gate.ParseCharge(req.id)
	if err != nil {
		return err
	}
	if err := rc.ofTenant(charge.Tenant()); err != nil {
		return err
	}
	done, err := s.gate.SettleCharge(rc.ctx, charge, req.cost)
	if err != nil {
		return err
	}
	return rc.sendBytes(http.StatusOK, typeJSON, encoding.AppendChargeSettled(rc.out[:0], member, &done))
}

// chargeForwarded charges the limits of a forwarded request. A repetition charges only rules that its id has not
// charged before (gate.Request.Once). The idempotency key of charges is for one request with the same route, so it is
// not used. The id of the charge is in a header of the answer.
func (s *Server) chargeForwarded(rc *request, cost int64) error {
	rc.gateRequest.Items, rc.gateRequest.Key = nil, ""
	done, err := s.charge(rc, gate.ChargeRequest{Request: rc.gateRequest, Cost: cost})
	if err != nil {
		return err
	}
	rc.gateway.Pass(rc.Response().Header(), done.ID)
	return nil
}
