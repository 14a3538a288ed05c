package provision

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// roundsMax is the largest number of rounds of a decision. A round may request more balances for the next round. One
// round is for subjects' caps, one for overflow meters, and one is a reserve.
const roundsMax = 3

// emptyLedger has the data that the ledger would read about a tenant that is created at the instant now.
type emptyLedger struct {
	now     time.Time
	meters  map[string]*catalog.Meter
	history []ledger.TenantTerms
	plans   map[string][]ledger.PlanVersion
}

func newEmptyLedger(s *catalog.Snapshot, p *catalog.Plan, now time.Time) *emptyLedger {
	version := ledger.PlanVersion{
		Version: p.Version, CreatedAt: p.CreatedAt, Allowances: make(map[string]ledger.Allowance, len(p.Allowances)),
	}
	for i := range p.Allowances {
		if p.Allowances[i].Every != "" { // a gauge's allowance has no interval
			version.Allowances[p.Allowances[i].Meter] = allowanceOf(&p.Allowances[i])
		}
	}
	return &emptyLedger{
		now: now, meters: s.Meters, plans: map[string][]ledger.PlanVersion{p.ID: {version}},
		history: []ledger.TenantTerms{{Since: now, Plan: p.ID, AnchorAt: now, Zone: time.UTC, Now: true}},
	}
}

// allowanceOf returns an allowance as the ledger reads it from PostgreSQL.
func allowanceOf(a *catalog.Allowance) ledger.Allowance {
	out := ledger.Allowance{Amount: a.Amount, Every: a.Every, Anchor: a.Anchor, PerSubject: a.PerSubject}
	if a.Rollover != nil {
		out.RolloverMin, out.RolloverMax = &a.Rollover.Min, &a.Rollover.Max
	}
	if a.Overage != nil {
		out.OverageAllowed = a.Overage.Policy == "allow"
		out.OverageCap = a.Overage.Cap
		out.OveragePreserved = a.Overage.AtPeriodEnd == "preserve"
	}
	if a.Overflow != nil {
		out.OverflowMeter = a.Overflow.Meter
		out.OverflowPrice = a.Overflow.Price
	}
	if a.ExpiresInDays != nil {
		out.Lasts = time.Duration(*a.ExpiresInDays) * 24 * time.Hour
	}
	return out
}

// batch returns a batch with the balances of keys as they are for a new tenant.
func (l *emptyLedger) batch(keys []ledger.BalanceKey) (*ledger.Batch, error) {
	b := ledger.NewBatch()
	b.Now = l.now
	b.Targets = ledger.NewTargetState()
	b.Absent = map[ledger.BalanceKey]ledger.Absence{}
	for _, k := range keys {
		switch m := l.meters[k.Meter]; {
		case m == nil:
			b.Absent[k] = ledger.AbsentMeter
			continue
		case m.Kind == catalog.KindGauge:
			b.Absent[k] = ledger.AbsentGauge
			continue
		}
		book := ledger.NewBook(ledger.BalanceRow{BalanceKey: k})
		book.Timeline = ledger.NewTimeline(k, l.history, l.plans)
		book.LoadGrants(nil, nil)
		b.Books[k] = book
	}
	return b, b.AdvanceInMemory(nil)
}

// decide decides a call on new balances.
func (l *emptyLedger) decide(c *ledger.Call, demand []ledger.Demand) error {
	keys := make([]ledger.BalanceKey, len(demand))
	for i := range demand {
		keys[i] = demand[i].BalanceKey
	}
	return l.repeat(keys, func(b *ledger.Batch) (ledger.Next, error) {
		return b.Decide([]*ledger.Call{c}), nil
	})
}

// check answers a check from new balances.
func (l *emptyLedger) check(r *ledger.CheckRequest) (result *ledger.CheckResult, err error) {
	keys := make([]ledger.BalanceKey, len(r.Items))
	for i := range r.Items {
		keys[i] = ledger.BalanceKey{Tenant: r.Tenant, Meter: r.Items[i].Meter}
	}
	err = l.repeat(keys, func(b *ledger.Batch) (next ledger.Next, err error) {
		result, next, err = b.Check(r)
		return next, err
	})
	return result, err
}

// repeat runs the function `do` with the balances of keys. If this function requests further balances, repeat runs it
// again with them.
func (l *emptyLedger) repeat(keys []ledger.BalanceKey, do func(*ledger.Batch) (ledger.Next, error)) error {
	for range roundsMax {
		b, err := l.batch(keys)
		if err != nil {
			return err
		}
		next, err := do(b)
		if err != nil || next.Done() {
			return err
		}
		keys = append(keys, next.Keys()...)
	}
	return &errcode.Error{Code: errcode.Internal, Detail: "a first use cannot be decided"}
}
