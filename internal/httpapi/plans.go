package httpapi

import (
	"net/http"

	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
	"github.com/quotasvc/quotasvc/internal/period"
)

func rolloverMembers() []member[catalog.Rollover] {
	return []member[catalog.Rollover]{
		{"min", false, func(d *document, r *catalog.Rollover) { r.Min = d.integer(0, bound.MaxAmount) }},
		{"max", true, func(d *document, r *catalog.Rollover) { r.Max = d.amount() }},
	}
}

func overageMembers() []member[catalog.Overage] {
	return []member[catalog.Overage]{
		{"policy", true, func(d *document, o *catalog.Overage) { o.Policy = d.word("deny", "allow") }},
		{"cap", false, func(d *document, o *catalog.Overage) { o.Cap = new(d.integer(0, bound.MaxAmount)) }},
		{"at_period_end", false, func(d *document, o *catalog.Overage) { o.AtPeriodEnd = d.word("forgive", "preserve") }},
	}
}

func overflowMembers() []member[catalog.Overflow] {
	return []member[catalog.Overflow]{
		{"meter", true, func(d *document, o *catalog.Overflow) { o.Meter = d.id() }},
		{"price", true, func(d *document, o *catalog.Overflow) { o.Price = d.amount() }},
	}
}

func allowanceMembers() []member[catalog.Allowance] {
	rollover, overage, overflow := rolloverMembers(), overageMembers(), overflowMembers()
	return []member[catalog.Allowance]{
		{"meter", true, func(d *document, a *catalog.Allowance) { a.Meter = d.id() }},
		{"amount", true, func(d *document, a *catalog.Allowance) { a.Amount = d.integer(0, bound.MaxAmount) }},
		{"every", true, func(d *document, a *catalog.Allowance) {
			a.Every = period.Interval(d.word("hour", "day", "week", "month", "year", "once"))
		}},
		{"anchor", true, func(d *document, a *catalog.Allowance) { a.Anchor = period.AnchorKind(d.word("calendar", "tenant")) }},
		{"rollover", false, func(d *document, a *catalog.Allowance) {
			a.Rollover = new(catalog.Rollover)
			readObject(d, a.Rollover, rollover)
		}},
		{"overage", false, func(d *document, a *catalog.Allowance) {
			a.Overage = new(catalog.Overage)
			readObject(d, a.Overage, overage)
		}},
		{"overflow", false, func(d *document, a *catalog.Allowance) {
			a.Overflow = new(catalog.Overflow)
			readObject(d, a.Overflow, overflow)
		}},
		{"per_subject", false, func(d *document, a *catalog.Allowance) { a.PerSubject = new(d.integer(0, bound.MaxAmount)) }},
		{"expires_in_days", false, func(d *document, a *catalog.Allowance) { a.ExpiresInDays = new(d.integer(1, catalog.MaxExpiresInDays)) }},
	}
}

func planMembers(allowance []member[catalog.Allowance], limit []member[catalog.Limit]) []member[catalog.Plan] {
	return []member[catalog.Plan]{
		{"allowances", true, func(d *document, p *catalog.Plan) {
			readList(d, &p.Allowances, 0, catalog.MaxAllowances, func(d *document, a *catalog.Allowance) { readObject(d, a, allowance) })
		}},
		{"limits", false, func(d *document, p *catalog.Plan) {
			readList(d, &p.Limits, 0, catalog.MaxPlanLimits, func(d *document, l *catalog.Limit) { readObject(d, l, limit) })
		}},
	}
}

// putPlan makes a new version of a plan.
func (s *Server) putPlan(x *exchange) error {
	id, err := x.idParameter("plan")
	if err != nil {
		return err
	}
	p := catalog.Plan{ID: id}
	if err := decode(x, &p, s.requests.plan); err != nil {
		return err
	}
	stored, created, err := s.store.PutPlan(x.ctx, p)
	if err != nil {
		return err
	}
	return x.send(putStatus(created), planOf(&stored))
}

// getPlan answers the newest version of a plan.
func (s *Server) getPlan(x *exchange) error {
	id, err := x.idParameter("plan")
	if err != nil {
		return err
	}
	p, err := s.store.Plan(x.ctx, id, 0)
	if err != nil {
		return err
	}
	return x.send(http.StatusOK, planOf(&p))
}

// listPlans answers a page of the newest versions.
func (s *Server) listPlans(x *exchange) error {
	page, err := x.catalogPage()
	if err != nil {
		return err
	}
	list, err := s.store.ListPlans(x.ctx, page)
	if err != nil {
		return err
	}
	return x.send(http.StatusOK, wire.PlanList{Items: mapSlice(list.Items, planOf), NextCursor: nextCursor(list.NextCursor)})
}

func planOf(p *catalog.Plan) wire.Plan {
	return wire.Plan{
		Plan: p.ID, Version: p.Version, Allowances: mapSlice(p.Allowances, allowanceOf), Limits: mapSlice(p.Limits, planLimitOf),
		CreatedAt: p.CreatedAt,
	}
}

func allowanceOf(a *catalog.Allowance) wire.Allowance {
	out := wire.Allowance{
		Meter: a.Meter, Amount: a.Amount, Every: wire.AllowanceEvery(a.Every), Anchor: wire.AllowanceAnchor(a.Anchor), PerSubject: a.PerSubject,
		ExpiresInDays: a.ExpiresInDays,
	}
	if r := a.Rollover; r != nil {
		out.Rollover = &wire.Rollover{Min: r.Min, Max: r.Max}
	}
	if o := a.Overage; o != nil {
		out.Overage = &wire.Overage{Policy: wire.OveragePolicy(o.Policy), Cap: o.Cap, AtPeriodEnd: wire.OverageAtPeriodEnd(o.AtPeriodEnd)}
	}
	if o := a.Overflow; o != nil {
		out.Overflow = &wire.Overflow{Meter: o.Meter, Price: o.Price}
	}
	return out
}
