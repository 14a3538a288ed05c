package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	// staleMaxMs bounds max_stale_ms: a copy older than a day says nothing about now.
	staleMaxMs = int64(24 * time.Hour / time.Millisecond)

	// standingStale is how old the balance in the X-Quota headers of a rate-limited answer may be. The flood that was just
	// stopped must not become one of PostgreSQL.
	standingStale = time.Minute

	// dryRunKey stands in where a dry run brings no key. It is looked up and stored nowhere.
	dryRunKey = "dry-run"
)

// batch is a DebitBatchRequest.
type batch struct {
	debits []gate.Request
	dryRun bool
}

func itemMembers() []member[ledger.Item] {
	return []member[ledger.Item]{
		{"meter", true, func(d *document, it *ledger.Item) { it.Meter = d.id() }},
		{"amount", true, func(d *document, it *ledger.Item) { it.Amount = d.amount() }},
	}
}

// demandMembers are what check, consume and debits have in common.
func demandMembers(items []member[ledger.Item]) []member[gate.Request] {
	return []member[gate.Request]{
		{"tenant", true, func(d *document, r *gate.Request) { r.Tenant = d.id() }},
		{"items", true, func(d *document, r *gate.Request) { readItems(d, &r.Items, items) }},
		{"subject", false, func(d *document, r *gate.Request) { r.Subject = d.id() }},
	}
}

// dimensionMembers are what limits are matched and kept apart by.
func dimensionMembers() []member[gate.Request] {
	return []member[gate.Request]{
		{"route", false, func(d *document, r *gate.Request) { r.Route = d.route() }},
		{"ip", false, func(d *document, r *gate.Request) { r.IP = d.address() }},
	}
}

func changeMembers() []member[gate.Request] {
	modes := []string{string(ledger.ModeNormal), string(ledger.ModeBestEffort), string(ledger.ModeDrain)}
	return []member[gate.Request]{
		{"mode", false, func(d *document, r *gate.Request) { r.Mode = gate.Mode(d.word(modes...)) }},
		{"metadata", false, func(d *document, r *gate.Request) { r.Metadata = d.metadata() }},
		{"dry_run", false, func(d *document, r *gate.Request) { r.DryRun = d.boolean() }},
	}
}

func staleMember() member[gate.Request] {
	return member[gate.Request]{"max_stale_ms", false, func(d *document, r *gate.Request) {
		stale := time.Duration(d.integer(0, staleMaxMs)) * time.Millisecond
		r.MaxStale = &stale
	}}
}

func batchMembers(debit []member[gate.Request]) []member[batch] {
	return []member[batch]{
		{"debits", true, func(d *document, b *batch) {
			readList(d, &b.debits, 1, ledger.BatchMax, func(d *document, r *gate.Request) { readObject(d, r, debit) })
		}},
		{"dry_run", false, func(d *document, b *batch) { b.dryRun = d.boolean() }},
	}
}

// readItems reads the items of a request, each meter once.
func readItems(d *document, into *[]ledger.Item, items []member[ledger.Item]) {
	readList(d, into, 1, ledger.ItemsMax, func(d *document, it *ledger.Item) { readObject(d, it, items) })
	for i := range *into {
		for j := range i {
			if meter := (*into)[i].Meter; meter != "" && meter == (*into)[j].Meter && !d.broken {
				d.fault(fmt.Sprintf("%s[%d].meter", d.path(), i), fmt.Sprintf("must not be the meter of item %d too", j))
				break
			}
		}
	}
}

// check answers whether a consume would be allowed, and charges nothing.
func (s *Server) check(x *exchange) error {
	if err := decode(x, &x.request, s.requests.check); err != nil {
		return err
	}
	x.tenant = x.request.Tenant
	answer, err := s.gate.Check(x.ctx, x.request)
	if err != nil {
		return err
	}
	return x.sendCheck(&answer)
}

func (x *exchange) sendCheck(answer *gate.Check) error {
	x.code = answer.Code
	for i := range answer.Limits {
		if v := &answer.Limits[i]; !v.Allowed && !v.Shadow {
			x.rules = append(x.rules, v.Rule)
		}
	}
	x.writeCheckHeaders(answer)
	return x.sendBytes(http.StatusOK, typeJSON, appendCheckAnswer(x.out[:0], answer))
}

func (x *exchange) writeCheckHeaders(answer *gate.Check) {
	h := x.Response().Header()
	var tight tightest
	tight.offerCheck(answer)
	tight.write(h)
	x.server.writeLimits(h, answer.Limits)
	writeMode(h, answer.LimitsDegraded)
	set(h, headerQuotaSource, string(answer.Source))
}

// consume charges the limits and debits the balance.
func (s *Server) consume(x *exchange) error {
	if err := x.demand(s.requests.consume); err != nil {
		return err
	}
	done, err := s.spend(x)
	if err != nil {
		return err
	}
	return x.sendDebit(done)
}

// spend makes the exchange's request a consume and writes what the limits said of it.
func (s *Server) spend(x *exchange) (*ledger.DebitResult, error) {
	done, err := s.gate.Consume(x.ctx, x.request)
	x.limits = done.Limits
	writeMode(x.Response().Header(), done.LimitsDegraded)
	if err != nil {
		if gate.CodeOf(err) == gate.CodeRateLimited || gate.CodeOf(err) == gate.CodeCostExceedsCapacity {
			s.writeStanding(x, &done)
		}
		return nil, err
	}
	s.writeLimits(x.Response().Header(), done.Limits)
	return done.Result, nil
}

// writeStanding sets the X-Quota headers of a consume that the limits refused before its balance was looked at. What cannot
// be had cheaply is left out.
func (s *Server) writeStanding(x *exchange, refused *gate.Debited) {
	ask, stale := x.request, standingStale
	ask.MaxStale = &stale
	if standing, err := s.gate.Standing(x.ctx, ask, refused); err == nil {
		var tight tightest
		tight.offerCheck(&standing)
		tight.write(x.Response().Header())
	}
}

// debit debits the balance without asking the limits.
func (s *Server) debit(x *exchange) error {
	if err := x.demand(s.requests.debit); err != nil {
		return err
	}
	done, err := s.gate.Debit(x.ctx, x.request)
	if err != nil {
		return err
	}
	return x.sendDebit(done.Result)
}

// demand reads a request that moves amounts, and its key.
func (x *exchange) demand(members []member[gate.Request]) error {
	if err := decode(x, &x.request, members); err != nil {
		return err
	}
	x.tenant = x.request.Tenant
	key, err := x.operationKey(x.request.DryRun)
	x.request.Key = key
	return err
}

func (x *exchange) sendDebit(r *ledger.DebitResult) error {
	x.writeDebitHeaders(r)
	return x.sendBytes(http.StatusOK, typeJSON, appendDebitAnswer(x.out[:0], r, x.limits, x.request.DryRun))
}

func (x *exchange) writeDebitHeaders(r *ledger.DebitResult) {
	h := x.Response().Header()
	var tight tightest
	tight.offerDebit(r)
	tight.write(h)
	if r.Replayed {
		set(h, headerReplayed, "true")
	}
}

// debitBatch makes independent debits and answers each. Nothing is done unless all of them are well-formed.
func (s *Server) debitBatch(x *exchange) error {
	var b batch
	if err := decode(x, &b, s.requests.batch); err != nil {
		return err
	}
	if _, err := x.idempotencyKey(); err != nil {
		return err // not needed here, but whoever sends one must send a good one
	}
	var missing []wire.FieldError
	for i := range b.debits {
		r := &b.debits[i]
		r.DryRun = r.DryRun || b.dryRun
		switch {
		case r.Key != "":
		case r.DryRun:
			r.Key = dryRunKey
		case len(missing) < faultsMax:
			missing = append(missing, wire.FieldError{Field: fmt.Sprintf("debits[%d].idempotency_key", i), Message: "is required"})
		}
	}
	if len(missing) > 0 {
		return &invalid{fields: missing}
	}
	return x.sendBatch(b.debits, s.gate.DebitBatch(x.ctx, b.debits))
}

func (x *exchange) sendBatch(debits []gate.Request, outcomes []gate.DebitOutcome) error {
	var tight tightest
	out := append(x.out[:0], `{"results":[`...)
	for i, o := range outcomes {
		if i > 0 {
			out = append(out, ',')
		}
		var p problem
		if o.Err != nil {
			p = x.server.problemOf(o.Err)
			if p.denial != nil {
				tight.offerDenial(p.denial, p.asOf)
			}
			if p.kind.status >= http.StatusInternalServerError {
				x.code, x.cause = p.code, o.Err
			}
		} else {
			tight.offerDebit(o.Result)
		}
		out = appendBatchResult(out, o.Result, &p, debits[i].DryRun)
	}
	tight.write(x.Response().Header())
	return x.sendBytes(http.StatusOK, typeJSON, append(out, "]}"...))
}
