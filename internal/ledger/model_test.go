package ledger

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/period"
)

// The second implementation of the ledger's rules: slow, eager and written from the documents. It keeps whole grants, works
// events off one at a time by looking for the earliest, copies everything before an operation, and shares no code with the
// state machine. All its periods are hours from the tenant's anchor, or have no end.

type modelTerms struct {
	amount           int64
	once             bool
	rollMin, rollMax *int64
	overage          bool
	overageCap       *int64
	preserve         bool // overage is still owed after the period's end
	overflow         string
	price            int64
	perSubject       *int64
}

type modelVersion struct {
	at     time.Time
	meters map[string]modelTerms
}

type modelChange struct {
	at           time.Time
	plan         string
	now, prorate bool
}

type modelGrant struct {
	id, source         string
	amount, left, held int64
	priority           int32
	from, until        time.Time
	state              string // pending active gone
}

type modelReserve struct {
	hold          string
	line          int
	item          int
	subject       bool
	balance       key
	grant, source string
	price         int64
	left          int64
	until         time.Time
}

type modelBalance struct {
	start, end                                                   time.Time
	plan                                                         string // '' = not in the plan
	terms                                                        modelTerms
	opening, granted, refunded, used, expired, adjusted, overage int64
	owed                                                         int64     // of overage: what earlier periods left
	settled                                                      int64     // what this period's allowance has paid of that
	forgiven                                                     time.Time // overage of periods before then is nobody's debt
	entries                                                      int
	grants                                                       []modelGrant
	closed                                                       []string // the accounts of its closed periods
}

type modelHold struct {
	state    string
	meters   []string
	captured []int64
	subject  string
	until    time.Time
}

// modelPart is a part of a debit or capture that can be refunded.
type modelPart struct {
	item          int
	meter         string // of the item
	balance       key
	grant, source string
	price         int64
	amount, back  int64
	overage       bool
	start         time.Time // of the period it counts in
}

type modelOp struct {
	body, answer string
	parts        []modelPart
	refundable   bool
	items        int // of a debit
}

type model struct {
	anchor    time.Time
	now       time.Time
	suspended bool
	plans     map[string][]modelVersion
	changes   []modelChange
	balances  map[key]*modelBalance
	reserves  []modelReserve
	holds     map[string]*modelHold
	ops       map[string]*modelOp
}

func (m *model) clone() *model {
	c := *m
	c.balances, c.holds = map[key]*modelBalance{}, map[string]*modelHold{}
	c.ops = maps.Clone(m.ops) // what an operation drew is copied when it is refunded
	for k, b := range m.balances {
		copied := *b
		copied.grants, copied.closed = slices.Clone(b.grants), slices.Clip(b.closed)
		c.balances[k] = &copied
	}
	for id, h := range m.holds {
		copied := *h
		copied.captured = slices.Clone(h.captured)
		c.holds[id] = &copied
	}
	c.reserves = slices.Clone(m.reserves)
	return &c
}

// termsAt returns what holds of k at t: the plan (” = it has no such meter) and its terms.
func (m *model) termsAt(k key, t time.Time) (string, modelTerms) {
	change := m.changes[0]
	for _, c := range m.changes {
		if !c.at.After(t) {
			change = c
		}
	}
	versions := m.plans[change.plan]
	version := versions[0]
	for _, v := range versions {
		if !v.at.After(t) {
			version = v
		}
	}
	terms, ok := version.meters[k.Meter]
	if !ok || k.Subject != "" && terms.perSubject == nil {
		return "", modelTerms{}
	}
	if k.Subject != "" {
		terms = modelTerms{amount: *terms.perSubject, once: terms.once}
	}
	return change.plan, terms
}

// instants lists when terms may change.
func (m *model) instants() []time.Time {
	var out []time.Time
	for _, c := range m.changes {
		out = append(out, c.at)
	}
	for _, versions := range m.plans {
		for _, v := range versions {
			out = append(out, v.at)
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

func (m *model) hour(t time.Time) (time.Time, time.Time) {
	start := m.anchor.Add(t.Sub(m.anchor).Truncate(time.Hour))
	if start.After(t) {
		start = start.Add(-time.Hour)
	}
	return start, start.Add(time.Hour)
}

// touch returns the balance of k, with everything due worked off.
func (m *model) touch(k key) *modelBalance {
	b := m.balances[k]
	if b == nil {
		b = &modelBalance{}
		m.balances[k] = b
		born := m.changes[0].at
		plan, terms := m.termsAt(k, born)
		start, _ := m.hour(born)
		if plan == "" || terms.once {
			start = born
		}
		m.open(k, b, born, start)
	}
	m.catchUp(k, b)
	return b
}

func (m *model) open(k key, b *modelBalance, due, start time.Time) {
	b.plan, b.terms = m.termsAt(k, due)
	b.start, b.end = start, period.Forever
	_, hourEnd := m.hour(due)
	hourStart := hourEnd.Add(-time.Hour)
	amount := b.terms.amount
	if b.plan != "" && !b.terms.once {
		b.end = hourEnd
		for _, c := range m.changes {
			if c.at.Equal(due) && c.now && c.prorate && due.After(hourStart) {
				amount = amount * int64(hourEnd.Sub(due)/time.Microsecond) / int64(time.Hour/time.Microsecond)
			}
		}
	}
	if b.plan != "" && amount > 0 {
		b.grants = append(b.grants, modelGrant{
			id: "allowance:" + start.Format("2006-01-02T15:04:05.999999Z"), source: "allowance", amount: amount, left: amount,
			priority: 10, from: start, until: b.end, state: "active",
		})
		b.granted += amount
		b.entries++
	}
}

// cut returns the end that new terms set to the open period.
func (m *model) cut(k key, b *modelBalance) time.Time {
	end := b.end
	consider := func(t time.Time) {
		if t.After(b.start) && t.Before(end) {
			end = t
		}
	}
	for i, c := range m.changes {
		if plan, terms := m.termsAt(k, c.at); i > 0 && c.now && (plan != b.plan || !reflect.DeepEqual(terms, b.terms)) {
			consider(c.at)
		}
	}
	if b.end.Equal(period.Forever) {
		for _, t := range m.instants() {
			plan, terms := m.termsAt(k, t)
			if plan != b.plan || plan != "" && b.plan != "" && !terms.once {
				consider(t)
			}
		}
	}
	return end
}

func (m *model) catchUp(k key, b *modelBalance) {
	for {
		end := m.cut(k, b)
		due := end
		for _, r := range m.reserves {
			if r.balance == k && r.left > 0 && r.until.Before(due) {
				due = r.until
			}
		}
		for _, g := range b.grants {
			if g.state == "active" && g.until.Before(due) {
				due = g.until
			}
			if g.state == "pending" && g.from.Before(due) {
				due = g.from
			}
		}
		if due.After(m.now) {
			return
		}
		b.end = end
		m.event(k, b, due)
	}
}

func (b *modelBalance) grant(id string) *modelGrant {
	for i := range b.grants {
		if b.grants[i].id == id {
			return &b.grants[i]
		}
	}
	return nil
}

func (m *model) event(k key, b *modelBalance, due time.Time) {
	for i := range m.reserves {
		if r := &m.reserves[i]; r.balance == k && r.left > 0 && !r.until.After(due) {
			m.giveBack(r, r.left, "", due)
		}
	}
	closes := !b.end.After(due)
	carry, moved := int64(0), int64(0)
	plans := func(g *modelGrant) bool {
		return (g.source == "allowance" || g.source == "rollover") && g.until.Before(period.Forever)
	}
	if closes && b.plan != "" && k.Subject == "" && (b.terms.rollMin != nil || b.terms.rollMax != nil) {
		left := int64(0)
		for i := range b.grants {
			if g := &b.grants[i]; g.state == "active" && plans(g) {
				left += g.left
			}
		}
		carry = left
		if b.terms.rollMin != nil && carry < *b.terms.rollMin {
			carry = *b.terms.rollMin
		}
		if b.terms.rollMax != nil && carry > *b.terms.rollMax {
			carry = *b.terms.rollMax
		}
		moved = min(carry, left)
	}
	lost := int64(0)
	for i := range b.grants {
		g := &b.grants[i]
		if g.state != "active" || g.until.After(due) && !(closes && plans(g)) {
			continue
		}
		if closes && plans(g) && carry > 0 {
			lost += g.left // what is carried is taken off the sum below
		} else if g.left > 0 {
			b.expired += g.left
			b.entries++
		}
		g.left, g.state = 0, "gone"
	}
	if closes && carry > 0 {
		b.expired += lost - moved
		b.entries++
	}
	if closes {
		at, owing, forgiven := b.end, int64(0), b.forgiven
		switch {
		case b.overage > 0 && b.plan != "" && b.terms.preserve:
			owing = b.overage
		case b.overage > 0:
			forgiven = at
			b.entries++
		}
		opening := b.opening + b.granted + b.refunded - b.used - b.expired + b.adjusted
		closed := append(slices.Clip(b.closed), accountText(b.plan, b.start, at, [...]int64{
			b.opening, b.granted, b.refunded, b.used, b.expired, b.adjusted, b.overage, m.held(k), opening,
		}))
		*b = modelBalance{opening: opening, grants: b.grants, entries: b.entries, closed: closed, forgiven: forgiven}
		before := len(b.grants)
		m.open(k, b, at, at)
		if owing > 0 {
			b.overage, b.owed = owing, owing
			b.entries++
		}
		if owing > 0 && len(b.grants) > before {
			g := &b.grants[before]
			b.settled = min(owing, g.left)
			g.left -= b.settled
			b.used += b.settled
			b.overage -= b.settled
			b.owed -= b.settled
			b.entries++
		}
		if carry > 0 {
			b.grants = append(b.grants, modelGrant{
				id: "rollover:" + at.Format("2006-01-02T15:04:05.999999Z"), source: "rollover", amount: carry, left: carry, priority: 10,
				from: at, until: b.end, state: "active",
			})
			b.granted += carry - moved
		}
	}
	for i := range b.grants {
		if g := &b.grants[i]; g.state == "pending" && !g.from.After(due) {
			g.state, g.left = "active", g.amount
			b.granted += g.amount
			b.entries++
		}
	}
}

// accountText is a closed period's account as both implementations must give it.
func accountText(plan string, start, end time.Time, n [9]int64) string {
	return fmt.Sprintf("%s %s-%s opening %d granted %d refunded %d used %d expired %d adjusted %d overage %d held %d closing %d",
		plan, start.Format(time.RFC3339Nano), end.Format(time.RFC3339Nano), n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8])
}

func (b *modelBalance) remaining() int64 {
	sum := int64(0)
	for _, g := range b.grants {
		if g.state == "active" {
			sum += g.left
		}
	}
	return sum
}

func (m *model) held(k key) int64 {
	sum := int64(0)
	for _, r := range m.reserves {
		if r.balance == k {
			sum += r.left
		}
	}
	return sum
}

// next picks the grant that burns first.
func (b *modelBalance) next() *modelGrant {
	var best *modelGrant
	for i := range b.grants {
		g := &b.grants[i]
		if g.state != "active" || g.left == 0 {
			continue
		}
		if best == nil || g.priority < best.priority || g.priority == best.priority && (g.until.Before(best.until) ||
			g.until.Equal(best.until) && (g.from.Before(best.from) || g.from.Equal(best.from) && g.id < best.id)) {
			best = g
		}
	}
	return best
}

// draw takes n off the grants that burn first.
func (b *modelBalance) draw(n int64, each func(g *modelGrant, part int64)) {
	for n > 0 {
		g := b.next()
		part := min(n, g.left)
		g.left -= part
		n -= part
		each(g, part)
	}
}

// giveBack returns reserved units to their grant, or where policy says.
func (m *model) giveBack(r *modelReserve, n int64, policy ReturnPolicy, now time.Time) {
	b := m.balances[r.balance]
	r.left -= n
	g := b.grant(r.grant)
	g.held -= n
	b.entries++
	m.restore(b, g, n, policy, now, derivedID("regrant-", fmt.Sprint("hold/", r.hold, "/", r.line, "/", n)))
}

// restore puts units back on g if it still lives, and reports how many were forfeited.
func (m *model) restore(b *modelBalance, g *modelGrant, n int64, policy ReturnPolicy, now time.Time, id string) (forfeited int64) {
	switch {
	case g.state == "active": // also at the very end of g: a hold ends before its grant
		g.left += n
	case policy == ReturnRegrant:
		until := period.Forever
		if g.source == "allowance" || g.source == "rollover" {
			until = b.end
		}
		b.grants = append(b.grants, modelGrant{id: id, source: "refund", amount: n, left: n, priority: g.priority, from: now, until: until, state: "active"})
	default:
		b.expired += n
		return n
	}
	return 0
}

// describe is a balance as both implementations must show it.
func (m *model) describe(k key) string {
	b := m.touch(k)
	var left []string
	for _, g := range b.grants {
		if g.state == "active" && g.left > 0 {
			left = append(left, fmt.Sprintf("%s:%d:%d", g.source, g.left, g.held))
		}
	}
	slices.Sort(left)
	return fmt.Sprintf("%s %s-%s opening %d granted %d refunded %d used %d expired %d adjusted %d held %d overage %d remaining %d %s",
		b.plan, b.start.Format(time.RFC3339Nano), b.end.Format(time.RFC3339Nano), b.opening, b.granted, b.refunded, b.used, b.expired,
		b.adjusted, m.held(k), b.overage, b.remaining(), strings.Join(left, " "))
}

func describeBook(b *book) string {
	var left []string
	for _, g := range b.grants {
		if g.Status == GrantActive && g.Remaining > 0 {
			left = append(left, fmt.Sprintf("%s:%d:%d", g.Source, g.Remaining, g.Held))
		}
	}
	slices.Sort(left)
	return fmt.Sprintf("%s %s-%s opening %d granted %d refunded %d used %d expired %d adjusted %d held %d overage %d remaining %d %s",
		b.plan, b.start.Format(time.RFC3339Nano), b.end.Format(time.RFC3339Nano), b.opening, b.granted, b.refunded, b.used, b.expired,
		b.adjusted, b.held, b.overage, b.remaining(), strings.Join(left, " "))
}

// keys lists the balances in order.
func (m *model) keys() []key { return slices.SortedFunc(maps.Keys(m.balances), compareKeys) }
