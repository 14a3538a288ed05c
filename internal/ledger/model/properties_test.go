package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// These properties hold for any changes of the terms. They are checked on the model. That package ledger gives the
// same answers is another test.

// drawTerms draws terms for the meter calls, of one of the kinds.
func drawTerms(t *rapid.T, kinds []kind) (Terms, bool) {
	k := rapid.SampledFrom(kinds).Draw(t, "kind")
	terms := Terms{amount: rapid.Int64Range(0, 100).Draw(t, "amount"), once: k == once, day: k == daily}
	return terms, k != none
}

// startCustomer returns a customer with two plans of these kinds, and a third that has no meter.
func startCustomer(t *rapid.T, kinds []kind) *customer {
	small, _ := drawTerms(t, kinds)
	large, has := drawTerms(t, kinds)
	c := newCustomer(small, large)
	if !has {
		c.m.plans["large"] = c.m.plans["none"]
	}
	return c
}

// copied returns another customer with the same past.
func (c *customer) copied() *customer {
	twin := *c
	twin.m = c.m.clone()
	return &twin
}

func (c *customer) left() int64 { return c.m.touch(calls).remaining() }

// drawTermsChange draws a change to one of two plans. The switches say what else it may change.
func drawTermsChange(t *rapid.T, anchors, prorate, anew bool) PlanChange {
	p := PlanChange{Plan: rapid.SampledFrom([]string{"small", "large"}).Draw(t, "plan")}
	p.Now = rapid.IntRange(0, 3).Draw(t, "now?") > 0
	if rapid.Bool().Draw(t, "own?") {
		p.Own = map[string]int64{"calls": rapid.Int64Range(0, 100).Draw(t, "own")}
	}
	if anchors {
		p.Shift = time.Duration(rapid.IntRange(-23, 23).Draw(t, "anchor")) * time.Hour
	}
	p.Prorate = p.Now && prorate && rapid.Bool().Draw(t, "prorate")
	if p.Now && anew && rapid.IntRange(0, 3).Draw(t, "anew?") == 0 {
		p.Reset = rapid.Bool().Draw(t, "reset")
		p.Add = !p.Reset
	}
	if rapid.IntRange(0, 4).Draw(t, "future?") == 0 {
		p.After = time.Duration(rapid.IntRange(1, 40*60).Draw(t, "after")) * time.Minute
	}
	return p
}

// tick advances the clock, never to a boundary: a change at the instant of an earlier write would not act.
func (c *customer) tick(t *rapid.T, most int) {
	c.log(t)
	c.m.Now = c.m.Now.Add(time.Duration(rapid.IntRange(1, most).Draw(t, "minutes"))*time.Minute + time.Microsecond)
	c.m.touch(calls)
}

// log logs the balance for the report of a failure.
func (c *customer) log(t *rapid.T) {
	last := c.m.Changes[len(c.m.Changes)-1]
	t.Logf("%s, last change at %s %+v\n  %s", c.m.Now, last.at, last, c.m.describe(calls))
}

// drawnSince returns the units drawn from allowances of periods since an instant, whatever was given anew.
func (c *customer) drawnSince(at time.Time) int64 {
	b, sum := c.m.touch(calls), int64(0)
	for _, op := range c.m.ops {
		for _, p := range op.parts {
			if !p.overage && !p.at.Before(at) {
				if g := b.grant(p.grant); g != nil && g.of > 0 && !b.allowances[g.of].once {
					sum += p.amount - p.back
				}
			}
		}
	}
	return sum
}

// work uses, reserves, captures, and gives back units at random.
func (c *customer) work(t *rapid.T, ids *[]string) {
	id := fmt.Sprint("id", len(*ids))
	amount := rapid.Int64Range(1, 120).Draw(t, "amount")
	switch rapid.IntRange(0, 5).Draw(t, "work") {
	case 0:
		c.hold(amount, id)
		*ids = append(*ids, id)
	case 1, 2:
		if len(*ids) > 0 {
			of := rapid.SampledFrom(*ids).Draw(t, "of")
			c.end(of, rapid.SampledFrom([]int64{0, 1, amount}).Draw(t, "captured"))
			if rapid.Bool().Draw(t, "refund?") {
				c.refund(of)
				c.refund("captured " + of)
			}
		}
	default:
		c.use(amount, id)
		*ids = append(*ids, id)
	}
}

// Whatever is changed and how often, at most the first open period's allowance and the shares of the time after it are
// drawn. An allowance that was given anew counts in addition.
func TestChanges_OfAmountsAndAnchors_DrawAtMostAllowanceAndShares(t *testing.T) {
	t.Parallel()
	const largest = 100
	rapid.Check(t, func(t *rapid.T) {
		c, anew, ids := startCustomer(t, []kind{daily}), int64(0), []string(nil)
		first := c.m.touch(calls).end
		for range 30 {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				c.tick(t, 30*60)
			case 1:
				p := drawTermsChange(t, true, true, true)
				if p.anew() {
					anew += largest
				}
				c.tick(t, 5)
				c.change(p)
			default:
				c.work(t, &ids)
			}
			shares := share(largest, first, c.m.touch(calls).end) / int64(24*time.Hour/time.Microsecond)
			require.LessOrEqual(t, c.drawnSince(c.begin), largest+shares+anew)
		}
	})
}

// However a tenant changes between intervals, it draws in one day at most a day's allowance and the allowances of the
// hours after it. This does not hold for prorated changes: they do not take off what was drawn before them.
func TestChanges_OfIntervals_DrawAtMostDayAndItsHours(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := startCustomer(t, []kind{daily, hourly, hourly, once, none})
		most := map[kind]int64{}
		for _, plan := range []string{"small", "large"} {
			terms, has := c.m.plans[plan][0].meters["calls"]
			if has {
				most[kindOf(plan, &terms)] = max(most[kindOf(plan, &terms)], terms.amount)
			}
		}
		for range 30 {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				c.tick(t, 5*60)
			case 1:
				p := drawTermsChange(t, false, false, false)
				p.Own = nil
				c.tick(t, 5)
				c.change(p)
			default:
				c.use(rapid.Int64Range(1, 120).Draw(t, "amount"), "")
			}
			day := c.m.Now.Truncate(24 * time.Hour)
			hours := int64(c.m.Now.Sub(day)/time.Hour) + 1
			require.LessOrEqual(t, c.drawnSince(day), most[daily]+hours*most[hourly], "on %s", day)
			hour := c.m.Now.Truncate(time.Hour)
			if c.m.touch(calls).kind() == hourly {
				require.LessOrEqual(t, c.drawnSince(hour), max(most[hourly], most[daily]), "from %s on", hour)
			}
		}
	})
}

// What was reserved or drawn and is given back leaves nothing behind: the customer can then spend what it could spend
// without it, whatever was changed in between.
func TestChanges_UnitsGivenBack_AreNotLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := startCustomer(t, []kind{daily, hourly, once, none})
		twin, ids := c.copied(), []string{}
		for i := range 20 {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				c.tick(t, 3*60)
			case 1:
				p := drawTermsChange(t, true, false, true)
				c.tick(t, 5)
				if p.Add && (p.After > 0 || c.m.touch(calls).misses()) {
					p.Add = false // units that were carried or short are forgotten then
				}
				twin.m.Now = c.m.Now
				c.change(p)
				twin.change(p)
			default:
				id := fmt.Sprint("id", i)
				amount := rapid.Int64Range(1, 60).Draw(t, "amount")
				if rapid.Bool().Draw(t, "hold?") {
					c.hold(amount, id)
				} else {
					c.use(amount, id)
				}
				ids = append(ids, id)
			}
		}
		if c.m.touch(calls).forgot {
			return // what a once-only allowance is short of is forgotten when its plan is left
		}
		for _, id := range ids {
			c.end(id, 0)
			c.refund(id)
		}
		twin.m.Now = c.m.Now
		c.log(t)
		twin.log(t)
		require.Equal(t, twin.left(), c.left())
	})
}

// misses reports whether units that come back make up for others first.
func (b *balance) misses() bool {
	return b.carried > 0 || slices.ContainsFunc(b.allowances, func(a allowance) bool { return a.short > 0 })
}

// A change that is undone in the same period leaves no trace in what can be spent, neither in the allowance nor below
// the cap of overage.
func TestChanges_Undone_LeaveNoTrace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := startCustomer(t, []kind{daily, daily, hourly, none}) // what a plan gives once stays
		for _, plan := range []string{"small", "large"} {
			if terms, ok := c.m.plans[plan][0].meters["calls"]; ok {
				terms.overage, terms.overageCap = true, new(int64(30))
				c.m.plans[plan][0].meters["calls"] = terms
			}
		}
		ids := []string{}
		for range rapid.IntRange(0, 6).Draw(t, "before") {
			c.tick(t, 30)
			c.work(t, &ids)
		}
		twin := c.copied()
		b := c.m.touch(calls)
		end := b.end
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			c.tick(t, 20)
			p := drawTermsChange(t, true, false, false)
			p.Now, p.After, p.Shift = true, 0, 0
			c.change(p)
		}
		c.tick(t, 5)
		c.change(PlanChange{Plan: "small", Now: true})
		twin.m.Now = c.m.Now
		if !c.m.Now.Before(end) || twin.m.touch(calls).kind() == hourly {
			return // an hour is over before the change is undone
		}
		spendable := func(c *customer) int64 { return c.copied().use(1_000_000, "") }
		c.log(t)
		twin.log(t)
		require.Equal(t, twin.left(), c.left())
		if !twin.m.touch(calls).kind().endless() { // without an interval, the cap begins anew
			require.Equal(t, spendable(twin), spendable(c))
		}
	})
}

// Random programs with all requests and changes: overage stays within the cap, and is charged only when no grant is
// left. Units are neither created nor lost: the sums of each period lead to the opening of the next.
func TestChanges_InPrograms_KeepTheBooks(t *testing.T) {
	t.Parallel()
	const steps = 60
	RunPrograms(t, 40, 0, func(t *rapid.T) int {
		p := Start(t)
		for range steps {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1:
				p.tick(time.Duration(rapid.IntRange(0, 240).Draw(t, "minutes")) * time.Minute)
			case 2:
				p.tick(time.Second)
				p.ChangePlan(p.DrawTermsChange())
			case 3:
				if rapid.IntRange(0, 2).Draw(t, "version?") == 0 {
					p.tick(time.Second)
					p.Publish(rapid.SampledFrom(Plans).Draw(t, "plan"), p.DrawTerms(), p.DrawApply(), p.Now)
				}
			default:
				r := p.Request()
				p.NameFresh()
				answer := r.Ask(p.Model, p.Sticky)
				t.Logf("%s %s %s => %s", p.Now.Format(time.RFC3339), r.ID, r.Body, answer)
				p.checkOverage(r.ID, answer)
			}
			for _, k := range p.Model.Keys() {
				p.Model.touch(k).checkBooks(t, p.Model.held(k))
			}
		}
		return steps
	})
}

// checkOverage checks the overage that an operation was charged.
func (p *Program) checkOverage(id, answer string) {
	for item := range strings.SplitSeq(answer, "[") {
		if strings.Contains(item, ":overage:") {
			require.Contains(p.T, item, "left 0]", "overage was charged although a grant is left")
			b := p.Model.touch(calls)
			if b.terms.overageCap != nil {
				all := b.overage + b.before
				require.LessOrEqual(p.T, all, *b.terms.overageCap, "%s: overage beyond the cap", id)
			}
		}
	}
}

// checkBooks checks that the sums of b lead from period to period, and that its allowances give no more than they are
// worth.
func (b *balance) checkBooks(t *rapid.T, held int64) {
	opening, first := int64(0), true
	for _, closed := range b.closed {
		var n [11]int64
		for i, word := range strings.Fields(closed[strings.Index(closed, "opening"):]) {
			if i%2 == 1 {
				_, err := fmt.Sscan(word, &n[i/2])
				require.NoError(t, err, closed)
			}
		}
		require.Equal(t, n[10], n[0]+n[1]+n[2]+n[3]-n[4]-n[5]+n[6], "the sums do not lead to the closing: %s", closed)
		require.True(t, first || n[0] == opening, "the period does not begin with %d: %s", opening, closed)
		opening, first = n[10], false
	}
	require.True(t, first || b.opening == opening)
	require.Equal(t, b.remaining()+held, b.opening+b.granted+b.amended+b.refunded-b.used-b.expired+b.adjusted)
	require.GreaterOrEqual(t, b.carried, int64(0))
	for of := range b.allowances {
		a := &b.allowances[of]
		left := b.left(of)
		require.True(t, a.short == 0 || a.apart || left == 0, "%d units are left, although %d are short", left, a.short)
		if of == b.current && of > 0 {
			taken := b.drawnOf(of) + b.heldOf(of) + left
			require.True(t, left == 0 || taken <= a.worth, "an allowance of %d gives %d", a.worth, taken)
		}
	}
}

// heldOf returns the units that are held of an open allowance.
func (b *balance) heldOf(of int) int64 {
	sum := int64(0)
	for _, g := range b.grants {
		if g.of == of {
			sum += g.held
		}
	}
	return sum
}
