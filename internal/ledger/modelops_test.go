package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// refused is how the model says no: the code, and for denials what was available.
type refused struct{ answer string }

func (m *model) refuse(code Code) { panic(refused{string(code)}) }

// apply answers one request: from memory, or by act on a copy that is kept only when it is not refused. stored keeps denials.
func (m *model) apply(id, body string, storeDenials bool, act func(m *model, op *modelOp) string) (answer string) {
	if old, ok := m.ops[id]; ok {
		if old.body != body {
			return string(CodeIdempotencyKeyReused)
		}
		return old.answer
	}
	work := m.clone()
	op := &modelOp{body: body}
	defer func() {
		if r := recover(); r != nil {
			no, ok := r.(refused)
			if !ok {
				panic(r)
			}
			answer = no.answer
			// Catching up is not undone by a refusal: it was due anyway.
			for _, k := range work.keys() {
				m.touch(k)
			}
			if storeDenials && strings.Contains(answer, "available") {
				m.ops[id] = &modelOp{body: body, answer: answer}
				parts := strings.Fields(answer)
				m.balances[key{memTenant, parts[len(parts)-1], ""}].entries++
			}
		}
	}()
	op.answer = act(work, op)
	work.ops[id] = op
	*m = *work
	return op.answer
}

// wellParts is how the model splits amount: own grants, units paid by the overflow meter, overage.
func (m *model) wellParts(meter, subject string, amount int64) (own, over, overage, bound int64) {
	b := m.touch(key{memTenant, meter, ""})
	bound = amount
	if subject != "" && b.plan != "" && b.terms.perSubject != nil {
		bound = min(bound, m.touch(key{memTenant, meter, subject}).remaining())
	}
	own = min(bound, b.remaining())
	rest := bound - own
	if b.plan != "" && b.terms.overflow != "" && amount > b.remaining() {
		over = min(rest, m.touch(key{memTenant, b.terms.overflow, ""}).remaining()/b.terms.price)
		rest -= over
	}
	if b.plan != "" && b.terms.overage {
		room := MaxAmount - b.overage
		if b.terms.overageCap != nil {
			room = max(0, *b.terms.overageCap-b.overage)
		}
		overage = min(rest, room)
	}
	return own, over, overage, bound
}

func (m *model) deny(meter, subject string, amount, available int64) {
	b := m.touch(key{memTenant, meter, ""})
	if b.plan == "" && b.entries == 0 {
		m.refuse(CodeMeterNotInPlan)
	}
	limiting := b
	if subject != "" && b.plan != "" && b.terms.perSubject != nil {
		if s := m.touch(key{memTenant, meter, subject}); s.remaining() < amount {
			limiting = s
		}
	}
	code := CodeCreditsExhausted
	if limiting.plan != "" && !limiting.terms.once && limiting.terms.amount > 0 {
		code = CodeQuotaExceeded
	}
	panic(refused{fmt.Sprintf("%s available %d of %s", code, available, meter)})
}

// refuseIfSuspended says no to a suspended tenant's new use.
func (m *model) refuseIfSuspended(meter string) {
	if m.suspended {
		m.touch(key{memTenant, meter, ""})
		m.refuse(CodeTenantSuspended)
	}
}

func (m *model) debit(d *Debit) func(*model, *modelOp) string {
	return func(m *model, op *modelOp) string {
		m.refuseIfSuspended(d.Items[0].Meter)
		op.refundable, op.items = true, len(d.Items)
		answer := "ok"
		for i, item := range d.Items {
			answer += m.debitItem(op, i, item.Meter, d.Subject, item.Amount, d.Mode)
		}
		return answer
	}
}

func (m *model) debitItem(op *modelOp, i int, meter, subject string, amount int64, mode Mode) string {
	k := key{memTenant, meter, ""}
	b := m.touch(k)
	own, over, overage, _ := m.wellParts(meter, subject, amount)
	if mode == ModeDrain {
		overage = 0
	}
	charged := own + over + overage
	if charged < amount && (mode == "" || mode == ModeNormal || b.plan == "" && b.entries == 0) {
		m.deny(meter, subject, amount, charged)
	}
	var draws []string
	part := func(on key, g *modelGrant, n, price int64, source string) {
		id := ""
		if g != nil {
			id = g.id
		}
		op.parts = append(op.parts, modelPart{item: i, meter: meter, balance: on, grant: id, source: source, price: price, amount: n, overage: g == nil, start: m.balances[on].start})
	}
	b.draw(own, func(g *modelGrant, n int64) {
		b.used += n
		draws = append(draws, fmt.Sprintf("%s:%s:%d", meter, g.source, n))
		part(k, g, n, 1, g.source)
	})
	if over > 0 {
		ok := key{memTenant, b.terms.overflow, ""}
		o := m.touch(ok)
		o.draw(over*b.terms.price, func(g *modelGrant, n int64) {
			o.used += n
			draws = append(draws, fmt.Sprintf("%s:%s:%d", b.terms.overflow, g.source, n))
			part(ok, g, n, -b.terms.price, g.source)
		})
		o.entries++
	}
	beyond := overage
	if mode == ModeDrain {
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
		op.parts = append(op.parts, modelPart{item: i, meter: meter, balance: k, price: 1}) // the line that remembers the operation
	}
	if subject != "" && b.plan != "" && b.terms.perSubject != nil {
		sk := key{memTenant, meter, subject}
		s := m.touch(sk)
		s.draw(min(charged+beyond-overage, s.remaining()), func(g *modelGrant, n int64) {
			s.used += n
			part(sk, g, n, 1, g.source)
		})
		s.entries++
	}
	return fmt.Sprintf(" [%s %d of %d, %s, left %d]", meter, charged, amount, strings.Join(draws, " "), b.remaining())
}

func (m *model) issue(g *Grant) func(*model, *modelOp) string {
	return func(m *model, _ *modelOp) string {
		b := m.touch(key{memTenant, g.Meter, g.Subject})
		ng := modelGrant{
			id: g.id(), source: string(g.Source), amount: g.Amount, left: g.Amount, priority: 100, from: m.now, until: g.ExpiresAt, state: "active",
		}
		if g.Source == SourcePromo {
			ng.priority = 50
		}
		if g.Priority != nil {
			ng.priority = *g.Priority
		}
		if g.ExpiresAt.IsZero() {
			ng.until = farAway
		}
		if g.EffectiveAt.After(m.now) {
			ng.from, ng.state, ng.left = g.EffectiveAt, "pending", 0
		}
		if !ng.until.After(m.now) || !ng.until.After(ng.from) {
			m.refuse(CodeInvalidArgument)
		}
		if ng.state == "active" {
			b.granted += g.Amount
		}
		b.grants = append(b.grants, ng)
		b.entries++
		return fmt.Sprintf("ok left %d", b.remaining())
	}
}

var farAway = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)

func (m *model) hold(h *Hold) func(*model, *modelOp) string {
	return func(m *model, _ *modelOp) string {
		m.refuseIfSuspended(h.Items[0].Meter)
		m.touch(key{memTenant, h.Items[0].Meter, ""})
		if m.holds[h.HoldID] != nil {
			m.refuse(CodeConflict)
		}
		until := m.now.Add(h.TTL)
		row := &modelHold{state: "active", subject: h.Subject, until: until}
		for i, item := range h.Items {
			row.meters = append(row.meters, item.Meter)
			row.captured = append(row.captured, 0)
			own, over, _, _ := m.wellParts(item.Meter, h.Subject, item.Amount)
			if own+over < item.Amount {
				m.deny(item.Meter, h.Subject, item.Amount, own+over)
			}
			k := key{memTenant, item.Meter, ""}
			b := m.touch(k)
			reserve := func(on key, n, price int64, subject bool) {
				o := m.touch(on)
				o.draw(n, func(g *modelGrant, part int64) {
					g.held += part
					m.reserves = append(m.reserves, modelReserve{hold: h.HoldID, item: i, line: m.reservesOf(h.HoldID) + 1, subject: subject, balance: on, grant: g.id, source: g.source, price: price, left: part, until: until})
				})
				o.entries++
			}
			reserve(k, own, 1, false)
			if over > 0 {
				reserve(key{memTenant, b.terms.overflow, ""}, over*b.terms.price, -b.terms.price, false)
			}
			if h.Subject != "" && b.plan != "" && b.terms.perSubject != nil {
				reserve(key{memTenant, item.Meter, h.Subject}, own+over, 1, true)
			}
		}
		m.holds[h.HoldID] = row
		return m.showHold(h.HoldID)
	}
}

func (m *model) reservesOf(id string) int {
	n := 0
	for _, r := range m.reserves {
		if r.hold == id {
			n++
		}
	}
	return n
}

// heldUnits is how many units of item i a hold still reserves.
func (m *model) heldUnits(id string, i int) int64 {
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

func (m *model) showHold(id string) string {
	h := m.holds[id]
	out := "ok " + h.state
	for i, meter := range h.meters {
		out += fmt.Sprintf(" [%s held %d captured %d left %d]", meter, m.heldUnits(id, i), h.captured[i], m.touch(key{memTenant, meter, ""}).remaining())
	}
	return out
}

func (m *model) change(c *HoldChange) func(*model, *modelOp) string {
	return func(m *model, op *modelOp) string {
		h := m.holds[c.HoldID]
		if h == nil {
			m.refuse(CodeHoldNotFound)
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
			m.refuse(CodeHoldNotActive)
		}
		release := func() {
			for i := range m.reserves {
				if r := &m.reserves[i]; r.hold == c.HoldID && r.left > 0 {
					m.giveBack(r, r.left, c.Return, m.now)
				}
			}
		}
		switch c.Action {
		case ActionExtend:
			if until := m.now.Add(c.TTL); until.After(h.until) {
				h.until = until
			}
			for i := range m.reserves {
				if m.reserves[i].hold == c.HoldID {
					m.reserves[i].until = h.until
				}
			}
		case ActionRelease:
			release()
			h.state = "released"
			if slices.Max(h.captured) > 0 {
				h.state = "captured"
			}
		case ActionCapture:
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
}

func (m *model) capture(c *HoldChange, h *modelHold, op *modelOp) {
	op.refundable = true
	for i, meter := range h.meters {
		amount := m.heldUnits(c.HoldID, i)
		if len(c.Items) > 0 {
			at := slices.IndexFunc(c.Items, func(it Item) bool { return it.Meter == meter })
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
			op.parts = append(op.parts, modelPart{item: i, meter: meter, balance: r.balance, grant: r.grant, source: r.source, price: r.price, amount: n, start: b.start})
		}
		h.captured[i] += amount
		if extra := amount - part; extra > 0 {
			m.debitItem(op, i, meter, h.subject, extra, ModeNormal)
		}
	}
	for _, item := range c.Items {
		if !slices.Contains(h.meters, item.Meter) {
			m.refuse(CodeInvalidArgument)
		}
	}
}
