package httpapi

import (
	"net/http"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// ttlMax bounds ttl_seconds.
const ttlMax = int64(ledger.HoldTTLMax / time.Second)

// holdRequest is a HoldRequest.
type holdRequest struct {
	ledger.Hold
	dryRun bool
}

func holdMembers(items []member[ledger.Item]) []member[holdRequest] {
	return []member[holdRequest]{
		{"tenant", true, func(d *document, h *holdRequest) { h.Tenant = d.id() }},
		{"hold_id", true, func(d *document, h *holdRequest) { h.HoldID = d.id() }},
		{"items", true, func(d *document, h *holdRequest) { readItems(d, &h.Items, items) }},
		{"subject", false, func(d *document, h *holdRequest) { h.Subject = d.id() }},
		{"ttl_seconds", false, func(d *document, h *holdRequest) { h.TTL = d.ttl() }},
		{"metadata", false, func(d *document, h *holdRequest) { h.Metadata = d.metadata() }},
		{"dry_run", false, func(d *document, h *holdRequest) { h.dryRun = d.boolean() }},
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
	var req holdRequest
	if err := decode(x, &req, s.requests.hold); err != nil {
		return err
	}
	x.tenant = req.Tenant
	key, err := x.requiredKey(req.dryRun)
	if err != nil {
		return err
	}
	if req.Key = key; key == "" {
		req.Key = dryRunKey
	}
	result, err := s.gate.Hold(x.ctx, &req.Hold, req.dryRun)
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

func (s *Server) changeHold(x *exchange, action ledger.HoldAction, members []member[ledger.HoldChange]) error {
	id, err := x.idParameter("hold_id")
	if err != nil {
		return err
	}
	change := ledger.HoldChange{HoldID: id, Action: action}
	if err := decode(x, &change, members); err != nil {
		return err
	}
	x.tenant = change.Tenant
	if change.Key, err = x.requiredKey(false); err != nil {
		return err
	}
	result, err := s.ledger.ChangeHold(x.ctx, &change)
	if err != nil {
		return err
	}
	return x.sendHold(http.StatusOK, result, false)
}

func (x *exchange) sendHold(status int, r *ledger.HoldResult, dryRun bool) error {
	h := x.Response().Header()
	var tight tightest
	for i := range r.Items {
		it := &r.Items[i]
		tight.offer(standing{it.Amount, it.Remaining, it.Limit, until(it.ResetAt, r.AsOf)})
	}
	tight.write(h)
	x.noteReplay(r.Replayed)
	return x.send(status, HoldAnswer{
		OperationID: r.OperationID, HoldID: r.HoldID, Tenant: r.Tenant, Status: HoldAnswerStatus(r.Status), ExpiresAt: r.ExpiresAt.UTC(),
		AsOf: r.AsOf.UTC(), DryRun: dryRun,
		Items: mapSlice(r.Items, func(it *ledger.HoldItem) HeldItem {
			return HeldItem{
				Meter: it.Meter, Amount: it.Amount, Captured: it.Captured, Held: it.Held, Draws: mapSlice(it.Draws, drawOf), Remaining: it.Remaining,
			}
		}),
	})
}

// noteReplay marks an answer that was stored when the request came first.
func (x *exchange) noteReplay(replayed bool) {
	if replayed {
		set(x.Response().Header(), headerReplayed, "true")
	}
}

func drawOf(d *ledger.Draw) Draw {
	return Draw{Grant: d.Grant, Source: Source(d.Source), Meter: d.Meter, Amount: d.Amount}
}
