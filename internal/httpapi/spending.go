package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/httpapi/encoding"
	"github.com/quotasvc/quotasvc/internal/httpapi/limitheaders"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	// staleMaxMs is the maximum of max_stale_ms. A copy that is older than a day does not show the present state.
	staleMaxMs = int64(24 * time.Hour / time.Millisecond)

	// remainingStale is the maximum age of the balance in the X-Quota headers when a limit has denied the request. So
	// a flood of denied requests does not reach PostgreSQL.
	remainingStale = time.Minute

	// dryRunKey is the idempotency key of a dry run that was sent without a key. This key is neither looked up nor
	// stored.
	dryRunKey = "dry-run"
)

// batch is the body of POST /v1/debits/batch.
type batch struct {
	debits  []gate.Request
	refused map[int]error // those whose metadata is beyond its bounds, by index
	dryRun  bool
}

func itemMembers() []body.Member[ledger.Item] {
	return []body.Member[ledger.Item]{
		body.Required("meter", func(d *body.Document, it *ledger.Item) { it.Meter = d.ID() }),
		body.Required("amount", func(d *body.Document, it *ledger.Item) { it.Amount = d.Amount() }),
	}
}

// featureMembers returns the members of a check or consume. They include `feature`. The member `items` is optional,
// because a request may have a feature instead of items (see requireDemand).
func featureMembers(demand []body.Member[gate.Request]) []body.Member[gate.Request] {
	out := append(slices.Clone(demand), body.Optional("feature", func(d *body.Document, r *gate.Request) { r.Feature = d.ID() }))
	for i := range out {
		if out[i].Name == "items" {
			out[i].Required = false
		}
	}
	return out
}

// requireDemand refuses a request that has neither items nor a feature. field is the request's path in a batch, with
// a dot at the end, or empty.
func requireDemand(r *gate.Request, field string) error {
	if len(r.Items) > 0 || r.Feature != "" {
		return nil
	}
	var faults body.Faults
	faults.Add(field+"items", "is required, or a feature instead")
	return faults.Err()
}

// demandMembers returns the members that a check, a consume and a debit all have.
func demandMembers(items []body.Member[ledger.Item]) []body.Member[gate.Request] {
	return []body.Member[gate.Request]{
		body.Required("tenant", func(d *body.Document, r *gate.Request) { r.Tenant = d.Name() }),
		body.Required("items", func(d *body.Document, r *gate.Request) { readItems(d, &r.Items, items) }),
		body.Optional("subject", func(d *body.Document, r *gate.Request) { r.Subject = d.Name() }),
	}
}

// dimensionMembers returns the members that decide which limits apply to a request and which buckets it uses.
func dimensionMembers() []body.Member[gate.Request] {
	return []body.Member[gate.Request]{
		body.Optional("route", func(d *body.Document, r *gate.Request) { r.Route = d.Route() }),
		body.Optional("ip", func(d *body.Document, r *gate.Request) { r.IP = d.Address() }),
		body.Optional("method", func(d *body.Document, r *gate.Request) { r.Method = d.Method() }),
	}
}

func changeMembers() []body.Member[gate.Request] {
	modes := []string{string(ledger.ModeNormal), string(ledger.ModeBestEffort), string(ledger.ModeDrain)}
	return []body.Member[gate.Request]{
		body.Optional("mode", func(d *body.Document, r *gate.Request) { r.Mode = ledger.Mode(d.Word(modes...)) }),
		body.Optional("metadata", func(d *body.Document, r *gate.Request) { r.Metadata = d.Metadata() }),
		body.Optional("dry_run", func(d *body.Document, r *gate.Request) { r.DryRun = d.Boolean() }),
	}
}

// atMember returns the member `at`: the instant for which a dry run is answered.
func atMember() body.Member[gate.Request] {
	return body.Optional("at", func(d *body.Document, r *gate.Request) { r.At = d.Instant() })
}

func staleMember() body.Member[gate.Request] {
	return body.Optional("max_stale_ms", func(d *body.Document, r *gate.Request) {
		stale := time.Duration(d.Integer(0, staleMaxMs)) * time.Millisecond
		r.MaxStale = &stale
	})
}

func batchMembers(debit []body.Member[gate.Request]) []body.Member[batch] {
	return []body.Member[batch]{
		body.Required("debits", func(d *body.Document, b *batch) {
			body.ReadList(d, &b.debits, 1, ledger.BatchMax, func(d *body.Document, r *gate.Request) {
				body.ReadObject(d, r, debit)
				if r.Metadata == nil {
					return // a value of another type is a fault of the program that sent it
				}
				if err := d.Withdraw("metadata"); err != nil {
					if b.refused == nil {
						b.refused = map[int]error{}
					}
					b.refused[len(b.debits)-1] = err
				}
			})
		}),
		body.Optional("dry_run", func(d *body.Document, b *batch) { b.dryRun = d.Boolean() }),
	}
}

// readItems reads the items of a request. If a meter appears twice, it records a fault.
func readItems(d *body.Document, into *[]ledger.Item, items []body.Member[ledger.Item]) {
	body.ReadList(d, into, 1, ledger.ItemsMax, func(d *body.Document, it *ledger.Item) { body.ReadObject(d, it, items) })
	for i := range *into {
		for j := range i {
			if meter := (*into)[i].Meter; meter != "" && meter == (*into)[j].Meter {
				d.FaultIn(fmt.Sprintf("[%d].meter", i), fmt.Sprintf("is a duplicate of items[%d].meter", j))
				break
			}
		}
	}
}

// check answers whether a consume would be allowed. It charges nothing.
func (s *Server) check(rc *request) error {
	if err := decode(rc, &rc.gateRequest, s.bodies.check); err != nil {
		return err
	}
	if err := rc.ofTenant(rc.gateRequest.Tenant); err != nil {
		return err
	}
	if err := requireDemand(&rc.gateRequest, ""); err != nil {
		return err
	}
	answer, err := s.gate.Check(rc.ctx, rc.gateRequest)
	if err != nil {
		return err
	}
	return rc.sendCheck(&answer)
}

func (rc *request) sendCheck(answer *gate.Check) error {
	rc.code = answer.Code
	for i := range answer.Limits {
		if v := &answer.Limits[i]; !v.Allowed && !v.Shadow {
			rc.rules = append(rc.rules, v.Rule)
		}
	}
	rc.writeCheckHeaders(answer)
	return rc.sendBytes(http.StatusOK, typeJSON, encoding.AppendCheck(rc.out[:0], answer))
}

func (rc *request) writeCheckHeaders(answer *gate.Check) {
	h := rc.Response().Header()
	var tight minRemaining
	tight.offerCheck(answer)
	tight.write(h)
	rc.server.limits.Write(h, answer.Limits)
	limitheaders.WriteMode(h, answer.LimitsDegraded)
	set(h, headerQuotaSource, string(answer.Source))
}

// consume charges the limits and debits the balance, or does neither.
func (s *Server) consume(rc *request) error {
	if err := rc.readSpending(s.bodies.consume); err != nil {
		return err
	}
	if err := requireDemand(&rc.gateRequest, ""); err != nil {
		return err
	}
	done, err := s.spend(rc)
	if err != nil {
		return err
	}
	return rc.sendDebit(done)
}

// spend consumes rc.gateRequest, and writes the RateLimit headers of the answer.
func (s *Server) spend(rc *request) (*ledger.DebitResult, error) {
	done, err := s.gate.Consume(rc.ctx, rc.gateRequest)
	rc.writeLimits(done.Limits, done.LimitsDegraded, err)
	if err != nil {
		if gate.CodeOf(err) == gate.CodeRateLimited || gate.CodeOf(err) == gate.CodeCostExceedsCapacity {
			s.writeRemaining(rc, &done)
		}
		return nil, err
	}
	return done.Result, nil
}

// writeLimits keeps the verdicts of the limits in rc.limits. If err is nil, it writes the RateLimit headers.
// Otherwise the answer is a problem, and sendProblem writes these headers.
func (rc *request) writeLimits(verdicts []gate.LimitVerdict, degraded bool, err error) {
	h := rc.Response().Header()
	limitheaders.WriteMode(h, degraded)
	if rc.limits = verdicts; err == nil {
		rc.server.limits.Write(h, verdicts)
	}
}

// writeRemaining writes the X-Quota headers of a consume that limits have denied. The consume did not read its
// balance. If the balance cannot be read without a long wait, writeRemaining writes nothing.
func (s *Server) writeRemaining(rc *request, refused *gate.Debited) {
	ask, stale := rc.gateRequest, remainingStale
	ask.MaxStale = &stale
	if standing, err := s.gate.CheckBalances(rc.ctx, ask, refused); err == nil {
		var tight minRemaining
		tight.offerCheck(&standing)
		tight.write(rc.Response().Header())
	}
}

// debit debits the balance without charging limits.
func (s *Server) debit(rc *request) error {
	if err := rc.readSpending(s.bodies.debit); err != nil {
		return err
	}
	if !rc.gateRequest.At.IsZero() && !rc.gateRequest.DryRun {
		return errcode.Errorf(errcode.InvalidArgument, "at", `needs "dry_run": true: nothing is debited at another time`)
	}
	done, err := s.gate.Debit(rc.ctx, rc.gateRequest)
	if err != nil {
		return err
	}
	return rc.sendDebit(done.Result)
}

// readSpending reads the body and the idempotency key of a consume or a debit.
func (rc *request) readSpending(members []body.Member[gate.Request]) error {
	if err := decode(rc, &rc.gateRequest, members); err != nil {
		return err
	}
	if err := rc.ofTenant(rc.gateRequest.Tenant); err != nil {
		return err
	}
	key, err := rc.operationKey(rc.gateRequest.DryRun)
	rc.gateRequest.Key = key
	return err
}

func (rc *request) sendDebit(r *ledger.DebitResult) error {
	rc.writeDebitHeaders(r)
	if len(rc.limits) > 0 {
		return rc.sendBytes(http.StatusOK, typeJSON, encoding.AppendConsume(rc.out[:0], r, rc.limits, rc.gateRequest.DryRun))
	}
	return rc.sendBytes(http.StatusOK, typeJSON, encoding.AppendDebit(rc.out[:0], r, rc.gateRequest.DryRun))
}

func (rc *request) writeDebitHeaders(r *ledger.DebitResult) {
	h := rc.Response().Header()
	var tight minRemaining
	tight.offerDebit(r)
	tight.write(h)
	rc.markReplayed(r.Replayed)
}

// debitBatch carries out independent debits and returns the result of each debit. If one debit is malformed, it
// carries out none. A debit whose metadata is beyond its bounds fails alone, because metadata often comes
// from end users.
func (s *Server) debitBatch(rc *request) error {
	var b batch
	if err := decode(rc, &b, s.bodies.batch); err != nil {
		return err
	}
	if _, err := rc.idempotencyKey(); err != nil {
		return err // a batch needs no key; a key that is sent must be valid
	}
	var missing body.Faults
	for i := range b.debits {
		r := &b.debits[i]
		r.DryRun = r.DryRun || b.dryRun
		switch {
		case r.Key != "":
		case r.DryRun:
			r.Key = dryRunKey
		default:
			missing.Add(fmt.Sprintf("debits[%d].idempotency_key", i), "is required")
		}
	}
	if err := missing.Err(); err != nil {
		return err
	}
	outcomes := ofOwnTenants(rc, b.debits, b.refused, s.gate.DebitBatch, func(err error) gate.DebitOutcome {
		return gate.DebitOutcome{Err: err}
	})
	return rc.sendBatch(b.debits, outcomes)
}

func (rc *request) sendBatch(debits []gate.Request, outcomes []gate.DebitOutcome) error {
	var tight minRemaining
	out := append(rc.out[:0], `{"results":[`...)
	for i, o := range outcomes {
		if i > 0 {
			out = append(out, ',')
		}
		var p problem
		if o.Err != nil {
			p = rc.server.problemOf(o.Err)
			if p.denial != nil {
				tight.offerDenial(p.denial)
			}
			if p.kind.status >= http.StatusInternalServerError {
				rc.code, rc.cause = p.code, o.Err
			}
		} else {
			tight.offerDebit(o.Result)
		}
		out = appendBatchResult(out, o.Result, &p, debits[i].DryRun)
	}
	tight.write(rc.Response().Header())
	return rc.sendBytes(http.StatusOK, typeJSON, append(out, "]}"...))
}
