package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Administrator is the actor of a third of the requests.
const Administrator = "key_admin"

// Request is a request that can be sent several times, also to the model.
type Request struct {
	ID     string
	Body   string              // equal for equal requests; without the key
	Call   func() *ledger.Call // returns a new call each time
	act    func(m *Model, op *operation) string
	refers string // key of the operation that it refunds
}

// Ask executes the request on m and returns the answer.
func (r *Request) Ask(m *Model, storeDenials bool) string {
	return m.apply(r.ID, r.Body, storeDenials, r.act)
}

// Try returns the answer of m to a dry run. It changes nothing.
func (r *Request) Try(m *Model) string { return m.clone().apply("try "+r.ID, r.Body, false, r.act) }

// Request draws a request with a new key.
func (p *Program) Request() Request {
	p.serial++
	return p.RequestUnder(fmt.Sprint("op", p.serial))
}

// RequestUnder draws a request with key id, which other requests may have.
func (p *Program) RequestUnder(id string) Request {
	subject := rapid.SampledFrom([]string{"", "", "ann", "bob"}).Draw(p.T, "subject")
	kinds := []string{"debit", "debit", "debit", "debit", "grant", "grant", "hold", "change", "change", "refund", "adjust", "void", "extend grant"}
	if p.paid {
		kinds = []string{"debit", "grant", "hold", "hold", "change", "change", "change", "change", "change", "refund", "refund", "refund", "void"}
	}
	switch rapid.SampledFrom(kinds).Draw(p.T, "kind") {
	case "grant":
		return p.grantRequest(id)
	case "hold":
		return p.holdRequest(id, subject)
	case "change":
		return p.changeRequest(id)
	case "refund":
		return p.refundRequest(id)
	case "adjust":
		return p.adjustRequest(id)
	case "void":
		return p.grantChangeRequest(id, ledger.VoidGrant)
	case "extend grant":
		return p.grantChangeRequest(id, ledger.ExtendGrant)
	}
	return p.debitRequest(id, subject)
}

// actorOf returns who sends the requests with a key: an administrator, a user, or nobody.
func actorOf(id string) string {
	switch id[len(id)-1] % 3 {
	case 0:
		return Administrator
	case 1:
		return "key_user"
	default:
		return ""
	}
}

// newRequest returns the request that the function call creates. text has all fields of the request. newRequest removes
// the key from it, because equal requests may have different keys.
func newRequest(id, text string, call func() *ledger.Call, act func(m *Model, op *operation) string) Request {
	asked := func() *ledger.Call {
		c := call()
		c.Actor = actorOf(id)
		return c
	}
	return Request{ID: id, Body: strings.Replace(text, "Key:"+id+" ", "", 1), Call: asked, act: act}
}

func (p *Program) drawAmount() int64 { return rapid.Int64Range(1, 12).Draw(p.T, "amount") }

func (p *Program) drawMeter() string {
	return Meters[rapid.IntRange(0, len(Meters)-1).Draw(p.T, "meter")]
}

// drawHold returns the id of an active hold in most cases. Otherwise it returns the id of any hold, or an id that no
// hold has.
func (p *Program) drawHold() string {
	var active []string
	for _, id := range slices.Sorted(maps.Keys(p.Model.holds)) {
		if h := p.Model.holds[id]; h.state == "active" && h.until.After(p.Now) {
			active = append(active, id)
		}
	}
	if len(active) == 0 || rapid.IntRange(0, 5).Draw(p.T, "any hold?") == 5 {
		return fmt.Sprint("h", rapid.IntRange(0, p.holds+1).Draw(p.T, "hold"))
	}
	return active[len(active)-1-rapid.IntRange(0, min(3, len(active)-1)).Draw(p.T, "active hold")]
}

func (p *Program) drawMinutes(most int, label string) time.Duration {
	return time.Duration(rapid.IntRange(1, most).Draw(p.T, label)) * time.Minute
}

func (p *Program) drawReturn() ledger.ReturnPolicy {
	return rapid.SampledFrom([]ledger.ReturnPolicy{"", ledger.ReturnRegrant}).Draw(p.T, "return")
}

// drawItems draws up to `most` items, each on a meter of its own.
func (p *Program) drawItems(most int) []ledger.Item {
	var out []ledger.Item
	first := rapid.IntRange(0, len(Meters)-1).Draw(p.T, "meter")
	if p.paid {
		first = 0
	}
	for i := range rapid.IntRange(1, most).Draw(p.T, "items") {
		out = append(out, ledger.Item{Meter: Meters[(first+i)%len(Meters)], Amount: p.drawAmount(), StoreDenial: p.Sticky})
	}
	return out
}

func (p *Program) debitRequest(id, subject string) Request {
	d := ledger.Debit{Tenant: Tenant, Key: id, Subject: subject, Items: p.drawItems(3)}
	modes := []ledger.Mode{ledger.ModeNormal, ledger.ModeNormal, ledger.ModeBestEffort, ledger.ModeDrain}
	d.Mode = rapid.SampledFrom(modes).Draw(p.T, "mode")
	p.fresh.debits = append(p.fresh.debits, id)
	return newRequest(id, fmt.Sprintf("%+v", d),
		func() *ledger.Call { c := d; return ledger.NewCall(&c) },
		func(m *Model, op *operation) string { return m.debit(op, &d) })
}

func (p *Program) grantRequest(id string) Request {
	t := p.T
	g := ledger.Grant{Tenant: Tenant, Key: id, Meter: p.drawMeter(), GrantID: "g" + id, Amount: p.drawAmount()}
	g.Source = rapid.SampledFrom([]ledger.Source{ledger.SourceTopup, ledger.SourcePromo}).Draw(t, "source")
	if rapid.Bool().Draw(t, "priority?") {
		g.Priority = new(int32(rapid.IntRange(5, 15).Draw(t, "priority")))
	}
	if rapid.Bool().Draw(t, "expires?") {
		g.ExpiresAt = p.Now.Add(p.drawMinutes(200, "expires"))
	}
	if rapid.IntRange(0, 3).Draw(t, "pending?") == 0 {
		g.EffectiveAt = p.Now.Add(p.drawMinutes(100, "pending"))
	}
	p.fresh.grants = append(p.fresh.grants, g.GrantID)
	shown, priority := g, "none"
	if g.Priority != nil {
		shown.Priority, priority = nil, fmt.Sprint(*g.Priority) // a pointer would make equal requests look different
	}
	return newRequest(id, fmt.Sprintf("%+v priority %s", shown, priority),
		func() *ledger.Call { c := g; return ledger.NewCall(&c) },
		func(m *Model, _ *operation) string { return m.issue(&g) })
}

func (p *Program) holdRequest(id, subject string) Request {
	if rapid.IntRange(0, 3).Draw(p.T, "new hold?") > 0 {
		p.holds++
	}
	h := ledger.Hold{Tenant: Tenant, Key: id, HoldID: fmt.Sprint("h", p.holds), Subject: subject, Items: p.drawItems(2), TTL: p.drawMinutes(90, "ttl")}
	if p.paid && rapid.Bool().Draw(p.T, "long?") {
		h.TTL = ledger.HoldTTLMax
	}
	return newRequest(id, fmt.Sprintf("%+v", h),
		func() *ledger.Call { c := h; return ledger.NewCall(&c) },
		func(m *Model, _ *operation) string { return m.hold(&h) })
}

func (p *Program) changeRequest(id string) Request {
	t := p.T
	actions := []ledger.HoldAction{ledger.ActionCapture, ledger.ActionCapture, ledger.ActionRelease, ledger.ActionExtend}
	c := ledger.HoldChange{
		Tenant: Tenant, Key: id, HoldID: p.drawHold(), Action: rapid.SampledFrom(actions).Draw(t, "action"),
		Final: rapid.Bool().Draw(t, "final"), Return: p.drawReturn(),
	}
	if c.Action == ledger.ActionCapture && rapid.Bool().Draw(t, "parts") {
		c.Items = p.drawItems(2)
	}
	if c.Action == ledger.ActionExtend {
		c.TTL = p.drawMinutes(90, "ttl")
	}
	p.fresh.debits = append(p.fresh.debits, id)
	return newRequest(id, fmt.Sprintf("%+v", c),
		func() *ledger.Call { x := c; return ledger.NewCall(&x) },
		func(m *Model, op *operation) string { return m.change(op, &c) })
}

func (p *Program) refundRequest(id string) Request {
	r := ledger.Refund{Tenant: Tenant, Key: id, OperationID: "none", Return: p.drawReturn()}
	if len(p.debits) > 0 {
		from := p.debits
		if rapid.Bool().Draw(p.T, "recent?") {
			from = from[max(0, len(from)-8):]
		}
		r.OperationID = rapid.SampledFrom(from).Draw(p.T, "of")
	}
	if rapid.Bool().Draw(p.T, "part") {
		r.Amount = p.drawAmount()
	}
	out := newRequest(id, fmt.Sprintf("%+v", r),
		func() *ledger.Call { c := r; return ledger.NewCall(&c) },
		func(m *Model, _ *operation) string { return m.refund(&r) })
	out.refers = r.OperationID
	return out
}

func (p *Program) adjustRequest(id string) Request {
	a := ledger.Adjust{Tenant: Tenant, Key: id, Meter: p.drawMeter(), Reason: "x"}
	a.Amount = rapid.SampledFrom([]int64{-7, -2, 3, 9}).Draw(p.T, "by")
	return newRequest(id, fmt.Sprintf("%+v", a),
		func() *ledger.Call { c := a; return ledger.NewCall(&c) },
		func(m *Model, _ *operation) string { return m.adjust(&a) })
}

func (p *Program) grantChangeRequest(id string, action ledger.GrantAction) Request {
	x := ledger.GrantChange{Tenant: Tenant, Key: id, GrantID: "none", Action: action, Reason: "x"}
	if len(p.grants) > 0 {
		x.GrantID = rapid.SampledFrom(p.grants).Draw(p.T, "grant")
	}
	if action == ledger.ExtendGrant && rapid.IntRange(0, 4).Draw(p.T, "ends?") > 0 {
		x.ExpiresAt = p.Now.Add(p.drawMinutes(400, "ends"))
	}
	return newRequest(id, fmt.Sprintf("%+v", x),
		func() *ledger.Call { c := x; return ledger.NewCall(&c) },
		func(m *Model, _ *operation) string { return m.changeGrant(&x) })
}
