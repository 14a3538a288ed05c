package httpapi

import (
	"net/http"
	"time"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// ttlMax is the largest ttl_seconds that a request may have.
const ttlMax = int64(ledger.HoldTTLMax / time.Second)

func holdMembers(items []body.Member[ledger.Item]) []body.Member[ledger.Hold] {
	return []body.Member[ledger.Hold]{
		body.Required("tenant", func(d *body.Document, h *ledger.Hold) { h.Tenant = d.Name() }),
		body.Required("hold_id", func(d *body.Document, h *ledger.Hold) { h.HoldID = d.Name() }),
		body.Required("items", func(d *body.Document, h *ledger.Hold) { readItems(d, &h.Items, items) }),
		body.Optional("subject", func(d *body.Document, h *ledger.Hold) { h.Subject = d.Name() }),
		body.Optional("ttl_seconds", func(d *body.Document, h *ledger.Hold) { h.TTL = holdTTL(d) }),
		body.Optional("metadata", func(d *body.Document, h *ledger.Hold) { h.Metadata = d.Metadata() }),
	}
}

func captureMembers(items []body.Member[ledger.Item]) []body.Member[ledger.HoldChange] {
	return append(releaseMembers(),
		body.Optional("items", func(d *body.Document, h *ledger.HoldChange) { readItems(d, &h.Items, items) }),
		body.Optional("final", func(d *body.Document, h *ledger.HoldChange) { h.Final = d.Boolean() }),
	)
}

func releaseMembers() []body.Member[ledger.HoldChange] {
	return []body.Member[ledger.HoldChange]{
		body.Required("tenant", func(d *body.Document, h *ledger.HoldChange) { h.Tenant = d.Name() }),
		body.Optional("on_expired", func(d *body.Document, h *ledger.HoldChange) { h.Return = returnPolicy(d) }),
	}
}

func extendMembers() []body.Member[ledger.HoldChange] {
	return []body.Member[ledger.HoldChange]{
		body.Required("tenant", func(d *body.Document, h *ledger.HoldChange) { h.Tenant = d.Name() }),
		body.Required("ttl_seconds", func(d *body.Document, h *ledger.HoldChange) { h.TTL = holdTTL(d) }),
	}
}

func holdTTL(d *body.Document) time.Duration {
	return time.Duration(d.Integer(1, ttlMax)) * time.Second
}

func returnPolicy(d *body.Document) ledger.ReturnPolicy {
	return ledger.ReturnPolicy(d.Word(string(ledger.ReturnForfeit), string(ledger.ReturnRegrant)))
}

// hold reserves units of balances for later captures.
func (s *Server) hold(rc *request) error {
	var req withDryRun[ledger.Hold]
	if err := readOperation(rc, &req, s.bodies.hold, &req.request.Tenant, &req.request.Key); err != nil {
		return err
	}
	result, err := s.gate.Hold(rc.ctx, &req.request, req.dryRun)
	if err != nil {
		return err
	}
	return rc.sendHold(createdStatus(!req.dryRun), result, req.dryRun)
}

// captureHold captures units of a hold: they become used units.
func (s *Server) captureHold(rc *request) error {
	return s.changeHold(rc, ledger.ActionCapture, s.bodies.capture)
}

// releaseHold returns the units of a hold to their balances.
func (s *Server) releaseHold(rc *request) error {
	return s.changeHold(rc, ledger.ActionRelease, s.bodies.release)
}

// extendHold changes the time at which a hold expires.
func (s *Server) extendHold(rc *request) error {
	return s.changeHold(rc, ledger.ActionExtend, s.bodies.extend)
}

func (s *Server) changeHold(rc *request, action ledger.HoldAction, members []body.Member[withDryRun[ledger.HoldChange]]) error {
	req := withDryRun[ledger.HoldChange]{request: ledger.HoldChange{HoldID: rc.parameter("hold_id"), Action: action}}
	if err := readOperation(rc, &req, members, &req.request.Tenant, &req.request.Key); err != nil {
		return err
	}
	result, err := s.gate.ChangeHold(rc.ctx, &req.request, req.dryRun)
	if err != nil {
		return err
	}
	return rc.sendHold(http.StatusOK, result, req.dryRun)
}

func (rc *request) sendHold(status int, r *ledger.HoldResult, dryRun bool) error {
	h := rc.Response().Header()
	var tight minRemaining
	for i := range r.Items {
		it := &r.Items[i]
		tight.offerItem(it.Amount, ledger.Position{Remaining: it.Remaining, Limit: it.Limit, ResetAt: it.ResetAt}, it.Cap, r.AsOf)
	}
	tight.write(h)
	rc.markReplayed(r.Replayed)
	return rc.send(status, client.HoldAnswer{
		OperationID: r.OperationID, HoldID: r.HoldID, Tenant: r.Tenant, Status: client.HoldStatus(r.Status), ExpiresAt: r.ExpiresAt.UTC(),
		AsOf: r.AsOf.UTC(), DryRun: dryRun,
		Items: answers.Map(r.Items, func(it *ledger.HoldItem) client.HeldItem {
			return client.HeldItem{
				Meter: it.Meter, Amount: it.Amount, Captured: it.Captured, Held: it.Held, Draws: answers.Map(it.Draws, drawOf), Remaining: it.Remaining,
			}
		}),
	})
}

// listHolds answers with a page of a tenant's holds.
func (s *Server) listHolds(rc *request) error {
	q := pg.HoldQuery{Tenant: rc.tenant, Status: ledger.HoldStatus(rc.query.word("status", "active", "captured", "released", "expired"))}
	q.Limit, q.Cursor = rc.query.page()
	if err := rc.query.err(); err != nil {
		return err
	}
	page, err := s.ledger.Holds(rc.ctx, q)
	return sendPage(rc, page.Items, page.NextCursor, err, listedHold)
}

// getHold answers with the hold in the path.
func (s *Server) getHold(rc *request) error {
	h, err := s.ledger.HoldByID(rc.ctx, rc.tenant, rc.parameter("hold_id"))
	return sendObject(rc, http.StatusOK, h, err, listedHold)
}

func listedHold(h *pg.HoldRecord) client.Hold {
	return client.Hold{
		HoldID: h.ID, Subject: h.Subject, Status: client.HoldStatus(h.Status), CreatedAt: h.CreatedAt, ExpiresAt: h.ExpiresAt,
		Items: answers.Map(h.Items, func(it *ledger.HoldItem) client.HoldPart {
			return client.HoldPart{Meter: it.Meter, Amount: it.Amount, Captured: it.Captured, Held: it.Held}
		}),
	}
}

// markReplayed adds the header that marks a stored answer, if replayed is true.
func (rc *request) markReplayed(replayed bool) {
	if replayed {
		set(rc.Response().Header(), headerReplayed, "true")
	}
}

func drawOf(d *ledger.Draw) client.Draw {
	return client.Draw{Grant: d.Grant, Source: client.Source(d.Source), Meter: d.Meter, Amount: d.Amount}
}
