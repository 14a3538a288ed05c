package ledger

import (
	"slices"

	"github.com/jackc/pgx/v5"
)

// loading is what queueLoad has asked for; it is filled when the batch is sent.
type loading struct {
	grantKeys, termKeys []key
	grants, named       map[key][]*grant
	holds               map[key][]*holdLine
	reader              *termsReader
}

func (l *Ledger) queueLoad(b *pgx.Batch, grants, terms []key, named []grantKey) *loading {
	more := &loading{
		grantKeys: grants, termKeys: terms, grants: map[key][]*grant{}, named: map[key][]*grant{},
		holds: map[key][]*holdLine{}, reader: newTermsReader(),
	}
	if len(grants) > 0 {
		c := columnsOf(grants)
		b.Queue(l.queries["OpenGrants"], c.tenants, c.meters, c.subjects).Query(scanGrants(more.grants))
		b.Queue(l.queries["OpenHoldLines"], c.tenants, c.meters, c.subjects).Query(scanHoldLines(more.holds))
	}
	if len(named) > 0 {
		keys, ids := make([]key, len(named)), make([]string, len(named))
		for i, n := range named {
			keys[i], ids[i] = n.key, n.id
		}
		c := columnsOf(keys)
		b.Queue(l.queries["NamedGrants"], c.tenants, c.meters, c.subjects, ids).Query(scanGrants(more.named))
	}
	if len(terms) > 0 {
		tenants, meters := distinct(terms)
		b.Queue(l.queries["TenantTerms"], tenants).Query(more.reader.scanHistory)
		b.Queue(l.queries["PlanVersions"], tenants, meters).Query(more.reader.scanPlans)
	}
	return more
}

// attach hands the books what was read, and the cache the terms of their plans.
func (more *loading) attach(books map[key]*book, cache *termsCache) {
	for _, k := range more.grantKeys {
		grants := more.grants[k]
		for _, g := range more.named[k] {
			if !slices.ContainsFunc(grants, func(o *grant) bool { return o.ID == g.ID }) {
				grants = append(grants, g)
			}
		}
		books[k].attach(grants, more.holds[k])
	}
	for _, k := range more.termKeys {
		b := books[k]
		b.timeline = more.reader.timeline(k)
		if b.plan != "" {
			if b.terms = allowanceOf(k, more.reader.plans, b.plan, b.planVersion); b.terms != nil {
				cache.put(k, b.plan, b.planVersion, b.terms)
			}
		}
	}
}

func distinct(keys []key) (tenants, meters []string) {
	for _, k := range keys {
		tenants, meters = append(tenants, k.Tenant), append(meters, k.Meter)
	}
	slices.Sort(tenants)
	slices.Sort(meters)
	return slices.Compact(tenants), slices.Compact(meters)
}
