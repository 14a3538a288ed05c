package httpapi

import (
	"net/http"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	// rateMax is longer than any rate; what one means is the limiter's to say.
	rateMax = 64
	// perMax is how many dimensions there are that go together.
	perMax = 4
	// zoneMax is longer than any zone's name.
	zoneMax = 64
)

func matchMembers() []member[catalog.Match] {
	return []member[catalog.Match]{
		{"route", false, func(d *document, m *catalog.Match) { m.Route = d.route() }},
		{"meter", false, func(d *document, m *catalog.Match) { m.Meter = d.id() }},
		{"plan", false, func(d *document, m *catalog.Match) { m.Plan = d.id() }},
		{"tenant", false, func(d *document, m *catalog.Match) { m.Tenant = d.id() }},
	}
}

func costMembers() []member[catalog.RouteCost] {
	return []member[catalog.RouteCost]{
		{"route", true, func(d *document, c *catalog.RouteCost) { c.Route = d.route() }},
		{"cost", true, func(d *document, c *catalog.RouteCost) { c.Cost = d.integer(1, ledger.MaxAmount) }},
	}
}

func limitMembers(match []member[catalog.Match], costs []member[catalog.RouteCost]) []member[catalog.Limit] {
	return []member[catalog.Limit]{
		{"per", true, func(d *document, l *catalog.Limit) {
			readList(d, &l.Per, 1, perMax, func(d *document, per *string) { *per = d.word("tenant", "subject", "route", "ip", "global") })
		}},
		{"match", false, func(d *document, l *catalog.Limit) { readObject(d, &l.Match, match) }},
		{"kind", true, func(d *document, l *catalog.Limit) {
			l.Kind = d.word("token_bucket", "fixed_window", "sliding_window", "sliding_log", "leaky_bucket", "concurrency")
		}},
		{"rate", false, func(d *document, l *catalog.Limit) {
			l.Rate = d.text(func(s string) bool { return isPrintable(s, '!', rateMax) }, "must be a count per period, as in 60/s, 100/min, 5/30s, 10/day")
		}},
		{"burst", false, func(d *document, l *catalog.Limit) { l.Burst = d.integer(1, ledger.MaxAmount) }},
		{"cost", false, func(d *document, l *catalog.Limit) { l.Cost = d.integer(1, ledger.MaxAmount) }},
		{"costs", false, func(d *document, l *catalog.Limit) {
			readList(d, &l.Costs, 0, catalog.MaxCosts, func(d *document, c *catalog.RouteCost) { readObject(d, c, costs) })
		}},
		{"cost_by", false, func(d *document, l *catalog.Limit) { l.CostBy = d.word(catalog.CostByRequest, catalog.CostByAmount) }},
		{"replaces", false, func(d *document, l *catalog.Limit) { l.Replaces = d.id() }},
		{"timezone", false, func(d *document, l *catalog.Limit) {
			l.Timezone = d.text(func(s string) bool { return isPrintable(s, '!', zoneMax) }, mustBeZone+`, or "tenant"`)
		}},
		{"mode", false, func(d *document, l *catalog.Limit) { l.Mode = d.word("enforce", "shadow") }},
		{"on_backend_error", false, func(d *document, l *catalog.Limit) { l.OnBackendError = d.word("local_share", "open", "closed") }},
		{"region_share", false, func(d *document, l *catalog.Limit) { l.RegionShare = d.integer(1, 100) }},
	}
}

// putLimit creates or replaces a rate limit.
func (s *Server) putLimit(x *exchange) error {
	rule, err := x.idParameter("rule")
	if err != nil {
		return err
	}
	l := catalog.Limit{Rule: rule}
	if err := decode(x, &l, s.requests.limit); err != nil {
		return err
	}
	stored, created, err := s.store.PutLimit(x.ctx, l)
	if err != nil {
		return err
	}
	return x.send(putStatus(created), limitOf(&stored))
}

// getLimit answers one rate limit.
func (s *Server) getLimit(x *exchange) error {
	rule, err := x.idParameter("rule")
	if err != nil {
		return err
	}
	l, err := s.store.Limit(x.ctx, rule)
	if err != nil {
		return err
	}
	return x.send(http.StatusOK, limitOf(&l))
}

// listLimits answers a page of rate limits.
func (s *Server) listLimits(x *exchange) error {
	page, err := x.catalogPage()
	if err != nil {
		return err
	}
	list, err := s.store.ListLimits(x.ctx, page)
	if err != nil {
		return err
	}
	return x.send(http.StatusOK, LimitList{Items: mapSlice(list.Items, limitOf), NextCursor: nextCursor(list.NextCursor)})
}

// deleteLimit deletes a rate limit.
func (s *Server) deleteLimit(x *exchange) error {
	rule, err := x.idParameter("rule")
	if err != nil {
		return err
	}
	if err := s.store.DeleteLimit(x.ctx, rule); err != nil {
		return err
	}
	return x.NoContent(http.StatusNoContent)
}

func limitOf(l *catalog.Limit) Limit {
	return Limit{
		Rule: l.Rule, Per: mapSlice(l.Per, perOf), Match: matchOf(l.Match), Kind: LimitKind(l.Kind), Rate: l.Rate, Burst: l.Burst,
		Cost: l.Cost, Costs: costsOf(l.Costs), CostBy: LimitCostBy(l.CostBy), Replaces: l.Replaces, Timezone: l.Timezone,
		Mode: LimitMode(l.Mode), OnBackendError: OnBackendError(l.OnBackendError), RegionShare: l.RegionShare,
		CreatedAt: l.CreatedAt, UpdatedAt: l.UpdatedAt,
	}
}

func planLimitOf(l *catalog.Limit) PlanLimit {
	return PlanLimit{
		Rule: l.Rule, Per: mapSlice(l.Per, perOf), Match: matchOf(l.Match), Kind: LimitKind(l.Kind), Rate: l.Rate, Burst: l.Burst,
		Cost: l.Cost, Costs: costsOf(l.Costs), CostBy: LimitCostBy(l.CostBy), Replaces: l.Replaces, Timezone: l.Timezone,
		Mode: LimitMode(l.Mode), OnBackendError: OnBackendError(l.OnBackendError), RegionShare: l.RegionShare,
	}
}

func costsOf(costs []catalog.RouteCost) LimitCosts {
	if len(costs) == 0 {
		return nil
	}
	return mapSlice(costs, func(c *catalog.RouteCost) LimitCost { return LimitCost{Route: c.Route, Cost: c.Cost} })
}

func perOf(per *string) LimitPer { return LimitPer(*per) }

// putStatus is the status of a PUT.
func putStatus(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// catalogPage is the query's page of a listing of the catalogue.
func (x *exchange) catalogPage() (catalog.Page, error) {
	limit, cursor := x.query.page()
	return catalog.Page{Limit: limit, Cursor: cursor}, x.query.err()
}

func matchOf(m catalog.Match) LimitMatch {
	return LimitMatch{Route: m.Route, Meter: m.Meter, Plan: m.Plan, Tenant: m.Tenant}
}
