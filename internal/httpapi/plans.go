package httpapi

import (
	"net/http"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
)

// putPlan makes a new version of a plan.
func (s *Server) putPlan(x *exchange) error {
	id, err := x.idParameter("plan")
	if err != nil {
		return err
	}
	p := catalog.Plan{ID: id}
	if err := x.decodeObject(&p, "plan"); err != nil {
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
