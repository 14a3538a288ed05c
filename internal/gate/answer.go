package gate

import (
	"context"

	"github.com/quotasvc/quotasvc/internal/gate/balances"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// fewItems is the number of items up to which a check allocates no lists of them. Most requests have one item.
const fewItems = 4

// appendKeys appends the keys of the balances of req's items to keys.
func appendKeys(keys []ledger.BalanceKey, req *Request) []ledger.BalanceKey {
	for i := range req.Items {
		keys = append(keys, ledger.BalanceKey{Tenant: req.Tenant, Meter: req.Items[i].Meter})
	}
	return keys
}

// lookup returns the copies of a check. If the copies were not read together with the limits and ask is true, lookup
// reads them now. If there is nothing to read, or Redis does not answer, the copies are local ones.
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

// checkNew answers the items of a tenant that does not exist yet, as the ledger would if it had just been created.
func (g *Gate) checkNew(req *Request) (Check, error) {
	return fromLedger(g.provisioner.Check(req.Tenant, req.Subject, req.Items))
}

// answerItems answers the items of req from copies or from PostgreSQL, as the policy decides.
func (g *Gate) answerItems(ctx context.Context, req *Request, facts *tenantFacts, have found) (Check, error) {
	// The action that the policy permits with these copies.
	copies := have.copies
	source := SourceCache
	if !have.shared {
		source = SourceLocal
	}
	action := g.policy.For(copies, &balances.Facts{
		Items: req.Items, Subject: req.Subject, MaxStale: req.MaxStale, TermsChangedAt: facts.changedAt,
		RedisAway: !have.shared, PostgresAway: g.loader.away(), Now: g.now(),
	})

	// The copies answer, or PostgreSQL is read if it has room.
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

	// PostgreSQL answers, or the copies do if it cannot.
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

// unanswered reports whether err means that PostgreSQL gave no answer. A copy may be used then.
func unanswered(err error) bool {
	switch errcode.Of(err) {
	case errcode.Unavailable, errcode.QueueFull:
		return true
	default:
		return false
	}
}

// fromCopies decides as the ledger would if the copies were current.
func fromCopies(items []ledger.Item, copies []balances.Cached, source Source, degraded bool) Check {
	out := Check{Items: make([]CheckItem, len(items)), Source: source, AsOf: copies[0].Copy.AsOf, Degraded: degraded}
	for i := range copies {
		cp := copies[i].Copy
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

// denialOf returns the code and the limiting balance with which the ledger denies an amount above the remainder of
// cp. See sources.deny in package ledger: a complete copy has the tenant's own units only, so the other cases there
// do not occur.
func denialOf(cp *ledger.BalanceCopy) (errcode.Code, ledger.Limiting) {
	limiting := ledger.Limiting{Kind: ledger.LimitedByCredit, Meter: cp.Meter, Subject: cp.Subject, Level: ledger.LevelTenant}
	switch {
	case !cp.InPlan && cp.Seq == 0:
		return errcode.MeterNotInPlan, ledger.Limiting{}
	case cp.Renews:
		limiting.Kind = ledger.LimitedByAllowance
		return errcode.QuotaExceeded, limiting
	default:
		return errcode.CreditsExhausted, limiting
	}
}

// fromLedger translates the ledger's answer, which other checks may share. A meter or tenant that does not exist is an
// error, as it is for a debit.
func fromLedger(result *ledger.CheckResult, err error) (Check, error) {
	if err != nil {
		return Check{}, err
	}
	out := Check{Items: make([]CheckItem, len(result.Items)), Source: SourceLedger, AsOf: result.AsOf}
	for i := range result.Items {
		r := &result.Items[i]
		item := CheckItem{
			Meter: r.Meter, Required: r.Required, Remaining: r.Remaining, Limit: r.Limit, MaxAllowedNow: r.MaxAllowedNow,
			ResetAt: r.ResetAt, WouldSucceedAt: r.WouldSucceedAt,
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
