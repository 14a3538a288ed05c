package verifier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
)

// agreed are the terms that some tenants have agreed to.
type agreed struct {
	history map[string][]ledger.TenantTerms // by tenant, oldest first
	plans   map[string][]ledger.PlanVersion
	// unread has the tenants whose terms this version cannot read, for example because of a time zone that only a newer
	// version has.
	unread map[string]bool
}

// compareTerms compares what periods and grants of balances have from the terms of their tenants. It implements
// audit.TermsComparer. It reads the terms after the rows. Terms that were added meanwhile change nothing, because a
// period may have begun under any terms that the tenant had agreed to.
func (v *Verifier) compareTerms(ctx context.Context, opened []audit.Opened) ([]audit.Difference, error) {
	if len(opened) == 0 {
		return nil, nil
	}
	terms, err := v.readTerms(ctx, opened)
	if err != nil {
		return nil, fmt.Errorf("read terms: %w", err)
	}
	var out []audit.Difference
	for i := range opened {
		o := &opened[i]
		if terms.unread[o.Tenant] {
			continue
		}
		c := comparison{balance: o, key: ledger.BalanceKey(o.Key), history: terms.history[o.Tenant], plans: terms.plans}
		c.compare()
		out = append(out, c.found...)
	}
	return out, nil
}

func (v *Verifier) readTerms(ctx context.Context, opened []audit.Opened) (*agreed, error) {
	ctx, cancel := context.WithTimeout(ctx, termsTimeout)
	defer cancel()
	var tenants, meters, plans []string
	for i := range opened {
		tenants, meters = append(tenants, opened[i].Tenant), append(meters, opened[i].Meter)
	}
	out := &agreed{
		history: map[string][]ledger.TenantTerms{}, plans: map[string][]ledger.PlanVersion{}, unread: map[string]bool{},
	}
	rows, err := v.pool.Query(ctx, v.sql["TermsHistory"], distinct(tenants))
	if err != nil {
		return nil, err
	}
	var tenant, zone string
	var overrides []byte
	var t ledger.TenantTerms
	_, err = pgx.ForEachRow(rows, []any{&tenant, &t.Since, &t.Plan, &t.AnchorAt, &zone, &overrides}, func() error {
		t.Overrides = nil
		var err error
		t.Zone, err = period.ParseZone(zone)
		out.unread[tenant] = out.unread[tenant] || errors.Join(err, json.Unmarshal(overrides, &t.Overrides)) != nil
		t.Since, t.AnchorAt = t.Since.UTC(), t.AnchorAt.UTC()
		out.history[tenant] = append(out.history[tenant], t)
		plans = append(plans, t.Plan)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, v.readPlans(ctx, out, distinct(plans), distinct(meters))
}

func (v *Verifier) readPlans(ctx context.Context, into *agreed, plans, meters []string) error {
	rows, err := v.pool.Query(ctx, v.sql["PlansOfTerms"], plans, meters)
	if err != nil {
		return err
	}
	var plan, meter string
	var days int
	var a ledger.Allowance
	var p ledger.PlanVersion
	_, err = pgx.ForEachRow(rows, []any{
		&plan, &p.Version, &p.CreatedAt, &meter, &a.Amount, &a.Every, &a.Anchor, &a.RolloverMin, &a.RolloverMax,
		&a.PerSubject, &days, &a.OveragePreserved,
	}, func() error {
		versions := into.plans[plan]
		if n := len(versions); n == 0 || versions[n-1].Version != p.Version {
			p.CreatedAt, p.Allowances = p.CreatedAt.UTC(), map[string]ledger.Allowance{}
			versions = append(versions, p)
			into.plans[plan] = versions
		}
		a.Lasts = time.Duration(days) * 24 * time.Hour
		if meter != "" {
			versions[len(versions)-1].Allowances[meter] = a
		}
		a = ledger.Allowance{}
		return nil
	})
	return err
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
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
		by := ledger.OpenedBy(c.key, c.history, c.plans, p.Start, p.Plan, p.PlanVersion)
		of := grants[p.Start.UnixMicro()]
		delete(grants, p.Start.UnixMicro())
		if len(by) == 0 {
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
	}
	for _, of := range grants {
		for i := range of {
			c.add("beginning of grant "+of[i].ID, "that of a period", instant(of[i].EffectiveAt))
		}
	}
}

// compareOpen compares the open period with what its terms give. Terms that were agreed on ahead may end it early.
func (c *comparison) compareOpen(at string, p *audit.OpenedPeriod, by []ledger.Opened) {
	if !slices.ContainsFunc(by, func(o ledger.Opened) bool { return o.Allowance == p.Allowance }) {
		c.add(at+"allowance", by[0].Allowance, p.Allowance)
	}
	if !slices.ContainsFunc(by, func(o ledger.Opened) bool { return o.Renews == p.Renews }) {
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
