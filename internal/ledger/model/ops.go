package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// refused is the panic that refuses an operation: the code, and for a denial also the available units.
type refused struct {
	answer   string
	denied   bool // the request lacks units: verdict finds the answer
	unstored bool // the denial of a request that names no amounts is not stored
}

func (m *Model) refuse(code errcode.Code) { panic(refused{answer: string(code)}) }

// apply returns the answer to the request with key id. A repeated request gets the first answer. For a new request,
// act works on a copy of m, which replaces m unless act refuses. With storeDenials, a denial is stored as the first
// answer.
func (m *Model) apply(id, body string, storeDenials bool, act func(m *Model, op *operation) string) (answer string) {
	if old, ok := m.ops[id]; ok {
		if old.body != body {
			return string(errcode.IdempotencyKeyReused)
		}
		return old.answer
	}
	work := m.clone()
	op := &operation{body: body}
	defer func() {
		if r := recover(); r != nil {
			no, ok := r.(refused)
			if !ok {
				panic(r)
			}
			if no.denied {
				no = m.verdict(act)
			}
			answer = no.answer
			// A refusal does not undo the events that were due.
			for _, k := range work.Keys() {
				m.touch(k)
			}
			if storeDenials && !no.unstored && strings.Contains(answer, "available") {
				m.ops[id] = &operation{body: body, answer: answer}
				parts := strings.Fields(answer)
				m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: parts[len(parts)-1]}).entries++
			}
		}
	}()
	op.answer = act(work, op)
	work.ops[id] = op
	*m = *work
	return op.answer
}

// allocate divides the part of amount that can be charged, within the subject's cap. It returns the units that own
// grants pay, the units that the overflow meter pays, and overage. For a capture, t is the tab of the hold.
func (m *Model) allocate(meter, subject string, amount int64, t tab) (own, over, overage int64) {
	b := m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: meter})
	bound := amount
	if subject != "" && b.plan != "" && b.terms.perSubject != nil {
		bound = min(bound, m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: meter, Subject: subject}).remaining())
	}
	own = min(bound, b.remaining())
	rest := bound - own
	if b.plan != "" && b.terms.overflow != "" && amount > b.remaining() {
		have := m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: b.terms.overflow}).remaining()
		for over < rest && b.terms.costs(t.used+over+1)-t.taken <= have {
			over++
		}
		rest -= over
	}
	if b.plan != "" && b.terms.overage {
		room := ledger.MaxAmount - b.overage
		if b.terms.overageCap != nil {
			room = max(0, *b.terms.overageCap-b.overage-b.before)
		}
		overage = min(rest, room)
	}
	return own, over, overage
}

// costs returns the cost of n units in units of the overflow meter. The product does not overflow, because programs
// have small amounts.
func (t *Terms) costs(n int64) int64 {
	cost := n * t.price / t.per
	if cost*t.per < n*t.price {
		cost++
	}
	return cost
}

// refuseIfSuspended refuses new use by a suspended tenant.
func (m *Model) refuseIfSuspended(meter string) {
	if m.Suspended {
		m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: meter})
		m.refuse(errcode.TenantSuspended)
	}
}

func (m *Model) debit(op *operation, d *ledger.Debit) string {
	m.refuseIfSuspended(d.Items[0].Meter)
	op.refundable, op.items = true, len(d.Items)
	answer := "ok"
	for i, item := range d.Items {
		if m.skips(i) {
			continue
		}
		answer += m.debitItem(op, i, item.Meter, d.Subject, item.Amount, d.Mode, "")
	}
	return answer
}

// debitItem charges one item and returns its part of the answer. For a capture beyond its hold, id is the id of the
// hold.
func (m *Model) debitItem(op *operation, i int, meter, subject string, amount int64, mode ledger.Mode, id string) string {
	k := ledger.BalanceKey{Tenant: Tenant, Meter: meter}
	b := m.touch(k)
	bounded := subject
	if mode == ledger.ModeDrain {
		bounded = "" // the cap does not bound work that is done
	}
	own, over, overage := m.allocate(meter, bounded, amount, m.tabFor(id, i, b))
	if mode == ledger.ModeDrain {
		overage = 0
	}
	charged := own + over + overage
	if charged < amount && (mode == "" || mode == ledger.ModeNormal || b.plan == "" && b.entries == 0) {
		own, over, overage = m.allocate(meter, "", amount, m.tabFor(id, i, b))
		m.deny(i, meter, subject, amount, charged, own+over+overage < amount)
		return ""
	}
	draws, grouped := []string(nil), 0
	part := func(on ledger.BalanceKey, g *grant, n, price int64) {
		id := ""
		if g != nil {
			id = g.id
		}
		op.parts = append(op.parts, usedPart{
			item: i, meter: meter, balance: on, grant: id, price: price, per: 1, amount: n, overage: g == nil,
			at: m.Now, start: m.balances[on].start,
		})
		if p := &op.parts[len(op.parts)-1]; price < 0 {
			p.per, p.group = b.terms.per, grouped
		}
	}
	b.draw(own, func(g *grant, n int64) {
		b.spend(g, n, m.Now)
		draws = append(draws, fmt.Sprintf("%s:%s:%d", meter, g.source, n))
		part(k, g, n, 1)
	})
	b.overflow += over
	if over > 0 && id != "" && b.terms.per > 1 {
		m.buyMore(op, id, i, b, over)
	} else if over > 0 {
		ok := ledger.BalanceKey{Tenant: Tenant, Meter: b.terms.overflow}
		o := m.touch(ok)
		grouped = len(op.groups)
		op.groups = append(op.groups, group{item: int64(i), units: over})
		o.draw(b.terms.costs(over), func(g *grant, n int64) {
			o.spend(g, n, m.Now)
			draws = append(draws, fmt.Sprintf("%s:%s:%d", b.terms.overflow, g.source, n))
			part(ok, g, n, -b.terms.price)
		})
		o.entries++
	}
	beyond := overage
	if mode == ledger.ModeDrain {
		beyond = amount - charged
	}
	if beyond > 0 {
		b.exceed(beyond, m.Now)
		part(k, nil, beyond, 1)
		if overage > 0 {
			draws = append(draws, fmt.Sprintf("%s:overage:%d", meter, overage))
		}
	}
	if own+beyond > 0 || charged == 0 { // what another meter pays in full has no entry of its own
		b.entries++
	}
	if charged+beyond == 0 {
		op.parts = append(op.parts, usedPart{item: i, meter: meter, balance: k, price: 1, per: 1}) // entry of 0 units
	}
	if subject != "" && b.plan != "" && b.terms.perSubject != nil {
		m.chargeSubject(ledger.BalanceKey{Tenant: Tenant, Meter: meter, Subject: subject}, charged+beyond-overage, part)
	}
	return fmt.Sprintf(" [%s %d of %d, %s, left %d]", meter, charged, amount, strings.Join(draws, " "), b.remaining())
}

// chargeSubject charges the balance k of a subject for n units of the tenant's use.
func (m *Model) chargeSubject(k ledger.BalanceKey, n int64, part func(on ledger.BalanceKey, g *grant, n, price int64)) {
	s := m.touch(k)
	within := min(n, s.remaining())
	s.draw(within, func(g *grant, n int64) {
		s.spend(g, n, m.Now)
		part(k, g, n, 1)
	})
	if more := n - within; more > 0 {
		s.exceed(more, m.Now)
		part(k, nil, more, 1)
	}
	s.entries++
}

func (m *Model) issue(g *ledger.Grant) string {
	b := m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: g.Meter, Subject: g.Subject})
	ng := grant{
		id: grantID(g), source: string(g.Source), amount: g.Amount, left: g.Amount, priority: 100, from: m.Now, until: g.ExpiresAt, state: "active",
	}
	if g.Source == ledger.SourcePromo {
		ng.priority = 50
	}
	if g.Priority != nil {
		ng.priority = *g.Priority
	}
	if g.ExpiresAt.IsZero() {
		ng.until = farAway
	}
	if g.EffectiveAt.After(m.Now) {
		ng.from, ng.state, ng.left = g.EffectiveAt, "pending", 0
	}
	if !ng.until.After(m.Now) || !ng.until.After(ng.from) {
		m.refuse(errcode.InvalidArgument)
	}
	m.refuseIfFull(b)
	if ng.state == "active" {
		b.granted += g.Amount
	}
	b.grants = append(b.grants, ng)
	b.entries++
	return fmt.Sprintf("ok left %d", b.remaining())
}

var farAway = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)

// grantID returns the id of the grant that g issues.
func grantID(g *ledger.Grant) string {
	if g.GrantID != "" {
		return g.GrantID
	}
	return derivedID("grant-", g.Key)
}

// derivedID returns the id of a grant that the ledger names by itself: prefix and the first 8 bytes of a SHA-256 sum in
// hexadecimal.
func derivedID(prefix, from string) string {
	sum := sha256.Sum256([]byte(from))
	return prefix + hex.EncodeToString(sum[:8])
}
