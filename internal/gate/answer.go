package gate

import (
	"context"

	"github.com/quotasvc/quotasvc/internal/gate/balances"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// fewItems is the largest number of items for which the lists of a check fit on the stack. Most requests have one
// item.
const fewItems = 4

// appendKeys appends the keys of the balances of req's items to the slice keys.
func appendKeys(keys []ledger.BalanceKey, req *Request) []ledger.BalanceKey {
	for i := range req.Items {
		keys = append(keys, ledger.BalanceKey{Tenant: req.Tenant, Meter: req.Items[i].Meter})
	}
	return keys
}

// lookup returns the copies of balances for a check. The round trip of the limits may have read them already. If it
// did not, and the argument `ask` is true, lookup reads them from Redis. If reads is nil, or Redis does not answer,
// lookup returns the copies in this process.
func (g *Gate) lookup(ctx context.Context, keys []ledger.BalanceKey, reads *redisstore.Reads, ask bool) found {
	if reads != nil && reads.Values == nil && ask {
		g.copies.Read(ctx, reads)
	}
	copies := g.copies.LookupReads(make([]balances.Cached, 0, fewItems), keys, reads)
	return found{copies, reads != nil && reads.Values != nil}
}

// found holds the copies for a check, and whether Redis confirms them.
type found struct {
	copies []balances.Cached
	shared bool
}

// checkNew answers the items for a tenant that does not exist yet. It answers as the ledger would immediately after
// the creation of the tenant.
func (g *Gate) checkNew(req *Request) (Check, error) {
	return fromLedger(g.provisioner.Check(req.Tenant, req.Subject, req.Items))
}

// answerItems answers the items of req from copies or from PostgreSQL, as balances.Policy decides.
func (g *Gate) answerItems(ctx context.Context, req *Request, facts *tenantFacts, have found) (Check, error) {
	// The policy decides how these copies may be used.
	copies := have.copies
	source := SourceCache
	if !have.shared {
		source = SourceLocal
	}
	action := g.policy.For(copies, &balances.Facts{
		Items: req.Items, Subject: req.Subject, MaxStale: req.MaxStale, TermsChangedAt: facts.changedAt,
		RedisAway: !have.shared, PostgresAway: g.loader.away(), Now: g.now(),
	})

	// The copies answer, or PostgreSQL is read if a slot is free.
	switch action {
	case balances.Use:
		return fromCopies(req.Items, copies, source, false), nil
	case balances.UseAndRefresh:
		g.refresher.add(ctx, req.Tenant, req.Subject, req.Items)
		return fromCopies(req.Items, copies, source, false), nil
	case balances.UseDegraded:
		return fromCopies(req.Items, copies, source, true), nil
	case balances.ReadIfSpare, balances.ReadWithin:
		if !g.loader.takeSpare() {
			return fromCopies(req.Items, copies, source, true), nil
		}
		defer g.loader.returnSpare()
	case balances.Read, balances.ReadOrUse:
	}

	// PostgreSQL answers. If it gives no answer, the copies answer.
	if action == balances.ReadWithin {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, balances.ReadPatience)
		defer cancel()
	}
	result, err := g.loader.check(ctx, req.Tenant, req.Subject, req.Items, req.MaxStale != nil && *req.MaxStale <= 0)
	switch {
	case err != nil && action != balances.Read && unanswered(err):
		return fromCopies(req.Items, copies, source, true), nil
	default:
		return fromLedger(result, err)
	}
}

// unanswered reports whether err means that PostgreSQL gave no answer. In that case a copy may be used.
func unanswered(err error) bool {
	switch errcode.Of(err) {
	case errcode.Unavailable, errcode.QueueFull:
		return true
	default:
		return false
	}
}

// fromCopies decides the items as the ledger would if the copies were current.
func fromCopies(items []ledger.Item, copies []balances.Cached, source Source, degraded bool) Check {
	out := Check{Items: make([]CheckItem, len(items)), Source: source, AsOf: copies[0].Copy.AsOf, Degraded: degraded}
	for i := range copies {
		cp := copies[i].Copy
		item := CheckItem{
			Meter: items[i].Meter, Required: items[i].Amount, Remaining: cp.Remaining, Limit: cp.Limit, MaxAllowedNow: cp.Remaining,
			ResetAt: cp.ResetAt,
		}
		if items[i].Amount > cp.Remaining {
			item.Code, item.Limiting = denialOf(cp, items[i].Amount)
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

// denialOf returns the code of the denial of an amount that exceeds the remaining units of cp, and the limiting balance.
// A complete copy has only the tenant's own units.
func denialOf(cp *ledger.BalanceCopy, amount int64) (errcode.Code, ledger.Limiting) {
	code, _ := cp.Denies(amount)
	limiting := ledger.Limiting{Kind: ledger.LimitedByCredit, Meter: cp.Meter, Subject: cp.Subject, Level: ledger.LevelTenant}
	switch code { //nolint:exhaustive // the codes of Denies
	case errcode.MeterNotInPlan:
		return code, ledger.Limiting{}
	case errcode.QuotaExceeded:
		limiting.Kind = ledger.LimitedByAllowance
	}
	return code, limiting
}

// fromLedger converts the ledger's answer into a Check. Other checks may share this answer. If a meter or tenant does
// not exist, it returns an error, as a debit does.
func fromLedger(result *ledger.CheckResult, err error) (Check, error) {
	if err != nil {
		return Check{}, err
	}
	out := Check{Items: make([]CheckItem, len(result.Items)), Source: SourceLedger, AsOf: result.AsOf, refusal: result.Refusal}
	for i := range result.Items {
		r := &result.Items[i]
		item := CheckItem{
			Meter: r.Meter, Required: r.Required, Remaining: r.Remaining, Limit: r.Limit, MaxAllowedNow: r.MaxAllowedNow,
			ResetAt: r.ResetAt, WouldSucceedAt: r.WouldSucceedAt, Cap: r.Cap,
		}
		if r.Err != nil {
			switch r.Err.Code {
			case errcode.QuotaExceeded, errcode.CreditsExhausted, errcode.MeterNotInPlan:
				item.Code = r.Err.Code
				if denial := ledger.DenialOf(r.Err); denial != nil {
					item.Limiting = denial.Limiting
				}
			default:
				return Check{}, r.Err
			}
		}
		out.Items[i] = item
	}
	return out, nil
}
