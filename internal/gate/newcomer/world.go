package newcomer

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// roundsMax bounds how often a decision may ask for more balances: those of subjects' caps once, those of overflow meters once, and once to spare.
const roundsMax = 3

// world is what the ledger would read of a tenant that was made at this instant.
type world struct {
	now     time.Time
	meters  map[string]*catalog.Meter
	history []ledger.TenantTerms
	plans   map[string][]ledger.PlanVersion
}

func newWorld(s *catalog.Snapshot, p *catalog.Plan, now time.Time) *world {
	version := ledger.PlanVersion{Version: p.Version, CreatedAt: p.CreatedAt, Allowances: make(map[string]ledger.Allowance, len(p.Allowances))}
	for i := range p.Allowances {
		if p.Allowances[i].Every != "" { // else it is that of a gauge
			version.Allowances[p.Allowances[i].Meter] = allowanceOf(&p.Allowances[i])
		}
	}
	return &world{
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
		out.OverageAllowed, out.OverageCap, out.OveragePreserved = a.Overage.Policy == "allow", a.Overage.Cap, a.Overage.AtPeriodEnd == "preserve"
	}
	if a.Overflow != nil {
		out.OverflowMeter, out.OverflowPrice = a.Overflow.Meter, a.Overflow.Price
	}
	if a.ExpiresInDays != nil {
		out.Lasts = time.Duration(*a.ExpiresInDays) * 24 * time.Hour
	}
	return out
}

// batch returns a batch with the balances of keys as they begin.
func (w *world) batch(keys []ledger.BalanceKey) (*ledger.Batch, error) {
	b := ledger.NewBatch()
	b.Now, b.Targets, b.Absent = w.now, ledger.NewTargetState(), map[ledger.BalanceKey]ledger.Absence{}
	for _, k := range keys {
		switch m := w.meters[k.Meter]; {
		case m == nil:
			b.Absent[k] = ledger.AbsentMeter
			continue
		case m.Kind == catalog.KindGauge:
			b.Absent[k] = ledger.AbsentGauge
			continue
		}
		book := ledger.NewBook(ledger.BalanceRow{BalanceKey: k})
		book.Timeline = ledger.NewTimeline(k, w.history, w.plans)
		book.LoadGrants(nil, nil)
		b.Books[k] = book
	}
	return b, b.AdvanceInMemory(nil)
}

// decide decides a call.
func (w *world) decide(c *ledger.Call, demand []ledger.Demand) error {
	keys := make([]ledger.BalanceKey, len(demand))
	for i := range demand {
		keys[i] = demand[i].BalanceKey
	}
	return w.repeat(keys, func(b *ledger.Batch) (ledger.Next, error) { return b.Decide([]*ledger.Call{c}), nil })
}

// check answers a check.
func (w *world) check(r *ledger.CheckRequest) (result *ledger.CheckResult, err error) {
	keys := make([]ledger.BalanceKey, len(r.Items))
	for i := range r.Items {
		keys[i] = ledger.BalanceKey{Tenant: r.Tenant, Meter: r.Items[i].Meter}
	}
	err = w.repeat(keys, func(b *ledger.Batch) (next ledger.Next, err error) {
		result, next, err = b.Check(r)
		return next, err
	})
	return result, err
}

// repeat runs do on the balances of keys, and again with those that it asks for.
func (w *world) repeat(keys []ledger.BalanceKey, do func(*ledger.Batch) (ledger.Next, error)) error {
	for range roundsMax {
		b, err := w.batch(keys)
		if err != nil {
			return err
		}
		next, err := do(b)
		if err != nil || next.Done() {
			return err
		}
		keys = append(keys, next.More...)
	}
	return &ledger.Error{Code: ledger.CodeInternal, Detail: "a first use cannot be decided"}
}
