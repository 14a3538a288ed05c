package httpapi

import (
	"net/http"
	"time"

	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// ttlMax bounds ttl_seconds.
const ttlMax = int64(ledger.HoldTTLMax / time.Second)

func holdMembers(items []member[ledger.Item]) []member[ledger.Hold] {
	return []member[ledger.Hold]{
		{"tenant", true, func(d *document, h *ledger.Hold) { h.Tenant = d.id() }},
		{"hold_id", true, func(d *document, h *ledger.Hold) { h.HoldID = d.id() }},
		{"items", true, func(d *document, h *ledger.Hold) { readItems(d, &h.Items, items) }},
		{"subject", false, func(d *document, h *ledger.Hold) { h.Subject = d.id() }},
		{"ttl_seconds", false, func(d *document, h *ledger.Hold) { h.TTL = d.ttl() }},
		{"metadata", false, func(d *document, h *ledger.Hold) { h.Metadata = d.metadata() }},
	}
}

func captureMembers(items []member[ledger.Item]) []member[ledger.HoldChange] {
	return append(releaseMembers(),
		member[ledger.HoldChange]{"items", false, func(d *document, h *ledger.HoldChange) { readItems(d, &h.Items, items) }},
		member[ledger.HoldChange]{"final", false, func(d *document, h *ledger.HoldChange) { h.Final = d.boolean() }},
	)
}

func releaseMembers() []member[ledger.HoldChange] {
	return []member[ledger.HoldChange]{
		{"tenant", true, func(d *document, h *ledger.HoldChange) { h.Tenant = d.id() }},
		{"on_expired", false, func(d *document, h *ledger.HoldChange) { h.Return = d.returnPolicy() }},
	}
}

func extendMembers() []member[ledger.HoldChange] {
	return []member[ledger.HoldChange]{
		{"tenant", true, func(d *document, h *ledger.HoldChange) { h.Tenant = d.id() }},
		{"ttl_seconds", true, func(d *document, h *ledger.HoldChange) { h.TTL = d.ttl() }},
	}
}

func (d *document) ttl() time.Duration { return time.Duration(d.integer(1, ttlMax)) * time.Second }

func (d *document) returnPolicy() ledger.ReturnPolicy {
	return ledger.ReturnPolicy(d.word(string(ledger.ReturnForfeit), string(ledger.ReturnRegrant)))
}

// hold reserves units.
func (s *Server) hold(x *exchange) error {
	var req dryable[ledger.Hold]
	if err := decode(x, &req, s.requests.hold); err != nil {
		return err
	}
	x.tenant = req.body.Tenant
	var err error
	if req.body.Key, err = x.operationKey(req.dryRun); err != nil {
		return err
	}
	result, err := s.gate.Hold(x.ctx, &req.body, req.dryRun)
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if req.dryRun {
		status = http.StatusOK
	}
	return x.sendHold(status, result, req.dryRun)
}

// captureHold turns what is held into use.
func (s *Server) captureHold(x *exchange) error {
	return s.changeHold(x, ledger.ActionCapture, s.requests.capture)
}

// releaseHold gives back what is held.
func (s *Server) releaseHold(x *exchange) error {
	return s.changeHold(x, ledger.ActionRelease, s.requests.release)
}

// extendHold moves a hold's end.
func (s *Server) extendHold(x *exchange) error {
	return s.changeHold(x, ledger.ActionExtend, s.requests.extend)
}

func (s *Server) changeHold(x *exchange, action ledger.HoldAction, members []member[dryable[ledger.HoldChange]]) error {
	id, err := x.idParameter("hold_id")
	if err != nil {
		return err
	}
	req := dryable[ledger.HoldChange]{body: ledger.HoldChange{HoldID: id, Action: action}}
	if err := decode(x, &req, members); err != nil {
		return err
	}
	x.tenant = req.body.Tenant
	if req.body.Key, err = x.operationKey(req.dryRun); err != nil {
		return err
	}
	result, err := s.gate.ChangeHold(x.ctx, &req.body, req.dryRun)
	if err != nil {
		return err
	}
	return x.sendHold(http.StatusOK, result, req.dryRun)
}

func (x *exchange) sendHold(status int, r *ledger.HoldResult, dryRun bool) error {
	h := x.Response().Header()
	var tight tightest
	for i := range r.Items {
		it := &r.Items[i]
		tight.offer(standing{it.Amount, it.Remaining, max(it.Limit, it.Remaining), until(it.ResetAt, r.AsOf)})
	}
	tight.write(h)
	x.noteReplay(r.Replayed)
	return x.send(status, wire.HoldAnswer{
		OperationID: r.OperationID, HoldID: r.HoldID, Tenant: r.Tenant, Status: wire.HoldAnswerStatus(r.Status), ExpiresAt: r.ExpiresAt.UTC(),
		AsOf: r.AsOf.UTC(), DryRun: dryRun,
		Items: mapSlice(r.Items, func(it *ledger.HoldItem) wire.HeldItem {
			return wire.HeldItem{
				Meter: it.Meter, Amount: it.Amount, Captured: it.Captured, Held: it.Held, Draws: mapSlice(it.Draws, drawOf), Remaining: it.Remaining,
			}
		}),
	})
}

// listHolds answers a page of a tenant's holds.
func (s *Server) listHolds(x *exchange) error {
	tenant, err := x.tenantParameter()
	if err != nil {
		return err
	}
	q := ledger.HoldQuery{Tenant: tenant, Status: ledger.HoldStatus(x.query.word("status", "active", "captured", "released", "expired"))}
	q.Limit, q.Cursor = x.query.page()
	if err := x.query.err(); err != nil {
		return err
	}
	page, err := s.ledger.Holds(x.ctx, q)
	if err != nil {
		return err
	}
	return x.send(http.StatusOK, wire.HoldList{Items: mapSlice(page.Items, listedHold), NextCursor: nextCursor(page.NextCursor)})
}

// getHold answers one hold as it stands.
func (s *Server) getHold(x *exchange) error {
	tenant, err := x.tenantParameter()
	if err != nil {
		return err
	}
	id, err := x.idParameter("hold_id")
	if err != nil {
		return err
	}
	h, err := s.ledger.HoldByID(x.ctx, tenant, id)
	if err != nil {
		return err
	}
	return x.send(http.StatusOK, listedHold(h))
}

func listedHold(h *ledger.HoldRecord) wire.Hold {
	return wire.Hold{
		HoldID: h.ID, Subject: h.Subject, Status: wire.HoldStatus(h.Status), CreatedAt: h.CreatedAt, ExpiresAt: h.ExpiresAt,
		Items: mapSlice(h.Items, func(it *ledger.HoldItem) wire.HoldPart {
			return wire.HoldPart{Meter: it.Meter, Amount: it.Amount, Captured: it.Captured, Held: it.Held}
		}),
	}
}

// noteReplay marks an answer that was stored when the request came first.
func (x *exchange) noteReplay(replayed bool) {
	if replayed {
		set(x.Response().Header(), headerReplayed, "true")
	}
}

func drawOf(d *ledger.Draw) wire.Draw {
	return wire.Draw{Grant: d.Grant, Source: wire.Source(d.Source), Meter: d.Meter, Amount: d.Amount}
}
