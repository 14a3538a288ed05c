package ledger

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// Terms that apply at once change the open period. If the interval of the allowance stays the same, the period goes on
// and only its allowance is amended. If the interval changes, the period ends and the next period opens.
//
// A balance keeps these equations for its allowance. "Its grants" are the grants of the allowance since AllowanceAt.
//
//	left in its grants - Short = Entitled - Carried - drawn from its grants - held in its grants
//	left in its grants = 0 if Short > 0
//
// So a change adds the same amount to Entitled and to the left side. What is below 0 is Short. Units that come back
// make up for it first. Carried is the earlier use that the allowance of the period is less by. It is 0 unless the
// period began with a change of the interval. Then it is what was drawn, and is held, of allowances since the instant
// at which a period of the new interval would have begun.
//
// A once-only allowance takes no part in this. It is a grant that ends at its own end, whatever plan follows.

// kind returns the interval of the allowance: period.Once if it is granted once, "" if the plan has no such meter.
func (t *Terms) kind() period.Interval {
	if !t.Grants {
		return ""
	}
	return t.Allowance.Every
}

// kind returns the interval of the open period, as Terms.kind does.
func (b *Book) kind() period.Interval {
	switch {
	case b.Plan == "":
		return ""
	case !b.End.Before(period.Forever):
		return period.Once
	case b.Terms != nil:
		return b.Terms.Every
	}
	return b.Timeline.At(b.Start).kind()
}

// actsOn reports whether t changes an open period of the given kind. Other terms wait for the end of the period. A
// period that has no end cannot be waited for. A once-only allowance stays as it was given if only the version of the
// plan changes, unless that version applies now.
func (t *Terms) actsOn(kind period.Interval) bool {
	if t.waited && kind == period.Once && t.kind() == kind {
		return false
	}
	endless := kind == "" || kind == period.Once
	return t.now || endless && (t.since.Equal(t.agreedAt) || t.kind() != kind)
}

// rules reports whether the open period has the plan's version and the amount of t already.
func (t *Terms) rules(b *BalanceRow) bool {
	return t.opened(b) && (!t.Grants || t.version == b.PlanVersion)
}

// newerIn reports whether the open period has the terms t with an older version of their plan. The version of t was
// made before these terms were in force, and committed later.
func (t *Terms) newerIn(b *Book) bool {
	switch {
	case !t.since.Equal(b.TermsAt), t.made.IsZero(), !t.made.Before(t.since), t.rules(&b.BalanceRow):
		return false
	case t.waited && t.kind() == period.Once && b.kind() == period.Once:
		return false
	}
	return b.Plan == "" || t.plan == b.Plan && t.version > b.PlanVersion
}

// nextChange returns the terms that change the open period next, and when. It returns nil if the period ends before.
// Terms take effect at their own instant, or after the balance's last decision if they were committed later. If their
// instant is before the period began, they were committed after it was opened, unless it was opened under them.
func (b *Book) nextChange() (*Terms, time.Time) {
	if !b.Opened() {
		return nil, time.Time{}
	}
	for i := range b.Timeline {
		t := &b.Timeline[i]
		last := i+1 == len(b.Timeline) || b.Timeline[i+1].since.After(t.since) // of its instant
		switch {
		case last && t.newerIn(b):
		case !t.since.After(b.TermsAt), !t.actsOn(b.kind()):
			continue
		case t.rules(&b.BalanceRow) && (!t.reset && !t.add || !t.since.After(b.Start)):
			continue
		case !t.since.After(b.Start) && t != b.Timeline.At(b.Start):
			continue
		}
		if at := period.Later(t.since, b.processed); at.Before(b.End) {
			return t, at
		}
		break
	}
	return nil, time.Time{}
}

// change applies the terms t to the open period at the instant `at`.
func (b *Book) change(t *Terms, at, now time.Time, j *[]Entry) error {
	if t.kind() == b.kind() {
		return b.amend(t, at, now, j)
	}
	b.End = period.Later(at, b.Start.Add(time.Microsecond)) // two periods never begin at one instant
	b.cut = true
	return b.step(b.End, now, j)
}

// amend applies terms of the same interval. The period goes on.
func (b *Book) amend(t *Terms, at, now time.Time, j *[]Entry) error {
	was, err := b.entitled()
	if err != nil {
		return err
	}
	worth, another, same := int64(0), t.plan != b.Plan, t.Allowance.Amount == b.Allowance
	if t.Grants {
		if worth, err = b.worth(t, at); err != nil {
			return err
		}
	}
	if !b.knows() { // an older version opened the period
		b.Entitled, b.AllowanceAt = was, b.Start
	}
	which, again := instantID(t.since), t.newerIn(b)
	if again { // the terms may have amended the period with the older version
		which = fmt.Sprint(which, "/", t.version)
	}
	b.TermsAt, b.changed = t.since, true
	b.agree(t)
	c := changing{book: b, j: j, id: systemID(t.event(eventAmend), b.BalanceKey, which), at: at, now: now}
	switch {
	case !t.Grants:
	case !again && (t.reset || t.add), t.once() && another:
		c.renew(t, worth)
	case !same:
		c.amendTo(t, was, worth)
	}
	b.refresh()
	return nil
}

// agree makes t the terms of the open period.
func (b *Book) agree(t *Terms) {
	b.Plan, b.PlanVersion, b.Allowance, b.Renews, b.Terms = "", 0, 0, false, nil
	if t.Grants {
		b.Plan, b.PlanVersion, b.Allowance = t.plan, t.version, t.Allowance.Amount
		b.Renews, b.Terms = t.renews(), &t.Allowance
	}
}

// changing is a change of terms that is being entered.
type changing struct {
	book    *Book
	j       *[]Entry
	id      string // operation
	line    int32
	at, now time.Time
}

func (c *changing) enter(kind EntryKind, g *OpenGrant, amount int64) {
	c.line++
	c.book.enterDue(c.j, kind, c.id, c.line, g, amount, c.at, c.now)
}

// amendTo changes what the allowance is worth. A prorated change takes nothing that was drawn, but of an allowance that
// is granted once there are no shares to prorate.
func (c *changing) amendTo(t *Terms, was, worth int64) {
	b := c.book
	left, held := int64(0), int64(0)
	for _, g := range b.Grants {
		if b.isAllowance(g) {
			left, held = left+g.Remaining, held+g.Held
		}
	}
	if t.prorate && !t.once() {
		worth = max(worth, was-(left-b.Short)-held)
	}
	ends := b.allowanceEnd(b.givenBy()) // a change does not change when the allowance ends
	if !ends.After(c.at) {
		b.Entitled = worth
		return
	}
	after := left - b.Short + worth - was
	switch {
	case after > left:
		given := c.give(EntryAmendUp, after-left, ends)
		after, worth = left+given, worth-(after-left-given)
	default:
		c.takeBack(left - max(0, after))
	}
	b.Entitled, b.Short, b.changed = worth, max(0, -after), true
}

// takeBack takes n units from the grants of the allowance, in burn order.
func (c *changing) takeBack(n int64) {
	for _, g := range c.book.Grants {
		part := min(n, g.Remaining)
		if part == 0 || !c.book.isAllowance(g) {
			continue
		}
		n -= part
		c.book.setRemaining(g, g.Remaining-part)
		c.enter(EntryAmendDown, g, part)
	}
}

// renew gives the allowance as a whole once more. With a reset the units of before expire, and used units of before do
// not come back.
func (c *changing) renew(t *Terms, worth int64) {
	b := c.book
	var gone []*OpenGrant
	switch {
	case t.reset && t.once():
		gone = b.givenOnce(t)
	case t.reset:
		gone = b.activeGrants(b.isAllowance)
	}
	for _, g := range gone {
		if lost := b.end(g); lost > 0 {
			c.enter(EntryExpire, g, lost)
		}
	}
	c.at = period.Later(c.at, b.allowanceAt().Add(time.Microsecond))
	b.AllowanceAt, b.Short, b.Carried, b.changed = c.at, 0, 0, true
	if b.Entitled = worth; t.gaveOnce() {
		return
	}
	if ends := b.allowanceEnd(t); worth > 0 {
		b.Entitled = c.give(EntryGrant, worth, ends)
	}
}

// ByChange reports whether the entry belongs to a change of terms, and is not due at the end of a grant.
func (e *Entry) ByChange() bool {
	return strings.HasPrefix(e.OperationID, "§"+eventAmend+"/") || strings.HasPrefix(e.OperationID, "§"+eventOnce+"/")
}

// give issues a grant of the allowance, of at most n units, and returns how many.
func (c *changing) give(kind EntryKind, n int64, ends time.Time) int64 {
	b := c.book
	if n = min(n, b.room()); n <= 0 {
		return 0
	}
	g := b.moreAllowance(c.id, n, c.at, ends, c.now)
	b.addGrant(g)
	c.enter(kind, g, n)
	return n
}

// isAllowance reports whether g belongs to the allowance of the open period that changes of terms amend.
func (b *Book) isAllowance(g *OpenGrant) bool {
	return g.Source == SourceAllowance && !g.EffectiveAt.Before(b.allowanceAt()) &&
		g.once() == (b.kind() == period.Once)
}

// allowanceAt returns the instant at which the allowance of the open period was given as a whole.
func (b *Book) allowanceAt() time.Time { return period.Later(b.AllowanceAt, b.Start) }

// givenBy returns the terms that gave the allowance of the open period as a whole. Later terms may have an instant
// before it, because terms that are committed late take effect after the balance's last write.
func (b *Book) givenBy() *Terms {
	by := b.Timeline.At(b.Start)
	for i := range b.Timeline {
		t := &b.Timeline[i]
		another := t.once() && i > 0 && t.plan != b.Timeline[i-1].plan
		acted := t.since.After(b.Start) && !t.since.After(b.allowanceAt()) && !t.since.After(b.TermsAt)
		if acted && (t.reset || t.add || another) {
			by = t
		}
	}
	return by
}

// allowanceEnd returns when units of the open period's allowance expire.
func (b *Book) allowanceEnd(t *Terms) time.Time {
	if t.Allowance.Lasts > 0 {
		return period.Earlier(b.End, b.allowanceAt().Add(t.Allowance.Lasts))
	}
	return b.End
}

// knows reports whether the row has the fields of change.go for the open period. An older version may have opened it.
func (b *BalanceRow) knows() bool { return b.Opened() && !b.AllowanceAt.Before(b.Start) }

// entitled returns what the allowance of the open period is worth.
func (b *Book) entitled() (int64, error) {
	if b.knows() || b.Plan == "" {
		return b.Entitled, nil
	}
	t := b.Timeline.At(b.Start)
	p, err := t.Containing(b.Start)
	return t.share(b.Allowance, b.Start, p), err
}

// worth returns what the allowance of the open period is worth once the terms t take effect at the instant `at`.
// Prorated, each amount counts for the time in which it was in force.
func (b *Book) worth(t *Terms, at time.Time) (int64, error) {
	if t.once() {
		return t.Allowance.Amount, nil
	}
	from, whole, err := b.measure()
	switch {
	case err != nil:
		return 0, err
	case t.prorate && (t.reset || t.add):
		return part(t.Allowance.Amount, b.End.Sub(at), whole), nil
	case !t.prorate:
		return part(t.Allowance.Amount, b.End.Sub(from), whole), nil
	}
	if renewed := b.givenBy(); renewed.prorate && (renewed.reset || renewed.add) {
		from = b.allowanceAt()
	}
	return b.Timeline.prorated(t, from, b.End, whole), nil
}

// prorated returns the sum of the amounts in force from..end up to the terms last, each multiplied by its share of the
// time, rounded down once. Amounts of another interval count as 0.
func (tl Timeline) prorated(last *Terms, from, end time.Time, whole time.Duration) int64 {
	sum, amount, first := new(big.Int), int64(0), true
	count := func(until time.Time) {
		if until.After(from) {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(amount), big.NewInt(until.Sub(from).Microseconds())))
			from = until
		}
	}
	tl.eachOpening(func(t *Terms, at, _ time.Time) {
		if t.since.After(last.since) {
			return
		}
		if !first { // the first terms also apply to every earlier instant
			count(period.Earlier(at, end))
		}
		if amount, first = 0, false; t.kind() == last.kind() {
			amount = t.Allowance.Amount
		}
	})
	count(end)
	return sum.Div(sum, big.NewInt(whole.Microseconds())).Int64()
}

// measure returns from when on amounts count for the allowance of the open period, and the time for which a whole
// amount counts. That time is longer than the period if the period is a short one: see nextOpening.
func (b *Book) measure() (from time.Time, whole time.Duration, err error) {
	switch {
	case !b.knows():
		return b.Start, b.End.Sub(b.Start), nil
	case !b.CarriedFrom.IsZero():
		return b.CarriedFrom, b.End.Sub(b.CarriedFrom), nil
	}
	p, err := b.Timeline.At(b.Start).Containing(b.Start)
	if err != nil || !p.End.Equal(b.End) {
		return b.Start, b.End.Sub(b.Start), err
	}
	return b.Start, p.End.Sub(p.Start), nil
}

// part returns amount * time / whole, rounded down.
func part(amount int64, time, whole time.Duration) int64 {
	if time == whole {
		return amount
	}
	n := new(big.Int).Mul(big.NewInt(amount), big.NewInt(time.Microseconds()))
	return n.Div(n, big.NewInt(whole.Microseconds())).Int64()
}

// PastUse is the use of a balance's allowances since an instant, and its overage since then that was not paid. Refunds
// of this use are taken off.
type PastUse struct {
	Since          time.Time
	Drawn, Overage int64
	// ApartFrom and ApartUntil delimit times. Use of allowances that took effect in them does not count.
	ApartFrom, ApartUntil []time.Time
}

// errPastUse is the error of a change of the interval that needs a PastUse which was not read.
var errPastUse = errors.New("ledger: the use before a change of the interval was not read")

// WantsPastUse returns the PastUse that the book needs to reach the instant `until`, and then every change of terms
// that is to come. The store reads it and calls AddPastUse, until WantsPastUse returns false.
func (b *Book) WantsPastUse(until time.Time) (use PastUse, wants bool) {
	if b.readSeq == 0 || b.Broken != nil || !b.loaded || !b.Timeline.changesKind() {
		return PastUse{}, false
	}
	c := b.clone()
	// The clock may be behind the last write.
	until = period.Later(until, b.UpdatedAt)
	for range len(b.Timeline) + 2 { // more often than there are instants to reach
		err := c.skipTo(period.Earlier(until, period.Latest.Add(-time.Microsecond)))
		if errors.Is(err, errPastUse) {
			return c.wanted, true
		}
		t := &b.Timeline[len(b.Timeline)-1]
		if err != nil || !t.since.After(c.TermsAt) {
			break
		}
		if until = period.Later(until, t.since); !t.now && c.End.Before(period.Forever) {
			until = period.Later(until, c.End)
		}
	}
	return PastUse{}, false
}

// changesKind reports whether not all terms have the same interval.
func (tl Timeline) changesKind() bool {
	for i := range tl {
		if tl[i].kind() != tl[0].kind() {
			return true
		}
	}
	return false
}

// AddPastUse adds the use since an instant.
func (b *Book) AddPastUse(u PastUse) { b.past = append(slices.Clip(b.past), u) }

// noteUse keeps the use of an entry for a change of the interval that may follow before the balance is read again.
func (b *Book) noteUse(e *Entry) {
	if b.past == nil && !b.Timeline.changesKind() {
		return
	}
	u := PastUse{Since: e.EffectiveAt}
	if e.EffectiveAt.IsZero() || e.Kind == EntryCapture {
		u.Since = b.UpdatedAt
	}
	if e.Kind == EntryOverage || e.Kind == EntryPayOwed {
		u.Overage = moves[e.Kind].Overage * e.Amount
	}
	if g := b.grant(e.Grant); e.Source == SourceAllowance && (g == nil || !b.apart(g)) {
		u.Drawn = (moves[e.Kind].Used - moves[e.Kind].Refunded) * e.Amount
	}
	if u.Overage != 0 || u.Drawn != 0 {
		b.unread = append(b.unread, u)
	}
}

// apart reports whether use of an allowance reduces no other allowance.
func (b *Book) apart(g *OpenGrant) bool { return g.once() || b.Timeline.fateOf(g, b.TermsAt) == kept }

// pastUse returns the use since an instant: the use that was read, and the use since then.
func (b *Book) pastUse(since time.Time) (PastUse, error) {
	use := PastUse{Since: since}
	if at := slices.IndexFunc(b.past, func(u PastUse) bool { return u.Since.Equal(since) }); at >= 0 {
		use = b.past[at]
	} else if b.readSeq > 0 {
		use.ApartFrom, use.ApartUntil = b.Timeline.apart(b.TermsAt)
		b.wanted = use
		return use, errPastUse
	}
	for _, u := range b.unread {
		if !u.Since.Before(since) {
			use.Drawn, use.Overage = min(use.Drawn+u.Drawn, MaxAmount), min(use.Overage+u.Overage, MaxAmount)
		}
	}
	use.Drawn, use.Overage = max(0, use.Drawn), max(0, use.Overage)
	return use, nil
}

// heldSince returns how many units of allowances are held whose periods would have ended after an instant.
func (b *Book) heldSince(from time.Time) (n int64) {
	for _, g := range b.Grants {
		if g.Source == SourceAllowance && g.ExpiresAt.After(from) && !b.apart(g) {
			n += g.Held
		}
	}
	return n
}
