package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// calendar is a third implementation of balances, beside package ledger and Model. It stores only the terms and the
// requests, and computes every answer from the beginning. It divides time into periods. For every allowance and grant
// it creates a pot: an amount, and the instants between which it can be spent. It takes each debit from the pots that
// are open at its instant. Package period, which has its own tests, divides the time.
type calendar struct {
	history []ledger.TenantTerms
	plans   map[string][]ledger.PlanVersion
	grants  map[string][]calendarGrant // by meter
	debits  map[string][]calendarDebit // by meter, in the order of arrival
	answers map[string]calendarAnswer  // by key
	denied  map[string]bool            // meters with a stored denial
	arrived int
}

func (c *calendar) next() int {
	c.arrived++
	return c.arrived
}

type calendarGrant struct {
	arrived     int // order of arrivals at the same instant
	id          string
	amount      int64
	priority    int32
	from, until time.Time
}

type calendarDebit struct {
	arrived int
	at      time.Time
	amount  int64
}

type calendarAnswer struct {
	body, answer string
	at           time.Time
}

// remembered reports whether a retry at now gets the stored answer. Answers are removed by whole months, after at
// least 32 days.
func (a *calendarAnswer) remembered(now time.Time) bool {
	y, m, _ := now.Add(-32 * 24 * time.Hour).UTC().Date()
	return !a.at.Before(time.Date(y, m, 1, 0, 0, 0, 0, time.UTC))
}

// pot is an amount that can be spent between two instants.
type pot struct {
	calendarGrant
	source string // "grant", "allowance", "once" or "amend": units that a change of terms gave
	left   int64
}

func (p *pot) alive(t time.Time) bool { return !p.from.After(t) && p.until.After(t) }

// calendarPeriod is a period of a balance with its terms and sums.
type calendarPeriod struct {
	agreed     time.Time // since when the terms apply; in the first period this is later than start
	start, end time.Time
	plan       string
	version    int32
	opening    int64
	granted    int64
	amended    int64
	used       int64
	expired    int64
}

func (p *calendarPeriod) closing() int64 {
	return p.opening + p.granted + p.amended - p.used - p.expired
}

// agreed returns the tenant's terms, version of the plan and allowance of a meter at t. ok is false if the plan does
// not have the meter.
func (c *calendar) agreed(meter string, t time.Time) (row ledger.TenantTerms, v ledger.PlanVersion, a ledger.Allowance, ok bool) {
	row = c.history[0]
	for _, h := range c.history {
		if !h.Since.After(t) {
			row = h
		}
	}
	v = c.plans[row.Plan][0]
	for _, o := range c.plans[row.Plan] {
		if !o.CreatedAt.After(t) {
			v = o
		}
	}
	a, ok = v.Allowances[meter]
	if own, has := row.Overrides[meter]; has {
		a.Amount = own
	}
	return row, v, a, ok
}

// changes returns the instants at which terms may change, in order.
func (c *calendar) changes() []time.Time {
	var out []time.Time
	for _, h := range c.history {
		out = append(out, h.Since)
	}
	for _, versions := range c.plans {
		for _, v := range versions {
			if v.CreatedAt.After(c.history[0].Since) {
				out = append(out, v.CreatedAt)
			}
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// endOf returns the start and end of the period that contains t, under the terms of t.
func (c *calendar) endOf(meter string, t time.Time) (start, end time.Time) {
	row, _, a, ok := c.agreed(meter, t)
	if ok && a.Every != period.Once {
		p, err := period.Schedule{Every: a.Every, Anchor: a.Anchor, AnchorAt: row.AnchorAt, Location: row.Zone}.Containing(t)
		if err != nil {
			panic(err)
		}
		return p.Start, p.End
	}
	// A period without an interval ends when the meter gets one, or gets or loses a once-only allowance.
	for _, at := range c.changes() {
		if _, _, b, has := c.agreed(meter, at); at.After(t) && (has != ok || b.Every != a.Every) {
			return t, at
		}
	}
	return t, period.Forever
}

// course computes the periods and pots of a meter from its beginning.
type course struct {
	*calendar

	meter   string
	periods []calendarPeriod
	pots    []*pot
	taken   int             // number of debits that were taken from the pots
	draws   []calendarDebit // what they took from allowances with an interval
	gifts   map[string]bool // plans whose once-only allowance was granted
	gift    gift            // the once-only allowance of the plan in force
}

// gift is a once-only allowance that changes of its amount amend.
type gift struct {
	plan         string
	end          time.Time
	worth, short int64
	pots         []*pot
}

func (c *course) add(source, id string, amount int64, from, until time.Time) *pot {
	p := &pot{source: source, left: amount, calendarGrant: calendarGrant{id: id, amount: amount, priority: 10, from: from, until: until}}
	c.insert(p)
	return p
}

// insert adds a pot in burn order.
func (c *course) insert(p *pot) {
	at, _ := slices.BinarySearchFunc(c.pots, p, func(a, b *pot) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), a.until.Compare(b.until), a.from.Compare(b.from), strings.Compare(a.id, b.id))
	})
	c.pots = slices.Insert(c.pots, at, p)
}

// take takes the debits before an instant from the pots.
func (c *course) take(until time.Time) {
	for debits := c.debits[c.meter]; c.taken < len(debits) && debits[c.taken].at.Before(until); c.taken++ {
		d := debits[c.taken]
		rest := d.amount
		for _, p := range c.pots {
			if rest > 0 && p.left > 0 && p.alive(d.at) && p.arrived < d.arrived {
				part := min(rest, p.left)
				p.left, rest = p.left-part, rest-part
				if p.source == "allowance" {
					c.draws = append(c.draws, calendarDebit{at: d.at, amount: part})
				}
			}
		}
		if rest > 0 {
			panic(fmt.Sprintf("the pots do not hold %d of %s at %s", d.amount, c.meter, d.at))
		}
		c.periods[len(c.periods)-1].used += d.amount
	}
}

func allowancePot(at time.Time) string {
	return "allowance:" + at.UTC().Format("2006-01-02T15:04:05.999999Z")
}

// present gives the once-only allowance of a plan, which a plan gives once.
func (c *course) present(plan string, a ledger.Allowance, at time.Time) {
	c.gift = gift{plan: plan, end: period.Forever, worth: a.Amount}
	if a.Lasts > 0 {
		c.gift.end = at.Add(a.Lasts)
	}
	if a.Amount > 0 && !c.gifts[plan] {
		c.gifts[plan] = true
		c.gift.pots = []*pot{c.add("once", allowancePot(at), a.Amount, at, c.gift.end)}
	}
}

// amend changes the amount of the once-only allowance in force.
func (c *course) amend(a ledger.Allowance, at time.Time) {
	g, open := &c.gift, &c.periods[len(c.periods)-1]
	was := g.worth
	if g.worth = a.Amount; !g.end.After(at) {
		return
	}
	left := int64(0)
	for _, p := range g.pots {
		if p.alive(at) {
			left += p.left
		}
	}
	rest := left - g.short + a.Amount - was
	g.short = max(0, -rest)
	if rest > left {
		g.pots = append(g.pots, c.add("amend", allowancePot(at), rest-left, at, g.end))
		return
	}
	back := left - max(0, rest)
	open.amended -= back
	for _, p := range c.pots {
		if slices.Contains(g.pots, p) && p.alive(at) {
			part := min(back, p.left)
			p.left, back = p.left-part, back-part
		}
	}
}

// changeGift applies the tenant's changes of terms within the open period, which has a once-only allowance.
func (c *course) changeGift(open calendarPeriod, now time.Time) {
	for _, h := range c.history {
		if !h.Since.After(open.agreed) || !h.Since.Before(open.end) || h.Since.After(now) {
			continue
		}
		c.take(h.Since)
		row, v, a, _ := c.agreed(c.meter, h.Since)
		c.periods[len(c.periods)-1].plan, c.periods[len(c.periods)-1].version = row.Plan, v.Version
		if row.Plan == c.gift.plan {
			c.amend(a, h.Since)
		} else {
			c.present(row.Plan, a, h.Since)
		}
	}
}

// worth returns what the allowance of a period is worth that begins at the instant `at` and is not the first.
func (c *course) worth(a, before ledger.Allowance, at, start, end time.Time) int64 {
	if a.Every == before.Every { // a period between two boundaries has its share
		return a.Amount * int64(end.Sub(at)/time.Microsecond) / int64(end.Sub(start)/time.Microsecond)
	}
	worth := a.Amount
	for _, d := range c.draws {
		if !d.at.Before(start) {
			worth -= d.amount
		}
	}
	return max(0, worth)
}

// state returns a meter's periods and pots at now, with the effects of all debits.
func (c *calendar) state(meter string, now time.Time) ([]calendarPeriod, []*pot) {
	o := &course{calendar: c, meter: meter, gifts: map[string]bool{}}
	for _, g := range c.grants[meter] {
		o.insert(&pot{source: "grant", left: g.amount, calendarGrant: g})
	}
	var before ledger.Allowance // of the period before
	for at := c.history[0].Since; ; {
		start, end := c.endOf(meter, at)
		row, v, a, ok := c.agreed(meter, at)
		amount := a.Amount
		if !ok {
			a, amount = ledger.Allowance{}, 0
		}
		begin := start
		if len(o.periods) > 0 {
			if begin = at; ok && a.Every != period.Once {
				amount = o.worth(a, before, at, start, end)
			}
		}
		open := calendarPeriod{agreed: at, start: begin, end: end}
		if ok {
			open.plan, open.version = row.Plan, v.Version
		}
		o.periods = append(o.periods, open)
		switch {
		case ok && a.Every == period.Once:
			o.present(row.Plan, a, begin)
			o.changeGift(open, now)
		case amount > 0:
			o.add("allowance", allowancePot(begin), amount, begin, end)
		}
		if end.After(now) {
			o.take(period.Forever)
			break
		}
		o.take(end)
		at, before = end, a
	}
	o.count(now)
	return o.periods, o.pots
}

// count computes the other sums of the periods.
func (c *course) count(now time.Time) {
	of := func(t time.Time) *calendarPeriod {
		for i := range c.periods {
			if c.periods[i].end.After(t) {
				return &c.periods[i]
			}
		}
		return nil
	}
	for _, p := range c.pots {
		switch {
		case p.from.After(now):
		case p.source == "amend":
			of(p.from).amended += p.amount
		default:
			of(p.from).granted += p.amount
		}
		if !p.until.After(now) {
			// A pot that ends with a period expires in that period.
			of(p.until.Add(-time.Microsecond)).expired += p.left
			p.left = 0
		}
	}
	for i := 1; i < len(c.periods); i++ {
		c.periods[i].opening = c.periods[i-1].closing()
	}
}

func (c *calendar) remaining(meter string, now time.Time) int64 {
	periods, _ := c.state(meter, now)
	return periods[len(periods)-1].closing()
}

// ask returns the answer to a request. A repeated request gets the first answer while its key is remembered. Every
// other request gets the answer of decide. If sticky is true, denials are stored.
func (c *calendar) ask(id, body string, sticky bool, now time.Time, decide func() (answer string, done bool)) string {
	if old, known := c.answers[id]; known && old.remembered(now) {
		if old.body != body {
			return string(errcode.IdempotencyKeyReused)
		}
		return old.answer
	}
	answer, done := decide()
	denied := sticky && strings.Contains(answer, "available")
	if done || denied {
		c.answers[id] = calendarAnswer{body, answer, now}
	}
	if denied {
		c.denied[answer[strings.LastIndex(answer, " ")+1:]] = true
	}
	return answer
}

func (c *calendar) debit(d *ledger.Debit, now time.Time) (string, bool) {
	if refusal := c.refusal(d.Items, now); refusal != "" {
		return refusal, false
	}
	answer := "ok"
	for _, item := range d.Items {
		_, before := c.state(item.Meter, now)
		c.debits[item.Meter] = append(c.debits[item.Meter], calendarDebit{c.next(), now, item.Amount})
		_, after := c.state(item.Meter, now)
		var draws []string
		for i, p := range before {
			if n := p.left - after[i].left; n > 0 {
				draws = append(draws, fmt.Sprintf("%s:%d", p.id, n))
			}
		}
		answer += fmt.Sprintf(" [%s %d from %s left %d]", item.Meter, item.Amount, strings.Join(draws, " "), c.remaining(item.Meter, now))
	}
	return answer, true
}

// refusal returns why the items cannot be charged, or "" if they can. It looks at every later instant at which units may
// come.
func (c *calendar) refusal(items []ledger.Item, now time.Time) string {
	enough := func(item ledger.Item, t time.Time) bool { return c.remaining(item.Meter, t) >= item.Amount }
	var lacking []ledger.Item
	end, facts := time.Time{}, false
	for _, item := range items {
		if enough(item, now) {
			continue
		}
		lacking = append(lacking, item)
		periods, _ := c.state(item.Meter, now)
		open := periods[len(periods)-1]
		switch _, _, a, ok := c.agreed(item.Meter, open.agreed); {
		case !ok && !c.known(item.Meter, now):
			return string(errcode.MeterNotInPlan)
		case ok && a.Every != period.Once && a.Amount > 0:
			end = period.Later(end, open.end)
		default:
			facts = true
		}
	}
	if len(lacking) == 0 {
		return ""
	}
	for _, item := range items {
		if !facts {
			break
		}
		periods, pots := c.state(item.Meter, now)
		if last := periods[len(periods)-1]; last.end.Before(period.Forever) {
			end = period.Later(end, last.end)
		}
		for _, p := range pots {
			end = period.Later(end, p.from)
		}
	}
	var instants []time.Time
	for _, item := range items {
		periods, pots := c.state(item.Meter, period.Later(end, now))
		for _, p := range periods {
			instants = append(instants, p.end)
		}
		for _, p := range pots {
			instants = append(instants, p.from)
		}
	}
	slices.SortFunc(instants, time.Time.Compare)
	waits := func(items []ledger.Item) (class int, at time.Time) {
		all := func(t time.Time) bool {
			return !slices.ContainsFunc(items, func(i ledger.Item) bool { return !enough(i, t) })
		}
		for _, at := range instants {
			if at.After(now) && !at.After(end) && all(at) {
				return soon, at
			}
		}
		if all(period.Later(end, now).AddDate(10, 0, 0)) {
			return later, time.Time{}
		}
		return never, time.Time{}
	}
	code := errcode.QuotaExceeded
	if class, _ := waits(items); class == never {
		code = errcode.CreditsExhausted
	}
	last := slices.MaxFunc(lacking, func(a, b ledger.Item) int {
		classA, atA := waits([]ledger.Item{a})
		classB, atB := waits([]ledger.Item{b})
		return cmp.Or(cmp.Compare(classA, classB), atA.Compare(atB), -cmp.Compare(a.Meter, b.Meter))
	})
	return fmt.Sprintf("%s available %d of %s", code, c.remaining(last.Meter, now), last.Meter)
}

// known reports whether the meter ever had a grant, an allowance or a stored denial.
func (c *calendar) known(meter string, now time.Time) bool {
	if len(c.grants[meter]) > 0 || c.denied[meter] {
		return true
	}
	_, pots := c.state(meter, now)
	return len(pots) > 0
}

func (c *calendar) grant(g *ledger.Grant, now time.Time) (string, bool) {
	made := calendarGrant{arrived: c.next(), id: g.GrantID, amount: g.Amount, priority: *g.Priority, from: period.Later(now, g.EffectiveAt), until: g.ExpiresAt}
	if g.ExpiresAt.IsZero() {
		made.until = period.Forever
	}
	if !made.until.After(made.from) {
		return string(errcode.InvalidArgument), false
	}
	for _, o := range c.grants[g.Meter] {
		if o.id == made.id {
			return string(errcode.Conflict), false
		}
	}
	c.grants[g.Meter] = append(c.grants[g.Meter], made)
	return fmt.Sprintf("ok left %d", c.remaining(g.Meter, now)), true
}

// describe returns a meter as text: every period, and the pots that can be spent, in burn order. describeAll returns
// the same text for a book.
func (c *calendar) describe(meter string, now time.Time) string {
	periods, pots := c.state(meter, now)
	var out strings.Builder
	for _, p := range periods {
		fmt.Fprintf(&out, "%s-%s %s/%d opening %d granted %d amended %d used %d expired %d closing %d\n",
			p.start.Format(time.RFC3339Nano), p.end.Format(time.RFC3339Nano), p.plan, p.version, p.opening, p.granted, p.amended, p.used, p.expired, p.closing())
	}
	for _, p := range pots {
		if p.alive(now) && p.left > 0 {
			fmt.Fprintf(&out, "%s:%d ", p.id, p.left)
		}
	}
	return out.String()
}

// potOf returns the id of the calendar's pot for a grant. It lacks the number by which the ledger tells the grants of one
// instant apart.
func potOf(grant string) string {
	if strings.HasPrefix(grant, "allowance:") {
		grant, _, _ = strings.Cut(grant, "_")
	}
	return grant
}

// describeAll returns a book in the format of describe, including its closed periods.
func describeAll(t *rapid.T, s *Memory, b *ledger.Book) string {
	var out strings.Builder
	closed, _, err := s.single(slices.Concat(s.periods[b.BalanceKey], b.Closed))
	require.NoError(t, err)
	for _, p := range closed {
		fmt.Fprintf(&out, "%s-%s %s/%d opening %d granted %d amended %d used %d expired %d closing %d\n",
			p.Start.Format(time.RFC3339Nano), p.End.Format(time.RFC3339Nano), p.Plan, p.PlanVersion, p.Opening, p.Granted, p.Amended, p.Used, p.Expired, p.Closing)
	}
	fmt.Fprintf(&out, "%s-%s %s/%d opening %d granted %d amended %d used %d expired %d closing %d\n",
		b.Start.Format(time.RFC3339Nano), b.End.Format(time.RFC3339Nano), b.Plan, b.PlanVersion, b.Opening, b.Granted, b.Amended, b.Used, b.Expired, b.Remaining())
	for _, g := range b.Grants {
		if g.Status == ledger.GrantActive && g.Remaining > 0 {
			fmt.Fprintf(&out, "%s:%d ", potOf(g.ID), g.Remaining)
		}
	}
	return out.String()
}
