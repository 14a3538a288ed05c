package gate

import (
	"cmp"
	"slices"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// listSpace is how many rules that apply to a request are listed without an allocation: those that may, and some that are
// replaced.
const listSpace = 2 * ratelimit.MaxCharges

// ruleSet is the rules for the tenants of one plan, found by what requests name: only rules that could apply are looked at,
// however many there are. It is immutable.
type ruleSet struct {
	byID map[string]*member

	// Each rule is in one of these: the first whose property it has.
	byTenant map[string][]*member
	byRoute  map[string][]*member // without wildcards
	byPrefix map[string][]*member // the routes' text before the first wildcard, which is not empty
	byMeter  map[string][]*member
	byPlan   map[string][]*member
	others   []*member

	prefixes []int // the lengths in byPrefix
	lineUps  bool  // some rules stand in for others
}

// member is a rule among those of a plan's tenants.
type member struct {
	*limitRule

	own   bool    // the plan's
	order int     // in answers
	over  *member // the rule it stands in for, nil if there is none
	root  *member // the last of that row, nil if the rule is in no row
}

// newRuleSet makes the set of a plan's own rules and those general ones whose ids it does not use itself: a plan's rule takes
// the place of the general one of its name. Rules of kind concurrency can be found by their ids and apply to no request:
// leases decide them.
func newRuleSet(own, general []*limitRule) *ruleSet {
	s := &ruleSet{
		byID:     make(map[string]*member, len(own)+len(general)),
		byTenant: map[string][]*member{}, byRoute: map[string][]*member{}, byPrefix: map[string][]*member{}, byMeter: map[string][]*member{},
		byPlan: map[string][]*member{},
	}
	var members []*member
	for i, rules := range [][]*limitRule{own, general} {
		for _, r := range rules {
			if s.byID[r.compiled.ID] == nil {
				m := &member{limitRule: r, own: i == 0, order: len(members)}
				s.byID[r.compiled.ID] = m
				members = append(members, m)
			}
		}
	}
	s.lineUp(members)
	for _, m := range members {
		if m.compiled.Kind.String() != catalog.KindConcurrency {
			s.index(m)
		}
	}
	return s
}

// lineUp finds out who stands in for whom. A name of nothing is no reference, and a circle is cut: the catalogue keeps both
// out, but may have been written by hand.
func (s *ruleSet) lineUp(members []*member) {
	for _, m := range members {
		target := s.byID[m.replaces]
		for at := target; at != nil; at = at.over {
			if at == m {
				target = nil
				break
			}
		}
		m.over = target
	}
	for _, m := range members {
		if m.over == nil {
			continue
		}
		root := m.over
		for root.over != nil {
			root = root.over
		}
		m.root, root.root, s.lineUps = root, root, true
	}
}

func (s *ruleSet) index(m *member) {
	literal := m.route.Literal()
	switch {
	case m.tenant != "":
		s.byTenant[m.tenant] = append(s.byTenant[m.tenant], m)
	case m.route.Exact():
		s.byRoute[literal] = append(s.byRoute[literal], m)
	case literal != "":
		s.byPrefix[literal] = append(s.byPrefix[literal], m)
		if !slices.Contains(s.prefixes, len(literal)) {
			s.prefixes = append(s.prefixes, len(literal))
		}
	case m.meter != "":
		s.byMeter[m.meter] = append(s.byMeter[m.meter], m)
	case m.plan != "":
		s.byPlan[m.plan] = append(s.byPlan[m.plan], m)
	default:
		s.others = append(s.others, m)
	}
}

// apply lists the rules that decide req, made by a tenant of plan, in their order. list is where to, and empty.
func (s *ruleSet) apply(list []*member, req *Request, plan string) []*member {
	list = appendApplicable(list, s.others, req, plan)
	if len(s.byTenant) > 0 {
		list = appendApplicable(list, s.byTenant[req.Tenant], req, plan)
	}
	if req.Route != "" {
		if len(s.byRoute) > 0 {
			list = appendApplicable(list, s.byRoute[req.Route], req, plan)
		}
		for _, n := range s.prefixes {
			if n <= len(req.Route) {
				list = appendApplicable(list, s.byPrefix[req.Route[:n]], req, plan)
			}
		}
	}
	if len(s.byMeter) > 0 {
		for i := range req.Items {
			list = appendApplicable(list, s.byMeter[req.Items[i].Meter], req, plan)
		}
	}
	if len(s.byPlan) > 0 {
		list = appendApplicable(list, s.byPlan[plan], req, plan)
	}
	if s.lineUps {
		list = standIns(list)
	}
	slices.SortFunc(list, func(a, b *member) int { return cmp.Compare(a.order, b.order) })
	return list
}

func appendApplicable(list, candidates []*member, req *Request, plan string) []*member {
	for _, m := range candidates {
		if m.appliesTo(req, plan) {
			list = append(list, m)
		}
	}
	return list
}

// standIns leaves one rule of each row in list: not one that another one in list stands in for, directly or by way of others,
// and of those that are left the most specific. Both conditions are transitive, so it does not matter whether a rule that is
// gone already is still looked at.
func standIns(list []*member) []*member {
	list = slices.DeleteFunc(list, func(m *member) bool {
		return m.root != nil && slices.ContainsFunc(list, func(o *member) bool { return o.root == m.root && o.standsInFor(m) })
	})
	return slices.DeleteFunc(list, func(m *member) bool {
		return m.root != nil && slices.ContainsFunc(list, func(o *member) bool {
			return o.root == m.root && compareSpecificity(o, m) < 0
		})
	})
}

func (m *member) standsInFor(other *member) bool {
	for at := m.over; at != nil; at = at.over {
		if at == other {
			return true
		}
	}
	return false
}
