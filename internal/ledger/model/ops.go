package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// refused is how the model says no: the code, and for denials what was available.
type refused struct{ answer string }

func (m *Model) refuse(code ledger.Code) { panic(refused{string(code)}) }

// apply answers one request: from memory, or by act on a copy that is kept only when it is not refused. stored keeps denials.
func (m *Model) apply(id, body string, storeDenials bool, act func(m *Model, op *operation) string) (answer string) {
	if old, ok := m.ops[id]; ok {
		if old.body != body {
			return string(ledger.CodeIdempotencyKeyReused)
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
			answer = no.answer
			// Catching up is not undone by a refusal: it was due anyway.
			for _, k := range work.Keys() {
				m.touch(k)
			}
			if storeDenials && strings.Contains(answer, "available") {
				m.ops[id] = &operation{body: body, answer: answer}
				parts := strings.Fields(answer)
				m.balances[ledger.BalanceKey{Tenant: Tenant, Meter: parts[len(parts)-1], Subject: ""}].entries++
			}
		}
	}()
	op.answer = act(work, op)
	work.ops[id] = op
	*m = *work
	return op.answer
}

// wellParts is how the model splits amount: own grants, units paid by the overflow meter, overage.
func (m *Model) wellParts(meter, subject string, amount int64) (own, over, overage, bound int64) {
	b := m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: meter, Subject: ""})
	bound = amount
	if subject != "" && b.plan != "" && b.terms.perSubject != nil {
		bound = min(bound, m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: meter, Subject: subject}).remaining())
	}
	own = min(bound, b.remaining())
	rest := bound - own
	if b.plan != "" && b.terms.overflow != "" && amount > b.remaining() {
		over = min(rest, m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: b.terms.overflow, Subject: ""}).remaining()/b.terms.price)
		rest -= over
	}
	if b.plan != "" && b.terms.overage {
		room := ledger.MaxAmount - b.overage
		if b.terms.overageCap != nil {
			room = max(0, *b.terms.overageCap-b.overage)
		}
		overage = min(rest, room)
	}
	return own, over, overage, bound
}

func (m *Model) deny(meter, subject string, amount, available int64) {
	b := m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: meter, Subject: ""})
	if b.plan == "" && b.entries == 0 {
		m.refuse(ledger.CodeMeterNotInPlan)
	}
	limiting := b
	if subject != "" && b.plan != "" && b.terms.perSubject != nil {
		if s := m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: meter, Subject: subject}); s.remaining() < amount {
			limiting = s
		}
	}
	code := ledger.CodeCreditsExhausted
	if limiting.plan != "" && !limiting.terms.once && limiting.terms.amount > 0 {
		code = ledger.CodeQuotaExceeded
	}
	panic(refused{fmt.Sprintf("%s available %d of %s", code, available, meter)})
}

// refuseIfSuspended says no to a suspended tenant's new use.
func (m *Model) refuseIfSuspended(meter string) {
	if m.Suspended {
		m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: meter, Subject: ""})
		m.refuse(ledger.CodeTenantSuspended)
	}
}

func (m *Model) debit(op *operation, d *ledger.Debit) string {
	m.refuseIfSuspended(d.Items[0].Meter)
	op.refundable, op.items = true, len(d.Items)
	answer := "ok"
	for i, item := range d.Items {
		answer += m.debitItem(op, i, item.Meter, d.Subject, item.Amount, d.Mode)
	}
	return answer
}

func (m *Model) debitItem(op *operation, i int, meter, subject string, amount int64, mode ledger.Mode) string {
	k := ledger.BalanceKey{Tenant: Tenant, Meter: meter, Subject: ""}
	b := m.touch(k)
	own, over, overage, _ := m.wellParts(meter, subject, amount)
	if mode == ledger.ModeDrain {
		overage = 0
	}
	charged := own + over + overage
	if charged < amount && (mode == "" || mode == ledger.ModeNormal || b.plan == "" && b.entries == 0) {
		m.deny(meter, subject, amount, charged)
	}
	var draws []string
	part := func(on ledger.BalanceKey, g *grant, n, price int64, source string) {
		id := ""
		if g != nil {
			id = g.id
		}
		op.parts = append(op.parts, usedPart{item: i, meter: meter, balance: on, grant: id, source: source, price: price, amount: n, overage: g == nil, start: m.balances[on].start})
	}
	b.draw(own, func(g *grant, n int64) {
		b.used += n
		draws = append(draws, fmt.Sprintf("%s:%s:%d", meter, g.source, n))
		part(k, g, n, 1, g.source)
	})
	if over > 0 {
		ok := ledger.BalanceKey{Tenant: Tenant, Meter: b.terms.overflow, Subject: ""}
		o := m.touch(ok)
		o.draw(over*b.terms.price, func(g *grant, n int64) {
			o.used += n
			draws = append(draws, fmt.Sprintf("%s:%s:%d", b.terms.overflow, g.source, n))
			part(ok, g, n, -b.terms.price, g.source)
		})
		o.entries++
	}
	beyond := overage
	if mode == ledger.ModeDrain {
		beyond = amount - charged
	}
	if beyond > 0 {
		b.overage += beyond
		part(k, nil, beyond, 1, "overage")
		if overage > 0 {
			draws = append(draws, fmt.Sprintf("%s:overage:%d", meter, overage))
		}
	}
	b.entries++
	if charged+beyond == 0 {
		op.parts = append(op.parts, usedPart{item: i, meter: meter, balance: k, price: 1}) // the line that remembers the operation
	}
	if subject != "" && b.plan != "" && b.terms.perSubject != nil {
		sk := ledger.BalanceKey{Tenant: Tenant, Meter: meter, Subject: subject}
		s := m.touch(sk)
		s.draw(min(charged+beyond-overage, s.remaining()), func(g *grant, n int64) {
			s.used += n
			part(sk, g, n, 1, g.source)
		})
		s.entries++
	}
	return fmt.Sprintf(" [%s %d of %d, %s, left %d]", meter, charged, amount, strings.Join(draws, " "), b.remaining())
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
		m.refuse(ledger.CodeInvalidArgument)
	}
	if ng.state == "active" {
		b.granted += g.Amount
	}
	b.grants = append(b.grants, ng)
	b.entries++
	return fmt.Sprintf("ok left %d", b.remaining())
}

var farAway = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)

func (m *Model) hold(h *ledger.Hold) string {
	m.refuseIfSuspended(h.Items[0].Meter)
	m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: h.Items[0].Meter, Subject: ""})
	if m.holds[h.HoldID] != nil {
		m.refuse(ledger.CodeConflict)
	}
	until := m.Now.Add(h.TTL)
	row := &hold{state: "active", subject: h.Subject, until: until}
	for i, item := range h.Items {
		row.meters = append(row.meters, item.Meter)
		row.captured = append(row.captured, 0)
		own, over, _, _ := m.wellParts(item.Meter, h.Subject, item.Amount)
		if own+over < item.Amount {
			m.deny(item.Meter, h.Subject, item.Amount, own+over)
		}
		k := ledger.BalanceKey{Tenant: Tenant, Meter: item.Meter, Subject: ""}
		b := m.touch(k)
		reserve := func(on ledger.BalanceKey, n, price int64, subject bool) {
			o := m.touch(on)
			o.draw(n, func(g *grant, part int64) {
				g.held += part
				m.reserves = append(m.reserves, reservation{hold: h.HoldID, item: i, line: m.reservesOf(h.HoldID) + 1, subject: subject, balance: on, grant: g.id, source: g.source, price: price, left: part, until: until})
			})
			o.entries++
		}
		reserve(k, own, 1, false)
		if over > 0 {
			reserve(ledger.BalanceKey{Tenant: Tenant, Meter: b.terms.overflow, Subject: ""}, over*b.terms.price, -b.terms.price, false)
		}
		if h.Subject != "" && b.plan != "" && b.terms.perSubject != nil {
			reserve(ledger.BalanceKey{Tenant: Tenant, Meter: item.Meter, Subject: h.Subject}, own+over, 1, true)
		}
	}
	m.holds[h.HoldID] = row
	return m.showHold(h.HoldID)
}

func (m *Model) reservesOf(id string) int {
	n := 0
	for _, r := range m.reserves {
		if r.hold == id {
			n++
		}
	}
	return n
}

// heldUnits is how many units of item i a hold still reserves.
func (m *Model) heldUnits(id string, i int) int64 {
	own, cost, price := int64(0), int64(0), int64(1)
	for _, r := range m.reserves {
		if r.hold != id || r.item != i || r.subject {
			continue
		}
		if r.price < 0 {
			cost, price = cost+r.left, -r.price
		} else {
			own += r.left
		}
	}
	return own + cost/price
}

func (m *Model) showHold(id string) string {
	h := m.holds[id]
	out := "ok " + h.state
	for i, meter := range h.meters {
		out += fmt.Sprintf(" [%s held %d captured %d left %d]", meter, m.heldUnits(id, i), h.captured[i], m.touch(ledger.BalanceKey{Tenant: Tenant, Meter: meter, Subject: ""}).remaining())
	}
	return out
}

func (m *Model) change(op *operation, c *ledger.HoldChange) string {
	h := m.holds[c.HoldID]
	if h == nil {
		m.refuse(ledger.CodeHoldNotFound)
	}
	left := int64(0)
	for i := range m.reserves {
		if m.reserves[i].hold == c.HoldID {
			m.touch(m.reserves[i].balance)
		}
	}
	for _, r := range m.reserves {
		if r.hold == c.HoldID {
			left += r.left
		}
	}
	if h.state != "active" || left == 0 {
		m.refuse(ledger.CodeHoldNotActive)
	}
	release := func() {
		for i := range m.reserves {
			if r := &m.reserves[i]; r.hold == c.HoldID && r.left > 0 {
				m.giveBack(r, r.left, c.Return, m.Now)
			}
		}
	}
	switch c.Action {
	case ledger.ActionExtend:
		if until := m.Now.Add(c.TTL); until.After(h.until) {
			h.until = until
		}
		for i := range m.reserves {
			if m.reserves[i].hold == c.HoldID {
				m.reserves[i].until = h.until
			}
		}
	case ledger.ActionRelease:
		release()
		h.state = "released"
		if slices.Max(h.captured) > 0 {
			h.state = "captured"
		}
	case ledger.ActionCapture:
		m.capture(c, h, op)
		if c.Final || len(c.Items) == 0 {
			release()
		}
		left = 0
		for _, r := range m.reserves {
			if r.hold == c.HoldID {
				left += r.left
			}
		}
		if left == 0 {
			h.state = "captured"
		}
	}
	return m.showHold(c.HoldID)
}

func (m *Model) capture(c *ledger.HoldChange, h *hold, op *operation) {
	op.refundable = true
	for i, meter := range h.meters {
		amount := m.heldUnits(c.HoldID, i)
		if len(c.Items) > 0 {
			at := slices.IndexFunc(c.Items, func(it ledger.Item) bool { return it.Meter == meter })
			if at < 0 {
				continue
			}
			amount = c.Items[at].Amount
		}
		if amount == 0 {
			continue
		}
		part := min(amount, m.heldUnits(c.HoldID, i))
		tenant, subject, cost := part, part, int64(-1)
		for j := range m.reserves {
			r := &m.reserves[j]
			if r.hold != c.HoldID || r.item != i {
				continue
			}
			var n int64
			switch {
			case r.subject:
				n = min(subject, r.left)
				subject -= n
			case r.price == 1:
				n = min(tenant, r.left)
				tenant -= n
			default:
				if cost < 0 {
					cost = tenant * -r.price
				}
				n = min(cost, r.left)
				cost -= n
			}
			if n == 0 {
				continue
			}
			r.left -= n
			b := m.balances[r.balance]
			b.grant(r.grant).held -= n
			b.used += n
			op.parts = append(op.parts, usedPart{item: i, meter: meter, balance: r.balance, grant: r.grant, source: r.source, price: r.price, amount: n, start: b.start})
		}
		h.captured[i] += amount
		if extra := amount - part; extra > 0 {
			m.debitItem(op, i, meter, h.subject, extra, ledger.ModeNormal)
		}
	}
	for _, item := range c.Items {
		if !slices.Contains(h.meters, item.Meter) {
			m.refuse(ledger.CodeInvalidArgument)
		}
	}
}

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
