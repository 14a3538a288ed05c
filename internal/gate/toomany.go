package gate

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/route"
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
// What no rule that differs from before applies to is not tried again. Whether a request has too many rules is a matter of chains: of each
// chain one rule applies.
func CheckRules(after, before *catalog.Snapshot) []catalog.RuleFault {
	known, _ := before.Compiled.(*compiledRules)
	c := compileRules(after, known)
	t := newTrial(c)
	changed := t.changes(after, before)
	for _, plan := range t.planNames(c) {
		if fault := t.tryPlan(plan, changed); fault != nil {
			return []catalog.RuleFault{*fault}
		}
	}
	return nil
}

// trial looks for a request to which too many rules apply.
type trial struct {
	rules  *compiledRules
	common []*planRule    // general rules of all tenants
	ofPlan map[string]int // the number of those for a plan
	most   int            // no request of a tenant that no rule names, on a plan that no rule names, has more
	widest int            // no tenant has more general rules of its own
}

// changes are the requests to which a changed rule may apply.
type changes struct {
	all     bool
	plans   map[string]bool
	tenants map[string]bool
}

func newTrial(c *compiledRules) *trial {
	t := &trial{rules: c, ofPlan: map[string]int{}}
	var ofAll []*planRule
	for _, p := range c.general.general.all {
		switch {
		case p.tenant != "" || p.compiled.Kind == rule.KindConcurrency:
			continue
		case p.plan != "":
			t.ofPlan[p.plan]++
		default:
			ofAll = append(ofAll, p)
		}
		t.common = append(t.common, p)
	}
	t.most = mostOf(c.general, ofAll)
	for _, rules := range c.general.general.rates.byTenant {
		t.widest = max(t.widest, len(rules))
	}
	return t
}

// of returns the general rules of a tenant; empty: those of all tenants.
func (t *trial) of(tenant string) []*planRule {
	if tenant == "" {
		return t.common
	}
	return t.rules.general.general.rates.byTenant[tenant]
}

// mostOf returns a number that the applicable rules among rules, which name neither tenant nor plan, do not exceed.
func mostOf(set *ruleSet, rules []*planRule) int {
	anywhere, byMeter, ofMeter, ofRoute := 0, map[string]int{}, 0, 0
	var list []*planRule
	for i, p := range rules {
		yield(i)
		switch {
		case p.route.Pattern != route.Pattern{}:
			list = set.general.rates.byRoute(list[:0], sample{route: p.route.Sample()}.request())
			ofRoute = max(ofRoute, len(list))
		case p.meter != "":
			byMeter[p.meter]++
			ofMeter = max(ofMeter, byMeter[p.meter])
		default:
			anywhere++
		}
	}
	if most := anywhere + ofMeter + ofRoute; most <= ratelimit.MaxCharges {
		return most
	}
	return min(anywhere+ofMeter+ofRoute, countChains(set, rules))
}

// countChains returns the number of chains that rules belong to. A rule in no chain is one by itself.
func countChains(set *ruleSet, rules []*planRule) int {
	roots := make(map[*planRule]bool, min(len(rules), 2*ratelimit.MaxCharges))
	for _, p := range rules {
		roots[set.rootOf(p)] = true
	}
	return len(roots)
}

func (t *trial) changes(after, before *catalog.Snapshot) changes {
	ch := changes{all: before.Compiled == nil, plans: map[string]bool{}, tenants: map[string]bool{}}
	limits, plans := after.Changes(before)
	for _, p := range plans {
		ch.plans[p.ID] = true
	}
	replacedBy := map[string][]string{} // plans, by the rules that their own ones replace
	for plan, set := range t.rules.plans {
		for id := range set.own.replacing {
			replacedBy[id] = append(replacedBy[id], plan)
		}
	}
	for i, l := range before.Limits {
		yield(i)
		if t.rules.general.general.byID[l.Rule] == nil { // deleted: chains that ended in it are divided
			limits = append(limits, l)
		}
	}
	for _, l := range limits {
		for _, plan := range replacedBy[l.Rule] {
			ch.plans[plan] = true
		}
		switch {
		case len(t.rules.general.general.replacing[l.Rule]) > 0: // the chains of others may have changed
			ch.all = true
		case l.Kind == catalog.KindConcurrency:
		case l.Match.Tenant != "":
			ch.tenants[l.Match.Tenant] = true
		case l.Match.Plan != "":
			ch.plans[l.Match.Plan] = true
		default:
			ch.all = true
		}
	}
	return ch
}

// planNames returns the plans to try, in order. The first stands for plans that no rule names.
func (t *trial) planNames(c *compiledRules) []string {
	names := map[string]bool{"": true}
	for _, p := range c.general.general.all {
		if p.plan != "" && !names[p.plan] {
			names[p.plan] = true
		}
	}
	for name := range c.plans {
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
	more := t.most + t.ofPlan[plan]
	if set.own != nil {
		for _, p := range set.own.all {
			if p.compiled.Kind != rule.KindConcurrency {
				ownBy[p.tenant] = append(ownBy[p.tenant], p)
			}
		}
		more += len(set.own.all) // a rule of the plan is one more, and may divide a chain
	}
	if more+t.widest <= ratelimit.MaxCharges {
		return nil
	}
	tenants := changed.tenants
	if changed.all || changed.plans[plan] {
		tenants = map[string]bool{"": true}
		for _, m := range []map[string][]*planRule{t.rules.general.general.rates.byTenant, ownBy} {
			for tenant := range m {
				tenants[tenant] = true
			}
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
	for _, p := range rules {
		if p.plan != "" && p.plan != plan || set.rule(p.compiled.ID) != p {
			continue
		}
		root := set.rootOf(p)
		name := root.compiled.ID
		if i := slices.Index(rules, root); i >= 0 { // a chain of this tenant alone
			name = fmt.Sprint("#", i)
		}
		parts = append(parts, name+" "+p.meter+" "+p.route.String())
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), "\n")
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
	samples, meters := map[sample]bool{}, map[string]bool{"": true}
	for _, p := range slices.Concat(lists...) {
		if p.plan != "" && p.plan != plan || set.rule(p.compiled.ID) != p {
			continue
		}
		all = append(all, p)
		meters[p.meter] = true
		samples[sample{p.route.Sample(), p.method}] = true
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
	for _, sample := range slices.SortedFunc(maps.Keys(samples), sample.compare) {
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
