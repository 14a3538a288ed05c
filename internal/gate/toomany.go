package gate

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/cowmap"
	"github.com/quotasvc/quotasvc/internal/kit/route"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// namedMax bounds the rules that an error names: enough to see what they have in common.
const namedMax = 20

// CheckRules returns a fault if more rules can apply to a request for one meter than can be decided together. It is the
// catalogue's StoreConfig.CheckRules.
//
// It decides exactly, for requests that name every dimension: each plan that a rule names or that has limits, with each tenant that a rule
// names and one that none names, each meter that a rule names and one that none names, and one route of each pattern, which is
// route.Pattern.Sample. It does not try other routes on which patterns overlap, nor requests for several meters. Those are refused when they come.
//
// It compiles what differs from before, and tries the requests that this may give more rules. Mostly it tries none: the sums of crowd show that
// they are few. Whether a request has too many rules is a matter of chains: of each chain one rule applies.
func CheckRules(after, before *catalog.Snapshot) []catalog.RuleFault {
	t := newTrial(compileRules(after, before))
	if t.most+t.rules.crowd.plans.Most()+t.widestPlan()+t.widest <= ratelimit.MaxCharges {
		return nil
	}
	changed := t.changes(after, before)
	if !changed.all && len(changed.plans)+len(changed.tenants) == 0 {
		return nil
	}
	t.prepare()
	for _, plan := range t.planNames() {
		if fault := t.tryPlan(plan, changed); fault != nil {
			return []catalog.RuleFault{*fault}
		}
	}
	return nil
}

// trial looks for a request to which too many rules apply.
type trial struct {
	rules  *compiledRules
	most   int // no request of a tenant that no rule names, on a plan that no rule names, has more
	widest int // no tenant has more general rules of its own

	common  []*planRule     // general rules of all tenants
	samples map[sample]bool // of all rules
}

// changes are the requests to which a changed rule may apply.
type changes struct {
	all     bool
	plans   map[string]bool
	tenants map[string]bool
}

func newTrial(c *compiledRules) *trial {
	return &trial{rules: c, most: c.crowd.most(), widest: c.crowd.tenants.Most(), samples: map[sample]bool{}}
}

// widestPlan returns the number of rules that a plan has of its own, at most.
func (t *trial) widestPlan() int {
	widest := 0
	for _, set := range t.rules.plans {
		widest = max(widest, len(set.own.own))
	}
	return widest
}

// prepare looks at all rules.
func (t *trial) prepare() {
	i := 0
	for p := range t.rules.general.general.each() {
		cowmap.Yield(i)
		i++
		if p.compiled.Kind == rule.KindConcurrency {
			continue
		}
		t.samples[sample{p.route.Sample(), p.method}] = true
		if p.tenant == "" {
			t.common = append(t.common, p)
		}
	}
	slices.SortFunc(t.common, compareOrder)
	for _, set := range t.rules.plans {
		for _, p := range set.own.own {
			if p.compiled.Kind != rule.KindConcurrency {
				t.samples[sample{p.route.Sample(), p.method}] = true
			}
		}
	}
}

// of returns the general rules of a tenant; empty: those of all tenants.
func (t *trial) of(tenant string) []*planRule {
	if tenant == "" {
		return t.common
	}
	return t.rules.general.general.rates.byTenant.Get(tenant)
}

// countChains returns the number of chains that rules belong to. A rule in no chain is one by itself.
func countChains(set *ruleSet, rules []*planRule) int {
	roots := make(map[*link]bool, min(len(rules), 2*ratelimit.MaxCharges))
	for _, p := range rules {
		roots[set.rootOf(p)] = true
	}
	return len(roots)
}

// changes returns the requests that may have more rules than before.
func (t *trial) changes(after, before *catalog.Snapshot) changes {
	known, _ := before.Compiled.(*compiledRules)
	ch := changes{all: known == nil, plans: map[string]bool{}, tenants: map[string]bool{}}
	if ch.all {
		return ch
	}
	put, plans := after.Changes(before)
	gone, gonePlans := before.Changes(after)
	for _, plan := range slices.Concat(plans, gonePlans) {
		ch.plans[plan.ID] = true
		if set := t.rules.plans[plan.ID]; set != nil {
			ch.all = ch.all || slices.ContainsFunc(set.own.own, known.isNewRoute)
		}
	}
	for _, l := range slices.Concat(put, gone) {
		t.note(&ch, known, l.Rule)
	}
	return ch
}

// note notes what the change of a general rule may give more rules.
func (t *trial) note(ch *changes, known *compiledRules, id string) {
	index := t.rules.general.general
	now, old := index.byID.Get(id), known.general.general.byID.Get(id)
	if now != nil && old != nil && now.reachesAs(old.limitRule) {
		return
	}
	for plan, set := range t.rules.plans { // chains in which plans' own rules replace it
		if set.own.replacing.Get(id) > 0 {
			ch.plans[plan] = true
		}
	}
	switch {
	case index.replacing.Get(id) > 0: // the chains of others may have changed
		ch.all = true
	case now == nil || now.compiled.Kind == rule.KindConcurrency:
	case known.isNewRoute(now):
		ch.all = true
	case now.tenant != "":
		ch.tenants[now.tenant] = true
	case now.plan != "":
		ch.plans[now.plan] = true
	default:
		ch.all = true
	}
}

// isNewRoute reports whether no rule of c has the sample of p, which then was not tried yet.
func (c *compiledRules) isNewRoute(p *planRule) bool {
	return c.crowd.samples.Get(p.route.Sample()).rules == 0
}

// planNames returns the plans to try, in order. The first stands for plans that no rule names.
func (t *trial) planNames() []string {
	names := map[string]bool{"": true}
	for p := range t.rules.general.general.each() {
		if p.plan != "" {
			names[p.plan] = true
		}
	}
	for name := range t.rules.plans {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// tryPlan tries the tenants of a plan.
func (t *trial) tryPlan(plan string, changed changes) *catalog.RuleFault {
	set := t.rules.general
	if own := t.rules.plans[plan]; own != nil {
		set = own
	}
	ownBy := map[string][]*planRule{}
	more := t.most + t.rules.crowd.plans.Get(plan)
	if set.own != nil {
		for _, p := range set.own.own {
			if p.compiled.Kind != rule.KindConcurrency {
				ownBy[p.tenant] = append(ownBy[p.tenant], p)
			}
		}
		more += len(set.own.own) // a rule of the plan is one more, and may divide a chain
	}
	if more+t.widest <= ratelimit.MaxCharges {
		return nil
	}
	tenants := changed.tenants
	if changed.all || changed.plans[plan] {
		tenants = map[string]bool{"": true}
		for tenant := range t.rules.general.general.rates.byTenant.All() {
			tenants[tenant] = true
		}
		for tenant := range ownBy {
			tenants[tenant] = true
		}
	}
	tried := map[string]bool{} // what tenants with the same kind of rules have
	for _, tenant := range slices.Sorted(maps.Keys(tenants)) {
		if tenant != "" && more+len(t.of(tenant)) <= ratelimit.MaxCharges || tenant == "" && more <= ratelimit.MaxCharges {
			continue
		}
		special := slices.Concat(ownBy[tenant], t.of(tenant))
		if tenant != "" {
			form := formOf(set, special, plan)
			if tried[form] {
				continue
			}
			tried[form] = true
		}
		if fault := t.tryTenant(set, plan, tenant, ownBy); fault != nil {
			return fault
		}
	}
	return nil
}

// formOf returns a text that two tenants share only if the same number of rules applies to their requests. rules are those of one tenant.
func formOf(set *ruleSet, rules []*planRule, plan string) string {
	var parts []string
	shared := sharedChains(set, rules)
	for _, p := range rules {
		if p.plan != "" && p.plan != plan || set.rule(p.compiled.ID) != p {
			continue
		}
		root := set.rootOf(p)
		name := root.id
		if i := slices.IndexFunc(rules, func(o *planRule) bool { return o.link == root }); i >= 0 && !shared[root] { // a chain of this tenant alone
			name = fmt.Sprint("#", i)
		}
		parts = append(parts, name+" "+p.meter+" "+p.method+" "+p.route.String())
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), "\n")
}

// sharedChains returns the roots of the chains of rules that others belong to as well.
func sharedChains(set *ruleSet, rules []*planRule) map[*link]bool {
	replacing, shared := map[string]int{}, map[*link]bool{}
	for _, p := range rules {
		replacing[p.replaces]++
	}
	for _, p := range rules {
		all := set.general.replacing.Get(p.compiled.ID)
		if set.own != nil {
			all += set.own.replacing.Get(p.compiled.ID)
		}
		if all > replacing[p.compiled.ID] {
			shared[set.rootOf(p)] = true
		}
	}
	return shared
}

// sample is a route and a method that some rule names.
type sample struct{ route, method string }

func (s sample) compare(o sample) int {
	return cmp.Or(strings.Compare(s.route, o.route), strings.Compare(s.method, o.method))
}

// request returns a request from a gateway: there more spellings of a route are equal than elsewhere.
func (s sample) request() *Request {
	return &Request{Subject: "subject", Route: s.route, Method: s.method, Forwarded: " ", IP: netip.AddrFrom4([4]byte{192, 0, 2, 1})}
}

// tryTenant tries the requests of a tenant: every meter and route that its rules name.
func (t *trial) tryTenant(set *ruleSet, plan, tenant string, ownBy map[string][]*planRule) *catalog.RuleFault {
	lists := [][]*planRule{ownBy[""], t.common}
	if tenant != "" {
		lists = append(lists, ownBy[tenant], t.of(tenant))
	}
	var all, routeless []*planRule
	meters := map[string]bool{"": true}
	for _, p := range slices.Concat(lists...) {
		if p.plan != "" && p.plan != plan || set.rule(p.compiled.ID) != p {
			continue
		}
		all = append(all, p)
		meters[p.meter] = true
		if (p.route.Pattern == route.Pattern{}) || p.tenant != "" {
			routeless = append(routeless, p) // what find does not have by route
		}
	}
	if countChains(set, all) <= ratelimit.MaxCharges {
		return nil
	}
	base, byMeter, ofMeter := 0, map[string]int{}, 0 // how many apply whatever the route is
	for _, p := range routeless {
		if p.meter == "" {
			base++
			continue
		}
		byMeter[p.meter]++
		ofMeter = max(ofMeter, byMeter[p.meter])
	}
	names := slices.Sorted(maps.Keys(meters))
	var list []*planRule
	for _, sample := range slices.SortedFunc(maps.Keys(t.samples), sample.compare) {
		req := sample.request()
		list = set.general.rates.byRoute(list[:0], req)
		if set.own != nil {
			list = set.own.rates.byRoute(list, req)
		}
		if base+ofMeter+len(list) <= ratelimit.MaxCharges {
			continue
		}
		for _, meter := range names {
			if base+byMeter[meter]+len(list) <= ratelimit.MaxCharges {
				continue
			}
			req.Tenant, req.Items = tenant, []ledger.Item{{Meter: meter, Amount: 1}}
			if applied := set.apply(nil, req, plan); len(applied) > ratelimit.MaxCharges {
				return tooMany(req, plan, applied)
			}
		}
	}
	return nil
}

func tooMany(req *Request, plan string, applied []*planRule) *catalog.RuleFault {
	about := []string{"route " + req.Route}
	for _, property := range [][2]string{{"meter", req.Items[0].Meter}, {"tenant", req.Tenant}, {"plan", plan}} {
		if property[1] != "" {
			about = append(about, property[0]+" "+property[1])
		}
	}
	last, names := applied[len(applied)-1], namesOf(applied)
	if more := len(names) - namedMax; more > 0 {
		names = append(names[:namedMax], fmt.Sprintf("and %d more", more))
	}
	fault := &catalog.RuleFault{Rule: last.compiled.ID, Fault: body.Fault{Field: "match", Message: fmt.Sprintf(
		"would let %d limits apply to one request (%s), and at most %d can be decided together: narrow some, or make some replace others. They are %s",
		len(applied), strings.Join(about, ", "), ratelimit.MaxCharges, strings.Join(names, ", "))}}
	if last.own {
		fault.Plan = plan
	}
	return fault
}
