package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

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
	var space [fewItems]balanceKey
	keys := balanceKeys(space[:0], req)
	if !exempt {
		said, err = g.limits(ctx, req, &facts, false, g.cache.stored(keys, req.MaxStale))
	}
	if err != nil {
		return Check{}, err
	}
	if _, undecided := errors.AsType[*ReducedCapacity](said.refusal); undecided {
		return Check{}, said.refusal
	}
	out, err := g.balances(ctx, req, &facts, keys, &said)
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
// answer them. PostgreSQL then gets refreshPatience.
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
		ctx, cancel = context.WithTimeout(ctx, refreshPatience)
		defer cancel()
	}
	return g.balances(ctx, &req, &facts, balanceKeys(nil, &req), &limited{degraded: refused.LimitsDegraded})
}

// fewItems is how many items are checked without allocations for each: most requests have one.
const fewItems = 4

// balanceKeys appends the keys of req's items to keys.
func balanceKeys(keys []balanceKey, req *Request) []balanceKey {
	for i := range req.Items {
		keys = append(keys, balanceKey{Tenant: req.Tenant, Meter: req.Items[i].Meter})
	}
	return keys
}

// balances answers the items of req. What Redis holds has come with what the limits said, if they were asked there; while they
// are decided without Redis it is not asked for balances either.
func (g *Gate) balances(ctx context.Context, req *Request, facts *facts, keys []balanceKey, said *limited) (Check, error) {
	texts := said.reads
	if texts == nil && !said.degraded {
		if names := g.cache.stored(keys, req.MaxStale); names != nil {
			texts, _ = g.limiter.Read(ctx, req.Tenant, names) // without it, this process's copies have to do
		}
	}
	var space [fewItems]found
	copies, source := g.cache.recall(space[:0], keys, texts)
	now := g.cache.cfg.Now()
	if !slices.ContainsFunc(copies, func(f found) bool {
		return !g.cache.fresh(f, req.MaxStale, now) || f.copy.Beyond || f.copy.AsOf.Before(facts.changedAt)
	}) {
		if req.MaxStale == nil && slices.ContainsFunc(copies, func(f found) bool { return g.cache.aging(f, now) }) {
			g.refresher.add(ctx, req.Tenant, req.Subject, req.Items)
		}
		return fromCopies(req.Items, copies, source), nil
	}
	fallback := decides(req, copies, now)
	degraded := func() Check {
		out := fromCopies(req.Items, copies, source)
		out.Degraded = true
		return out
	}
	if fallback && !g.loader.expectsAnswer() {
		return degraded(), nil
	}
	if fallback && req.MaxStale == nil && lonely(copies, facts.changedAt, g.cache.cfg.FreshFor, now) {
		away := texts == nil
		if away && lonely(copies, facts.changedAt, awayFreshFor, now) || !g.loader.mayRefresh() {
			return degraded(), nil
		}
		defer g.loader.refreshed()
		if away {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, refreshPatience)
			defer cancel()
		}
	}
	result, err := g.loader.check(ctx, req.Tenant, req.Subject, req.Items)
	switch {
	case err == nil:
		return fromLedger(result)
	case fallback && undecided(err):
		return degraded(), nil
	default:
		return Check{}, err
	}
}

// decides says whether copies are something to answer req from when PostgreSQL is away. One that says Beyond proves only that
// its own balance can pay, and not even that for a subject that may have a cap.
func decides(req *Request, copies []found, now time.Time) bool {
	for i, f := range copies {
		if !usable(f, now) || f.copy.Beyond && (req.Subject != "" || req.Items[i].Amount > f.copy.Remaining) {
			return false
		}
	}
	return true
}

// undecided says whether err leaves the question open, so that an older copy is better than no answer.
func undecided(err error) bool {
	switch ledger.CodeOf(err) {
	case ledger.CodeUnavailable, ledger.CodeQueueFull:
		return true
	default:
		return false
	}
}

// fromCopies decides as the ledger would if the copies were current.
func fromCopies(items []ledger.Item, copies []found, source Source) Check {
	out := Check{Items: make([]CheckItem, len(items)), Source: source, AsOf: copies[0].copy.AsOf}
	for i := range copies {
		cp := copies[i].copy
		item := CheckItem{
			Meter: items[i].Meter, Required: items[i].Amount, Remaining: cp.Remaining, Limit: cp.Limit, MaxAllowedNow: cp.Remaining,
			ResetAt: cp.ResetAt,
		}
		if items[i].Amount > cp.Remaining {
			item.Code, item.Limiting = denialOf(cp)
			if cp.Renews && cp.Allowance >= items[i].Amount {
				item.WouldSucceedAt = cp.ResetAt
			}
		}
		out.Items[i] = item
		if cp.AsOf.Before(out.AsOf) {
			out.AsOf = cp.AsOf
		}
	}
	return out
}

// denialOf is what the ledger says of a balance that is short.
func denialOf(cp *ledger.BalanceCopy) (ledger.Code, ledger.Limiting) {
	limiting := ledger.Limiting{Kind: "credit", Meter: cp.Meter, Subject: cp.Subject, Level: "tenant"}
	switch {
	case !cp.InPlan && cp.Seq == 0:
		return ledger.CodeMeterNotInPlan, ledger.Limiting{}
	case cp.Renews:
		limiting.Kind = "allowance"
		return ledger.CodeQuotaExceeded, limiting
	default:
		return ledger.CodeCreditsExhausted, limiting
	}
}

// fromLedger translates the ledger's answer, which may be shared. What names something that does not exist is an error
// here, as it is for a debit.
func fromLedger(result *ledger.CheckResult) (Check, error) {
	out := Check{Items: make([]CheckItem, len(result.Items)), Source: SourceLedger, AsOf: result.AsOf}
	for i := range result.Items {
		r := &result.Items[i]
		item := CheckItem{
			Meter: r.Meter, Required: r.Required, Remaining: r.Remaining, Limit: r.Limit, MaxAllowedNow: r.MaxAllowedNow,
			ResetAt: r.ResetAt, WouldSucceedAt: r.WouldSucceedAt,
		}
		if r.Err != nil {
			switch r.Err.Code {
			case ledger.CodeQuotaExceeded, ledger.CodeCreditsExhausted, ledger.CodeMeterNotInPlan:
				item.Code = r.Err.Code
				if r.Err.Denial != nil {
					item.Limiting = r.Err.Denial.Limiting
				}
			default:
				return Check{}, r.Err
			}
		}
		out.Items[i] = item
	}
	return out, nil
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
