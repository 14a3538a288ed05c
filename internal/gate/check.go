package gate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/quotasvc/quotasvc/internal/balances"
	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Check says whether Consume would allow req now, and charges nothing.
//
// Balances come from copies that are fresh enough for req.MaxStale, else from PostgreSQL; when PostgreSQL cannot be asked,
// from the newest copies there are, marked degraded. Errors: *ReducedCapacity and *ledger.Error, for requests that cannot
// be decided or that name what does not exist. A refusal is not an error.
func (g *Gate) Check(ctx context.Context, req Request) (Check, error) {
	out, err := g.check(ctx, &req)
	label := outcome(err, false)
	if err == nil {
		g.metrics.sources.WithLabelValues(string(out.Source), strconv.FormatBool(out.Degraded)).Inc()
		if !out.Allowed {
			label = string(out.Code)
		}
	}
	g.metrics.decisions.WithLabelValues("check", label).Inc()
	return out, err
}

func (g *Gate) check(ctx context.Context, req *Request) (Check, error) {
	if err := validItems(req.Items); err != nil {
		return Check{}, err
	}
	// A tenant that cannot be looked up now is checked as one nobody knows: an answer that says "degraded" is worth more to
	// a check than none. Debits are stricter.
	facts, unknown := g.terms.of(ctx, req.Tenant)
	blocked, exempt := g.blocked(req)
	if blocked != nil {
		return g.blockedCheck(ctx, req, &facts, blocked), nil
	}
	var said limited
	var err error
	var space [fewItems]balances.Key
	keys := balanceKeys(space[:0], req)
	if !exempt {
		said, err = g.limits(ctx, req, &facts, false, g.copies.RedisKeys(keys, req.MaxStale))
	}
	if err != nil {
		return Check{}, err
	}
	if _, undecided := errors.AsType[*ReducedCapacity](said.refusal); undecided {
		return Check{}, said.refusal
	}
	out, err := g.answerItems(ctx, req, &facts, keys, &said)
	if err != nil {
		return Check{}, err
	}
	out.Limits, out.LimitsDegraded = said.verdicts, said.degraded
	out.Degraded = out.Degraded || said.degraded || unknown != nil
	g.conclude(&out, said.refusal, facts.suspended)
	return out, nil
}

// conclude gives out its verdict: the limits' refusal, the tenant's suspension, then the items' own in order, as Consume
// meets them.
func (g *Gate) conclude(out *Check, refusal error, suspended bool) {
	out.Item = -1
	first := -1
	for i := range out.Items {
		if out.Items[i].Code != "" {
			first = i
			break
		}
	}
	limited, isLimited := errors.AsType[*RateLimited](refusal)
	switch {
	case isLimited:
		out.Code, out.RetryAfter = CodeRateLimited, limited.RetryAfter
	case refusal != nil:
		out.Code = CodeOf(refusal)
	case suspended:
		out.Code = ledger.CodeTenantSuspended
	case first >= 0:
		item := &out.Items[first]
		out.Code, out.Item = item.Code, first
		if item.Limiting != (ledger.Limiting{}) {
			out.Limiting = &item.Limiting
		}
		if item.Code == ledger.CodeQuotaExceeded {
			out.RetryAfter = max(item.ResetAt.Sub(g.now()), time.Second)
		}
	default:
		out.Allowed = true
	}
}

// Standing says how the balances stand that a consume of req was about which the limits have refused. It decides nothing: the
// limits are not asked a second time, which would count and might wait a second time, and neither is a Redis that did not
// answer them. PostgreSQL then gets balances.ReadPatience.
func (g *Gate) Standing(ctx context.Context, req Request, refused *Debited) (Check, error) {
	if err := validItems(req.Items); err != nil {
		return Check{}, err
	}
	facts, err := g.terms.of(ctx, req.Tenant)
	if err != nil {
		return Check{}, err
	}
	if refused.LimitsDegraded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, balances.ReadPatience)
		defer cancel()
	}
	return g.answerItems(ctx, &req, &facts, balanceKeys(nil, &req), &limited{degraded: refused.LimitsDegraded})
}

// validItems refuses what a debit would refuse, also when no ledger is asked.
func validItems(items []ledger.Item) error {
	refuse := func(field, format string, args ...any) error {
		return &ledger.Error{Code: ledger.CodeInvalidArgument, Field: field, Detail: fmt.Sprintf(format, args...)}
	}
	if len(items) < 1 || len(items) > ledger.ItemsMax {
		return refuse("items", "must have 1 to %d elements, has %d", ledger.ItemsMax, len(items))
	}
	for i := range items {
		if !bound.Amount(items[i].Amount) {
			return refuse(fmt.Sprintf("items[%d].amount", i), bound.MustBeAmount)
		}
		for j := range i {
			if items[j].Meter == items[i].Meter {
				return refuse(fmt.Sprintf("items[%d].meter", i), "names the same meter as items[%d]; use one item with the sum", j)
			}
		}
	}
	return nil
}
