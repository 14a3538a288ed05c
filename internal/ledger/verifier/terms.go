package verifier

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/agreed"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
)

// compareTerms compares what periods and grants of balances have from the terms of their tenants. It implements
// audit.TermsComparer. It reads the terms after the rows. Terms that were added meanwhile change nothing, because a
// period may have begun under any terms that the tenant had agreed to.
func (v *Verifier) compareTerms(ctx context.Context, opened []audit.Opened) ([]audit.Difference, error) {
	if len(opened) == 0 {
		return nil, nil
	}
	keys := make([]ledger.BalanceKey, len(opened))
	for i := range opened {
		keys[i] = ledger.BalanceKey(opened[i].Key)
	}
	ctx, cancel := context.WithTimeout(ctx, termsTimeout)
	defer cancel()
	b := &pgx.Batch{}
	terms := agreed.Queue(b, v.sql, keys)
	if err := v.pool.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("read terms: %w", err)
	}
	var out []audit.Difference
	for i := range opened {
		o := &opened[i]
		if terms.Faults[o.Tenant] != nil {
			continue
		}
		c := comparison{balance: o, key: keys[i], history: terms.History[o.Tenant], plans: terms.Plans}
		c.compare()
		out = append(out, c.found...)
	}
	return out, nil
}

// termsTimeout bounds the reads of the terms of a group of balances.
const termsTimeout = 60 * time.Second

// comparison compares one balance with the terms of its tenant.
type comparison struct {
	balance *audit.Opened
	key     ledger.BalanceKey
	history []ledger.TenantTerms
	plans   map[string][]ledger.PlanVersion
	found   []audit.Difference
}

func (c *comparison) add(what string, want, got any) {
	k := c.balance.Key
	c.found = append(c.found, audit.Difference{
		Tenant: k.Tenant, Meter: k.Meter, Subject: k.Subject, What: what, Want: fmt.Sprint(want), Got: fmt.Sprint(got),
	})
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func (c *comparison) compare() {
	if len(c.history) == 0 {
		c.add("terms of the tenant", "some", "none")
		return
	}
	grants := map[int64][]audit.OpenedGrant{} // by beginning
	for _, g := range c.balance.Grants {
		grants[g.EffectiveAt.UnixMicro()] = append(grants[g.EffectiveAt.UnixMicro()], g)
	}
	for i := range c.balance.Periods {
		p := &c.balance.Periods[i]
		at := "period " + p.Start.UTC().Format(time.RFC3339) + " "
		by := ledger.OpenedBy(c.key, c.history, c.plans, p.Start, p.End, p.Plan, p.PlanVersion)
		of := grants[p.Start.UnixMicro()]
		delete(grants, p.Start.UnixMicro())
		if !slices.ContainsFunc(by, func(o ledger.Opened) bool { return o.Named }) {
			c.add(at+"plan", "one of the tenant's terms", fmt.Sprintf("%s version %d", p.Plan, p.PlanVersion))
			continue
		}
		if p.Idle > 0 {
			c.compareRun(at, p)
		} else if p.TermsAt != nil {
			c.add(at+"terms of idle periods", "none", instant(*p.TermsAt))
		}
		if p.Open {
			c.compareOpen(at, p, by)
		}
		for i := range of {
			c.compareGrant(&of[i], by)
		}
		c.compareAmendments(p, by, grants)
	}
	c.compareChanges()
	for _, of := range grants {
		for i := range of {
			c.add("beginning of grant "+of[i].ID, "that of a period", instant(of[i].EffectiveAt))
		}
	}
}

// compareAmendments compares the ends of the allowances that changes of terms, and units that came back, gave inside
// the period p. It removes them from grants. Allowances that last a number of days begin to do so with their period or
// with a change that gives them as a whole. Such a change has no grant if it gives 0 units.
func (c *comparison) compareAmendments(
	p *audit.OpenedPeriod, by []ledger.Opened, grants map[int64][]audit.OpenedGrant,
) {
	begins := []begin{{at: p.Start}}
	if p.Open && c.balance.Changes != nil {
		begins = append(begins, begin{at: c.balance.Changes.AllowanceAt})
	}
	for i := range c.history {
		if at := c.history[i].Since; at.After(p.Start) {
			begins = append(begins, begin{at, termsMargin})
		}
	}
	var inside []audit.OpenedGrant
	for start, of := range grants {
		at := time.UnixMicro(start)
		if at.After(p.Start) && at.Before(p.End) && of[0].Source == string(ledger.SourceAllowance) {
			begins, inside = append(begins, begin{at: at}), append(inside, of...)
			delete(grants, start)
		}
	}
	for i := range inside {
		g := &inside[i]
		ends := func(o ledger.Opened) bool {
			lasts := func(b begin) bool {
				end := b.at.Add(o.Lasts)
				late := g.ExpiresAt.After(end) && g.ExpiresAt.Before(end.Add(b.margin))
				return o.Lasts > 0 && (late || g.ExpiresAt.Equal(period.Earlier(o.End, end)))
			}
			return g.ExpiresAt.Equal(o.End) || slices.ContainsFunc(begins, lasts)
		}
		if !slices.ContainsFunc(by, ends) {
			c.add("expiry of grant "+g.ID, instant(by[0].GrantEnd), instant(g.ExpiresAt))
		}
	}
}

// begin is an instant at which an allowance may have been given as a whole, or less than margin later.
type begin struct {
	at     time.Time
	margin time.Duration
}

// compareOpen compares the open period with what its terms give. Terms that were agreed on ahead may end it early.
func (c *comparison) compareOpen(at string, p *audit.OpenedPeriod, by []ledger.Opened) {
	if !slices.ContainsFunc(by, func(o ledger.Opened) bool { return o.Named && o.Allowance == p.Allowance }) {
		c.add(at+"allowance", by[0].Allowance, p.Allowance)
	}
	if !slices.ContainsFunc(by, func(o ledger.Opened) bool { return o.Named && o.Renews == p.Renews }) {
		c.add(at+"renews", by[0].Renews, p.Renews)
	}
	ends := func(o ledger.Opened) bool { return o.End.Equal(p.End) }
	early := func(h ledger.TenantTerms) bool { return h.Since.Equal(p.End) }
	if !slices.ContainsFunc(by, ends) && !slices.ContainsFunc(c.history, early) {
		c.add(at+"end", instant(by[0].End), instant(p.End))
	}
}

// compareGrant compares the end of a grant that began with its period. A rollover ends with its period.
func (c *comparison) compareGrant(g *audit.OpenedGrant, by []ledger.Opened) {
	end := func(o *ledger.Opened) time.Time {
		if g.Source == string(ledger.SourceRollover) {
			return o.End
		}
		return o.GrantEnd
	}
	if !slices.ContainsFunc(by, func(o ledger.Opened) bool { return end(&o).Equal(g.ExpiresAt) }) {
		c.add("expiry of grant "+g.ID, instant(end(&by[0])), instant(g.ExpiresAt))
	}
}

// compareRun derives the single periods of a run of idle periods, and checks that they follow each other.
func (c *comparison) compareRun(at string, p *audit.OpenedPeriod) {
	row := ledger.PeriodRow{
		BalanceKey: c.key, Sums: ledger.Sums{Opening: p.Opening, Used: p.Used, Held: p.Held},
		Start: p.Start.UTC(), End: p.End.UTC(), Plan: p.Plan, PlanVersion: p.PlanVersion, Closing: p.Closing,
		Idle: p.Idle, TermsAt: period.OrZero(p.TermsAt),
		RolledOver: p.RolledOver, Rollover: p.Rollover, Owing: p.Owing,
	}
	run, err := ledger.NewIdleRun(&row, c.history, c.plans)
	if err == nil {
		err = run.Follows()
	}
	if err != nil {
		c.add(at+"idle periods", "periods that follow each other", err)
	}
}
