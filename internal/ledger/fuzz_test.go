package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/period"
)

// program drives the state machine and the model with the same random requests.
type program struct {
	t      *rapid.T
	memory *memory
	model  *model
	now    time.Time
	sent   []sent // earlier requests, to be sent again
	sticky bool   // denials are stored
	serial int
	grants []string // that earlier batches issued
	debits []string // that earlier batches made
	fresh  struct{ grants, debits []string }
}

type sent struct {
	call   func() *call
	id     string
	refers string // to the operation that it refunds
	body   string
	act    func(*model) func(*model, *modelOp) string
	answer string
}

var modelMeters = []string{"calls", "credits", "trial", "other"}

func start(t *rapid.T) *program {
	anchor := time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
	p := &program{t: t, memory: newMemory(), now: anchor.Add(time.Duration(rapid.IntRange(0, 7200).Draw(t, "birth")) * time.Second), sticky: rapid.Bool().Draw(t, "sticky")}
	p.model = &model{anchor: anchor, now: p.now, plans: map[string][]modelVersion{}, balances: map[key]*modelBalance{}, holds: map[string]*modelHold{}, ops: map[string]*modelOp{}}
	for _, plan := range []string{"small", "large"} {
		p.addVersion(plan, p.now.Add(-time.Hour))
	}
	p.changePlan("small", false, false)
	return p
}

// addVersion makes the next version of a plan in both worlds.
func (p *program) addVersion(plan string, at time.Time) { p.publish(plan, p.drawTerms(), at) }

// drawTerms makes up what a plan says of each meter.
func (p *program) drawTerms() map[string]modelTerms {
	t := p.t
	some := func(name string, lo, hi int64) *int64 {
		if rapid.Bool().Draw(t, name+"?") {
			return new(rapid.Int64Range(lo, hi).Draw(t, name))
		}
		return nil
	}
	meters := map[string]modelTerms{}
	calls := modelTerms{amount: rapid.Int64Range(0, 40).Draw(t, "amount"), rollMin: some("roll min", 0, 5), rollMax: some("roll max", 5, 20), perSubject: some("per subject", 0, 15)}
	if rapid.Bool().Draw(t, "overage") {
		calls.overage, calls.overageCap = true, some("overage cap", 0, 8)
	}
	calls.preserve = rapid.Bool().Draw(t, "preserve")
	if rapid.Bool().Draw(t, "overflow") {
		calls.overflow, calls.price = "credits", rapid.Int64Range(1, 3).Draw(t, "price")
	}
	meters["calls"] = calls
	if rapid.Bool().Draw(t, "credits in plan") {
		meters["credits"] = modelTerms{amount: rapid.Int64Range(0, 10).Draw(t, "credits")}
	}
	if rapid.Bool().Draw(t, "trial in plan") {
		meters["trial"] = modelTerms{amount: rapid.Int64Range(0, 10).Draw(t, "trial"), once: true}
	}
	return meters
}

// publish makes terms the newest version of a plan.
func (p *program) publish(plan string, meters map[string]modelTerms, at time.Time) {
	version := modelVersion{at: at, meters: meters}
	stored := planVersion{version: int32(len(p.memory.plans[plan])) + 1, createdAt: at, allowances: map[string]allowance{}}
	for meter, m := range meters {
		a := allowance{
			amount: m.amount, every: period.Hour, anchor: period.Tenant, rolloverMin: m.rollMin, rolloverMax: m.rollMax,
			overageAllowed: m.overage, overageCap: m.overageCap, overagePreserved: m.preserve, overflowMeter: m.overflow, overflowPrice: m.price, perSubject: m.perSubject,
		}
		if m.once {
			a.every = period.Once
		}
		stored.allowances[meter] = a
	}
	p.model.plans[plan] = append(p.model.plans[plan], version)
	p.memory.plans[plan] = append(p.memory.plans[plan], stored)
}

func (p *program) changePlan(plan string, now, prorate bool) {
	p.model.changes = append(p.model.changes, modelChange{at: p.now, plan: plan, now: now, prorate: prorate})
	p.memory.history = append(p.memory.history, tenantTerms{since: p.now, plan: plan, anchorAt: p.model.anchor, zone: time.UTC, now: now, prorate: prorate})
	if !now {
		return
	}
	for k, b := range p.memory.balances {
		if b.opened() {
			b.nextEvent = earlier(b.nextEvent, p.now)
			p.memory.balances[k] = b
		}
	}
}

func (p *program) tick(d time.Duration) {
	p.now = p.now.Add(d)
	p.model.now = p.now
}

// request makes one random request.
func (p *program) request() sent {
	p.serial++
	return p.requestUnder(fmt.Sprint("op", p.serial))
}

// requestUnder makes one under a key of which there may be others.
func (p *program) requestUnder(id string) sent {
	t := p.t
	amount := func() int64 { return rapid.Int64Range(1, 12).Draw(t, "amount") }
	subject := rapid.SampledFrom([]string{"", "", "ann", "bob"}).Draw(t, "subject")
	items := func(most int) []Item {
		var out []Item
		first := rapid.IntRange(0, 3).Draw(t, "meter")
		for i := range rapid.IntRange(1, most).Draw(t, "items") {
			out = append(out, Item{Meter: modelMeters[(first+i)%4], Amount: amount(), StoreDenial: p.sticky})
		}
		return out
	}
	one := func(text string, c func() *call, act func(*model) func(*model, *modelOp) string) sent {
		// A key is not part of what it stands for.
		return sent{call: c, id: id, body: strings.Replace(text, "Key:"+id+" ", "", 1), act: act}
	}
	switch rapid.SampledFrom([]string{"debit", "debit", "debit", "debit", "grant", "grant", "hold", "change", "change", "refund", "adjust", "void"}).Draw(t, "kind") {
	case "grant":
		g := Grant{Tenant: memTenant, Key: id, Meter: modelMeters[rapid.IntRange(0, 3).Draw(t, "meter")], GrantID: "g" + id, Amount: amount(), Source: rapid.SampledFrom([]Source{SourceTopup, SourcePromo}).Draw(t, "source")}
		if rapid.Bool().Draw(t, "priority?") {
			g.Priority = new(int32(rapid.IntRange(5, 15).Draw(t, "priority")))
		}
		if rapid.Bool().Draw(t, "expires?") {
			g.ExpiresAt = p.now.Add(time.Duration(rapid.IntRange(1, 200).Draw(t, "expires")) * time.Minute)
		}
		if rapid.IntRange(0, 3).Draw(t, "pending?") == 0 {
			g.EffectiveAt = p.now.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "pending")) * time.Minute)
		}
		p.fresh.grants = append(p.fresh.grants, g.GrantID)
		shown, priority := g, "none"
		if g.Priority != nil {
			shown.Priority, priority = nil, fmt.Sprint(*g.Priority) // a pointer would make equal requests look different
		}
		return one(fmt.Sprintf("%+v priority %s", shown, priority), func() *call { c := g; return c.call() }, func(m *model) func(*model, *modelOp) string { return m.issue(&g) })
	case "hold":
		h := Hold{Tenant: memTenant, Key: id, HoldID: fmt.Sprint("h", rapid.IntRange(0, 9).Draw(t, "hold")), Subject: subject, Items: items(2), TTL: time.Duration(rapid.IntRange(1, 90).Draw(t, "ttl")) * time.Minute}
		return one(fmt.Sprintf("%+v", h), func() *call { c := h; return c.call() }, func(m *model) func(*model, *modelOp) string { return m.hold(&h) })
	case "change":
		c := HoldChange{
			Tenant: memTenant, Key: id, HoldID: fmt.Sprint("h", rapid.IntRange(0, 9).Draw(t, "hold")),
			Action: rapid.SampledFrom([]HoldAction{ActionCapture, ActionCapture, ActionRelease, ActionExtend}).Draw(t, "action"),
			Final:  rapid.Bool().Draw(t, "final"), Return: rapid.SampledFrom([]ReturnPolicy{"", ReturnRegrant}).Draw(t, "return"),
		}
		if c.Action == ActionCapture && rapid.Bool().Draw(t, "parts") {
			c.Items = items(2)
		}
		if c.Action == ActionExtend {
			c.TTL = time.Duration(rapid.IntRange(1, 90).Draw(t, "ttl")) * time.Minute
		}
		p.fresh.debits = append(p.fresh.debits, id)
		return one(fmt.Sprintf("%+v", c), func() *call { x := c; return x.call() }, func(m *model) func(*model, *modelOp) string { return m.change(&c) })
	case "refund":
		r := Refund{Tenant: memTenant, Key: id, OperationID: "none", Return: rapid.SampledFrom([]ReturnPolicy{"", ReturnRegrant}).Draw(t, "return")}
		if len(p.debits) > 0 {
			r.OperationID = rapid.SampledFrom(p.debits).Draw(t, "of")
		}
		if rapid.Bool().Draw(t, "part") {
			r.Amount = amount()
		}
		refund := one(fmt.Sprintf("%+v", r), func() *call { c := r; return c.call() }, func(m *model) func(*model, *modelOp) string { return m.refund(&r) })
		refund.refers = r.OperationID
		return refund
	case "adjust":
		a := Adjust{Tenant: memTenant, Key: id, Meter: modelMeters[rapid.IntRange(0, 3).Draw(t, "meter")], Amount: rapid.SampledFrom([]int64{-7, -2, 3, 9}).Draw(t, "by"), Reason: "x"}
		return one(fmt.Sprintf("%+v", a), func() *call { c := a; return c.call() }, func(m *model) func(*model, *modelOp) string { return m.adjust(&a) })
	case "void":
		v := Void{Tenant: memTenant, Key: id, GrantID: "none", Reason: "x"}
		if len(p.grants) > 0 {
			v.GrantID = rapid.SampledFrom(p.grants).Draw(t, "grant")
		}
		return one(fmt.Sprintf("%+v", v), func() *call { c := v; return c.call() }, func(m *model) func(*model, *modelOp) string { return m.void(&v) })
	}
	d := Debit{Tenant: memTenant, Key: id, Subject: subject, Items: items(3), Mode: rapid.SampledFrom([]Mode{ModeNormal, ModeNormal, ModeBestEffort, ModeDrain}).Draw(t, "mode")}
	p.fresh.debits = append(p.fresh.debits, id)
	return one(fmt.Sprintf("%+v", d), func() *call { c := d; return c.call() }, func(m *model) func(*model, *modelOp) string { return m.debit(&d) })
}

// answerOf renders a call's answer as the model does.
func answerOf(c *call) string {
	if c.err != nil {
		e, _ := errors.AsType[*Error](c.err)
		if e.Denial != nil {
			return fmt.Sprintf("%s available %d of %s", e.Code, e.Denial.Available, e.Denial.Limiting.Meter)
		}
		return string(e.Code)
	}
	switch r := c.result.(type) {
	case *DebitResult:
		out := "ok"
		for _, item := range r.Items {
			var draws []string
			for _, d := range item.Draws {
				draws = append(draws, fmt.Sprintf("%s:%s:%d", d.Meter, d.Source, d.Amount))
			}
			out += fmt.Sprintf(" [%s %d of %d, %s, left %d]", item.Meter, item.Charged, item.Requested, strings.Join(draws, " "), item.Remaining)
		}
		return out
	case *GrantResult:
		return fmt.Sprintf("ok left %d", r.Position.Remaining)
	case *Change:
		return fmt.Sprintf("ok left %d", r.Remaining)
	case *HoldResult:
		out := "ok " + string(r.Status)
		for _, item := range r.Items {
			out += fmt.Sprintf(" [%s held %d captured %d left %d]", item.Meter, item.Held, item.Captured, item.Remaining)
		}
		return out
	case *RefundResult:
		out := "ok"
		for _, item := range r.Items {
			out += fmt.Sprintf(" [%d back, %d forfeited]", item.Refunded, item.Forfeited)
		}
		return out
	}
	return "?"
}

// suspend tells the ledger that the tenant is suspended, or not, as its callers do with every request.
func suspend(c *call, suspended bool) {
	switch r := c.req.(type) {
	case *Debit:
		r.Suspended = suspended
	case *Hold:
		r.Suspended = suspended
	}
}

// batch sends some requests as one batch, new ones, repeated ones and ones that reuse a key; it may be lost before or after
// its commit, and is then sent again.
func (p *program) batch() {
	t := p.t
	var batch []sent
	for range rapid.IntRange(1, 5).Draw(t, "batch") {
		if len(p.sent) > 0 && rapid.IntRange(0, 4).Draw(t, "again?") == 0 {
			batch = append(batch, rapid.SampledFrom(p.sent).Draw(t, "again"))
			continue
		}
		s := p.request()
		batch = append(batch, s)
		if rapid.IntRange(0, 5).Draw(t, "twin?") == 0 {
			batch = append(batch, s)
		}
		if rapid.IntRange(0, 9).Draw(t, "reuse?") == 0 {
			batch = append(batch, p.requestUnder(s.id))
		}
	}
	// What an operation refers to is looked up before its batch begins. Requests of one batch are concurrent, so one that refers
	// to another's outcome cannot expect to see it, and none is made here.
	p.grants, p.debits = append(p.grants, p.fresh.grants...), append(p.debits, p.fresh.debits...)
	p.fresh.grants, p.fresh.debits = nil, nil
	var want, got []string
	for i := range batch {
		batch[i].answer = p.model.apply(batch[i].id, batch[i].body, p.sticky, batch[i].act(p.model))
		want = append(want, batch[i].answer)
		t.Logf("%s %s %s => %s", p.now.Format(time.RFC3339), batch[i].id, batch[i].body, batch[i].answer)
	}
	p.sent = append(p.sent, batch...)
	calls := make([]*call, len(batch))
	for i := range batch {
		calls[i] = batch[i].call()
		suspend(calls[i], p.model.suspended)
	}
	// One that is sent again may succeed only now, together with its refund: those go one after the other.
	most := len(calls)
	for _, a := range batch {
		if slices.ContainsFunc(batch, func(b sent) bool { return b.refers == a.id }) {
			most = 1
		}
	}
	// L6: where the batch is cut cannot be seen.
	for from := 0; from < len(calls); {
		to := from + rapid.IntRange(1, min(most, len(calls)-from)).Draw(t, "cut")
		switch rapid.IntRange(0, 5).Draw(t, "crash") {
		case 0:
			p.memory.run(t, calls[from:to], p.now, true) // lost before its commit: nothing happened
		case 1:
			p.loseAnswer(calls[from:to])
			from = to
			continue
		}
		p.memory.run(t, calls[from:to], p.now, false)
		from = to
	}
	for _, c := range calls {
		got = append(got, answerOf(c))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Logf("changes %+v", p.model.changes)
		for k := range p.memory.balances {
			m := p.memory.load(&attempt{keys: []key{k}, force: true, demand: map[key]int64{}}, p.now)
			t.Logf("%v\n  model:  %s\n  ledger: %s", k, p.model.describe(k), describeBook(m.books[k]))
			for id, lines := range p.memory.entries {
				for _, l := range lines {
					if l.key == k {
						t.Logf("    %d %s %s %s %d -> %d", l.seq, id.id, l.kind, l.grantID, l.amount, l.remainingAfter)
					}
				}
			}
		}
		t.Fatalf("the model and the ledger disagree (-model +ledger):\n%s", diff)
	}
}

// loseAnswer runs a batch whose COMMIT is not answered, and sends again what was done: it is answered the same. (What was
// denied would be decided anew, after the rest of its batch, and is left out.)
func (p *program) loseAnswer(calls []*call) {
	p.memory.run(p.t, calls, p.now, false)
	var done []*call
	var want []string
	for _, c := range calls {
		if c.err == nil {
			done, want = append(done, c), append(want, answerOf(c))
		}
	}
	if len(done) == 0 {
		return
	}
	p.memory.run(p.t, done, p.now, false)
	for i, c := range done {
		if got := answerOf(c); got != want[i] || !c.replayed {
			p.t.Fatalf("after a lost answer %v got %q, it was %q", c.id, got, want[i])
		}
	}
}

// sweep rolls some balances, as a sweeper may or may not.
func (p *program) sweep() {
	for k, b := range p.memory.balances {
		if !b.opened() || b.nextEvent.After(p.now) {
			continue
		}
		a := &attempt{keys: []key{k}, force: true, demand: map[key]int64{}}
		m := p.memory.load(a, p.now)
		if _, err := m.advanceAll(); err != nil {
			p.t.Fatalf("sweep %v: %v", k, err)
		}
		p.memory.store(p.t, m)
	}
}

func (c *closedPeriod) account() string {
	return accountText(c.plan, c.start, c.end, [...]int64{c.opening, c.granted, c.refunded, c.used, c.expired, c.adjusted, c.overage, c.held, c.closing})
}

// compare reads every balance in memory, advanced to now, and holds it against the model.
func (p *program) compare() {
	for k := range p.memory.balances {
		a := &attempt{keys: []key{k}, force: true, demand: map[key]int64{}}
		m := p.memory.load(a, p.now)
		if _, err := m.advanceAll(); err != nil {
			p.t.Fatalf("read %v: %v", k, err)
		}
		if diff := cmp.Diff(p.model.describe(k), describeBook(m.books[k])); diff != "" {
			p.t.Fatalf("balance %v differs (-model +ledger):\n%s", k, diff)
		}
		var closed []string
		for _, c := range slices.Concat(p.memory.periods[k], m.books[k].closed) {
			closed = append(closed, c.account())
		}
		if diff := cmp.Diff(p.model.balances[k].closed, closed, cmpopts.EquateEmpty()); diff != "" {
			p.t.Fatalf("the closed periods of %v differ (-model +ledger):\n%s", k, diff)
		}
	}
	p.memory.check(p.t)
}

// TestTheStateMachineAgreesWithASecondImplementation runs random programs: all operations, duplicates, reused keys, clock
// steps over several periods, new plan versions, plan changes, a sweeper that runs or not, batches cut anywhere, crashes
// before and after the commit. QUOTASVC_SOAK_STEPS says how many steps a soak has.
func TestTheStateMachineAgreesWithASecondImplementation(t *testing.T) {
	t.Parallel()
	wanted, steps := soakSteps(t, "QUOTASVC_SOAK_STEPS"), 60
	if wanted > 0 {
		steps = 200
	}
	runPrograms(t, 100, wanted, func(t *rapid.T) int {
		p := start(t)
		for i := range steps {
			if i%10 == 9 {
				p.compare()
			}
			switch rapid.IntRange(0, 11).Draw(t, "step") {
			case 0, 1:
				p.tick(time.Duration(rapid.IntRange(0, 30).Draw(t, "minutes")) * time.Minute)
			case 2:
				p.tick(time.Duration(rapid.IntRange(0, 5).Draw(t, "hours"))*time.Hour + time.Duration(rapid.IntRange(0, 3600).Draw(t, "seconds"))*time.Second)
			case 3:
				p.sweep()
			case 4:
				p.model.suspended = rapid.IntRange(0, 3).Draw(t, "suspended") == 0
				if rapid.IntRange(0, 2).Draw(t, "plan?") == 0 {
					p.tick(time.Second)
					p.addVersion(rapid.SampledFrom([]string{"small", "large"}).Draw(t, "plan"), p.now)
				}
			case 5:
				if rapid.IntRange(0, 2).Draw(t, "change?") == 0 {
					p.tick(time.Second)
					now := rapid.Bool().Draw(t, "now")
					p.changePlan(rapid.SampledFrom([]string{"small", "large"}).Draw(t, "plan"), now, now && rapid.Bool().Draw(t, "prorate"))
				}
			default:
				p.batch()
			}
		}
		p.compare()
		return steps
	})
}
