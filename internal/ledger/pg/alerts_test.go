package pg

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// alerts returns the thresholds and exhaustions of a balance, in the order in which they are listed. Each has its
// threshold or "exhausted", and the used units, the limit and the remaining units.
func (b *bundle) alerts(tenant, meter, subject string) []string {
	b.t.Helper()
	return list[string](b, `
		SELECT concat_ws(' ', coalesce(data->>'threshold', 'exhausted'), data->>'used', data->>'limit',
		                 data->>'remaining')
		FROM events
		WHERE tenant_id = $1 AND meter = $2 AND subject = $3
		  AND type IN ('balance.threshold_reached', 'balance.exhausted')
		ORDER BY at, event_key`, tenant, meter, subject)
}

// prepaid signs up a tenant whose balance of credits has no end and no allowance.
func (b *bundle) prepaid(tenant string) {
	b.t.Helper()
	at := time.Now().Add(-time.Hour).UTC()
	b.plan("prepaid-"+tenant, 1, at, "credits 0 once calendar")
	b.tenant(tenant, "prepaid-"+tenant, at, at, "UTC")
}

func creditsOf(tenant, key string, amount int64) *ledger.Debit {
	return &ledger.Debit{Tenant: tenant, Key: key, Items: []ledger.Item{{Meter: "credits", Amount: amount}}}
}

func TestEvents_Prepaid_EachTopUpArmsTheThresholds(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.prepaid("pat")
	b.mustGrant("pat", "g1", "credits", 1000)
	b.mustDebit(creditsOf("pat", "d1", 850))
	b.mustGrant("pat", "g2", "credits", 10_000)
	b.mustDebit(creditsOf("pat", "d2", 9000))
	b.mustDebit(creditsOf("pat", "d3", 1150))
	b.mustGrant("pat", "g3", "credits", 1) // 11,000 of 11,001: the share stays above both
	b.mustDebit(creditsOf("pat", "d4", 1))
	wantEqual(t, "alerts", b.alerts("pat", "credits", ""), []string{
		"80 850 1000 150", "80 9850 11000 1150", "100 11000 11000 0", "exhausted 11000 11000 0", "100 11001 11001 0",
		"exhausted 11001 11001 0",
	})
	b.mustVerify()
}

// Whatever raises what can be used arms the thresholds; what only gives units back does not.
func TestEvents_WhatArmsAThreshold(t *testing.T) {
	t.Parallel()
	b, moved := newMovedBundle(t)
	hour := func(n int) time.Time { return time.Now().Add(time.Duration(n) * time.Hour) }
	for name, c := range map[string]struct {
		raise func(tenant string)
		want  []string // after "80 85 100 15", when 95 units are used
	}{
		"top-up": {func(tenant string) { b.mustGrant(tenant, "g", "credits", 18) }, []string{"80 95 118 23"}},
		"adjustment": {func(tenant string) {
			mustDo(b, &ledger.Adjust{Tenant: tenant, Key: "a", Meter: "credits", Amount: 18, Reason: "r"})
		}, []string{"80 95 118 23"}},
		"too little": {func(tenant string) { b.mustGrant(tenant, "g", "credits", 3) }, nil},
		"grant that takes effect later": {func(tenant string) {
			g := topupOf(tenant, "g", "credits", 18)
			g.EffectiveAt = hour(1)
			mustDo(b, g)
			b.mustDebit(creditsOf(tenant, "before", 5)) // it arms nothing yet
			moved.Advance(2 * time.Hour)
			mustDo(b, &ledger.Refund{Tenant: tenant, Key: "rb", OperationID: "before"})
		}, []string{"80 95 118 23"}},
		"refund": {func(tenant string) {
			mustDo(b, &ledger.Refund{Tenant: tenant, Key: "r", OperationID: "d", Amount: 10})
			b.mustDebit(creditsOf(tenant, "again", 10))
		}, nil},
		"refund, then a top-up": {func(tenant string) {
			mustDo(b, &ledger.Refund{Tenant: tenant, Key: "r", OperationID: "d", Amount: 10})
			b.mustGrant(tenant, "g", "credits", 10)
			b.mustDebit(creditsOf(tenant, "again", 10))
		}, []string{"80 95 110 15"}},
		"hold and release": {func(tenant string) {
			items := []ledger.Item{{Meter: "credits", Amount: 14}}
			mustDo(b, &ledger.Hold{Tenant: tenant, Key: "h", HoldID: "h", Items: items})
			mustDo(b, &ledger.HoldChange{Tenant: tenant, Key: "x", HoldID: "h", Action: ledger.ActionRelease})
		}, nil},
		"void": {func(tenant string) {
			b.mustGrant(tenant, "v", "credits", 50)
			mustDo(b, &ledger.GrantChange{Action: ledger.VoidGrant, Tenant: tenant, Key: "x", GrantID: one[string](b,
				"SELECT grant_id FROM grants WHERE tenant_id = $1 AND operation_id = 'v'", tenant), Reason: "r"})
		}, []string{"80 85 100 15"}},
	} {
		tenant := strings.NewReplacer(" ", "-", ",", "").Replace(name)
		b.prepaid(tenant)
		b.mustGrant(tenant, "first", "credits", 100)
		b.mustDebit(creditsOf(tenant, "d", 85))
		c.raise(tenant)
		b.mustDebit(creditsOf(tenant, "last", 10))
		wantEqual(t, name, b.alerts(tenant, "credits", ""), append([]string{"80 85 100 15"}, c.want...))
	}
	b.mustVerify()
}

// A refund whose grant has ended issues its units anew. This arms thresholds as a top-up does.
func TestEvents_RefundWithRegrant_Arms(t *testing.T) {
	t.Parallel()
	b, moved := newMovedBundle(t)
	for _, policy := range []ledger.ReturnPolicy{ledger.ReturnForfeit, ledger.ReturnRegrant} {
		tenant := string(policy)
		b.prepaid(tenant)
		g := topupOf(tenant, "g", "credits", 100)
		g.ExpiresAt = time.Now().Add(24 * time.Hour)
		mustDo(b, g)
		b.mustDebit(creditsOf(tenant, "d", 85))
	}
	moved.Advance(25 * time.Hour)
	for _, policy := range []ledger.ReturnPolicy{ledger.ReturnForfeit, ledger.ReturnRegrant} {
		mustDo(b, &ledger.Refund{Tenant: string(policy), Key: "r", OperationID: "d", Amount: 40, Return: policy})
	}
	b.mustDebit(creditsOf("regrant", "again", 40))
	wantRefusal(b, errcode.CreditsExhausted, creditsOf("forfeit", "again", 1))
	first := []string{"80 85 100 15", "exhausted 85 85 0"}
	wantEqual(t, "regrant", b.alerts("regrant", "credits", ""),
		append(first, "80 85 85 0", "100 85 85 0", "exhausted 85 85 0"))
	wantEqual(t, "forfeit", b.alerts("forfeit", "credits", ""), first)
	b.mustVerify()
}

// One debit crosses five thresholds. They are listed in the order of cause, also if a top-up of the same transaction
// arms them, and if another transaction has the same instant.
func TestEvents_OneTransaction_ListedInOrderOfCause(t *testing.T) {
	t.Parallel()
	b := newBundle(t, func(c *Config) { c.Lanes = 1 })
	for i := range 8 {
		tenant := fmt.Sprint("t", i)
		b.simple(tenant, 100)
		if i == 0 {
			b.exec("UPDATE plan_allowances SET alert_at = '{10,50,80,100,150}', overage_policy = 'allow'")
		}
		calls := []*ledger.Call{
			ledger.NewCall(debitOf(tenant, "d", 200)), ledger.NewCall(topupOf(tenant, "t", "api_calls", 400)),
			ledger.NewCall(debitOf(tenant, "e", 400)),
		}
		b.runQueued(t.Context(), []group{{calls: calls, by: time.Now().Add(5 * time.Second)}})
		for _, c := range calls {
			require.True(t, c.Err == nil, c.Err)
		}
		const inOrder = `SELECT coalesce(data->>'threshold', type) FROM events WHERE tenant_id = $1
			ORDER BY at, event_key`
		all := list[string](b, inOrder, tenant)
		wantEqual(t, "events", all, []string{
			"10", "50", "80", "100", "balance.exhausted", "150", "grant.created",
			"50", "80", "100", "balance.exhausted",
		})
	}
}

// A batch opens a period, tells a threshold in it and arms it.
func TestEvents_PeriodOpenedInTheSameBatch_ArmedThere(t *testing.T) {
	t.Parallel()
	b, moved := newMovedBundle(t)
	b.simple("acme", 100)
	b.debit("acme", "before", 85)
	moved.Advance(31 * 24 * time.Hour)
	calls := []*ledger.Call{
		ledger.NewCall(debitOf("acme", "d", 90)), ledger.NewCall(topupOf("acme", "t", "api_calls", 100)),
	}
	b.runQueued(t.Context(), []group{{calls: calls, by: time.Now().Add(5 * time.Second)}})
	for _, c := range calls {
		require.True(t, c.Err == nil, c.Err)
	}
	b.debit("acme", "e", 70)
	want := []string{"80 85 100 15", "80 90 100 10", "80 160 200 40"}
	wantEqual(t, "alerts", b.alerts("acme", "api_calls", ""), want)
}

// What takes units away and leaves nothing tells only that nothing is left.
func TestEvents_ChangeThatLeavesNothing_TellsExhaustedAlone(t *testing.T) {
	t.Parallel()
	b, moved := newMovedBundle(t)
	begin := func(tenant string) {
		b.prepaid(tenant)
		g := topupOf(tenant, "g", "credits", 100)
		g.GrantID, g.ExpiresAt = "g", time.Now().Add(24*time.Hour)
		mustDo(b, g)
		b.mustDebit(creditsOf(tenant, "d", 60))
	}
	begin("adjusted")
	mustDo(b, &ledger.Adjust{Tenant: "adjusted", Key: "a", Meter: "credits", Amount: -40, Reason: "r"})
	begin("voided")
	mustDo(b, &ledger.GrantChange{Action: ledger.VoidGrant, Tenant: "voided", Key: "v", GrantID: "g", Reason: "r"})
	begin("expired")
	begin("lowered") // a change that leaves something tells the threshold that it crosses
	mustDo(b, &ledger.Adjust{Tenant: "lowered", Key: "a", Meter: "credits", Amount: -30, Reason: "r"})
	mustDo(b, &ledger.Adjust{Tenant: "lowered", Key: "b", Meter: "credits", Amount: -10, Reason: "r"})
	moved.Advance(25 * time.Hour)
	require.NoError(t, b.NewSweep().Run(t.Context()))
	for _, tenant := range []string{"adjusted", "voided", "expired"} {
		wantEqual(t, tenant, b.alerts(tenant, "credits", ""), []string{"exhausted 60 60 0"})
	}
	wantEqual(t, "lowered", b.alerts("lowered", "credits", ""), []string{"80 60 70 10", "exhausted 60 60 0"})

	// Nothing is left of the plan's allowance either after a change to a smaller plan.
	b.simple("downgraded", 1000)
	b.debit("downgraded", "d", 600)
	b.simple("other", 500)
	b.changeNow("downgraded", "plan-500", b.now())
	wantRefusal(b, errcode.QuotaExceeded, debitOf("downgraded", "e", 1))
	wantRefusal(b, errcode.QuotaExceeded, debitOf("downgraded", "f", 1))
	wantEqual(t, "downgraded", b.alerts("downgraded", "api_calls", ""), []string{"exhausted 600 600 0"})

	// A change that gives the allowance anew ends the rest of the old one and gives the new one in one step.
	b.simple("none", 0).simple("little", 100)
	for tenant, plan := range map[string]string{"emptied": "plan-0", "reduced": "plan-100", "renewed": "plan-1000"} {
		b.simple(tenant, 1000)
		b.debit(tenant, "d", 600)
		b.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, at_once, usage)
			SELECT tenant_id, $2, $3, anchor, timezone, true, 'reset' FROM tenants WHERE tenant_id = $1`,
			tenant, b.now(), plan)
	}
	wantRefusal(b, errcode.CreditsExhausted, debitOf("emptied", "e", 1))
	b.mustDebit(debitOf("reduced", "e", 1))
	b.mustDebit(debitOf("renewed", "e", 1))
	wantEqual(t, "emptied", b.alerts("emptied", "api_calls", ""), []string{"exhausted 600 600 0"})
	wantEqual(t, "reduced", b.alerts("reduced", "api_calls", ""), []string{"80 600 700 100"})
	wantEqual(t, "renewed", b.alerts("renewed", "api_calls", ""), []string{})
	expired := list[string](b, "SELECT tenant_id FROM events WHERE meter = 'api_calls' AND type = 'grant.expired'")
	wantEqual(t, "allowances whose end is told though a change ended them", expired, []string{})
	b.mustVerify()
}

// TestEvents_RandomPrograms_ToldAsTheJournalSays compares the events of random programs with those that follow from the
// journal. Two instances run the operations of a tenant at once. In one program time passes. In the other one
// connections break, answers to COMMIT are lost, and instances are killed.
func TestEvents_RandomPrograms_ToldAsTheJournalSays(t *testing.T) {
	t.Parallel()
	rounds := 60
	t.Run("time", func(t *testing.T) {
		t.Parallel()
		b, moved := newMovedBundle(t)
		both := []*Ledger{b.Ledger, openLedger(t, b.url, func(c *Config) { c.Clock = b.cfg.Clock })}
		p := b.newAlertProgram(true)
		for range rounds {
			p.round(func(n int, do func(*Ledger)) { do(both[n%2]) })
			if rand.IntN(3) == 0 {
				moved.Advance(time.Duration(rand.IntN(50)) * time.Minute)
			}
		}
		p.compare()
	})
	t.Run("faults", func(t *testing.T) {
		t.Parallel()
		b := newBundle(t)
		f := startFleet(t, b.url)
		p := b.newAlertProgram(false)
		calm := f.disturb()
		var late sync.WaitGroup
		for range rounds {
			p.round(func(n int, do func(*Ledger)) {
				ask(f, &late, n, func(l *Ledger) bool { do(l); return true })
			})
		}
		late.Wait()
		require.NoError(t, calm())
		t.Logf("%+v", f.counts)
		p.compare()
	})
}

// alertProgram is a random program on the balances of some tenants.
type alertProgram struct {
	*bundle
	tenants []string
	timed   bool // grants may begin and end, and holds may expire
	serial  int
}

func (b *bundle) newAlertProgram(timed bool) *alertProgram {
	b.t.Helper()
	p := &alertProgram{bundle: b, timed: timed}
	at := time.Now().Add(-time.Hour).UTC()
	b.plan("alerts", 1, at, "api_calls 20 hour tenant", "credits 10 once tenant")
	b.exec(`UPDATE plan_allowances SET alert_at = '{10,50,80,100,150}', overage_policy = 'allow', overage_cap = 30,
		per_subject = 12, overage_at_period_end = 'preserve' WHERE meter = 'api_calls'`)
	for i := range 4 {
		p.tenants = append(p.tenants, fmt.Sprint("t", i))
		b.tenant(p.tenants[i], "alerts", at, at, "UTC")
	}
	return p
}

// round runs some operations of each tenant at once. run calls its argument on an instance.
func (p *alertProgram) round(run func(n int, do func(*Ledger))) {
	var all sync.WaitGroup
	for _, tenant := range p.tenants {
		for n := range 1 + rand.IntN(3) {
			do := p.operation(tenant)
			all.Go(func() { run(n, do) })
		}
	}
	all.Wait()
}

// operation returns a random operation. It may be refused.
func (p *alertProgram) operation(tenant string) func(*Ledger) {
	p.serial++
	key, before := fmt.Sprint("op", p.serial), fmt.Sprint("op", 1+rand.IntN(p.serial))
	meter, n := []string{"api_calls", "credits"}[rand.IntN(2)], int64(1+rand.IntN(12))
	policy := []ledger.ReturnPolicy{ledger.ReturnForfeit, ledger.ReturnRegrant}[rand.IntN(2)]
	subject, items := []string{"", "ann"}[rand.IntN(2)], []ledger.Item{{Meter: meter, Amount: n}}
	switch rand.IntN(10) {
	case 0:
		g := topupOf(tenant, key, meter, n)
		if p.timed {
			at := p.Now()
			g.EffectiveAt = at.Add(time.Duration(rand.IntN(60)) * time.Minute)
			g.ExpiresAt = at.Add(time.Duration(61+rand.IntN(100)) * time.Minute)
		}
		return func(l *Ledger) { _, _ = Do(p.t.Context(), l, g) }
	case 1:
		a := &ledger.Adjust{Tenant: tenant, Key: key, Meter: meter, Amount: n - 6, Reason: "r"}
		return func(l *Ledger) { _, _ = Do(p.t.Context(), l, a) }
	case 2:
		const open = `SELECT coalesce(min(grant_id), 'none') FROM grants
			WHERE tenant_id = $1 AND source = 'topup' AND status = 'active'`
		v := &ledger.GrantChange{Action: ledger.VoidGrant, Tenant: tenant, Key: key, Reason: "r"}
		v.GrantID = one[string](p.bundle, open, tenant)
		return func(l *Ledger) { _, _ = Do(p.t.Context(), l, v) }
	case 3:
		h := &ledger.Hold{Tenant: tenant, Key: key, HoldID: key, Subject: subject, Items: items}
		if p.timed {
			h.TTL = time.Duration(1+rand.IntN(90)) * time.Minute
		}
		return func(l *Ledger) { _, _ = Do(p.t.Context(), l, h) }
	case 4:
		const open = "SELECT coalesce(min(hold_id), 'none') FROM holds WHERE tenant_id = $1 AND status = 'active'"
		c := &ledger.HoldChange{Tenant: tenant, Key: key, HoldID: one[string](p.bundle, open, tenant), Return: policy}
		c.Action = ledger.ActionRelease
		if rand.IntN(2) == 0 {
			c.Action, c.Final = ledger.ActionCapture, true
		}
		return func(l *Ledger) { _, _ = Do(p.t.Context(), l, c) }
	case 5, 6:
		r := &ledger.Refund{Tenant: tenant, Key: key, OperationID: before, Return: policy, Amount: n - 1}
		return func(l *Ledger) { _, _ = Do(p.t.Context(), l, r) }
	default:
		d := &ledger.Debit{Tenant: tenant, Key: key, Subject: subject, Items: items}
		d.Mode = []ledger.Mode{ledger.ModeNormal, ledger.ModeBestEffort, ledger.ModeDrain}[rand.IntN(3)]
		return func(l *Ledger) { _, _ = Do(p.t.Context(), l, d) }
	}
}

// compare compares the events of all balances with those that follow from the journal.
func (p *alertProgram) compare() {
	p.t.Helper()
	total := 0
	for _, tenant := range p.tenants {
		for _, of := range [][2]string{{"api_calls", ""}, {"api_calls", "ann"}, {"credits", ""}} {
			k := ledger.BalanceKey{Tenant: tenant, Meter: of[0], Subject: of[1]}
			levels := []int64{10, 50, 80, 100, 150}
			if k.Meter == "credits" {
				levels = []int64{80, 100}
			}
			told := p.alerts(k.Tenant, k.Meter, k.Subject)
			total += len(told)
			wantEqual(p.t, fmt.Sprint("events of ", k), told, p.recomputed(k, levels))
		}
	}
	assert.Greater(p.t, total, 10, "events")
	p.mustVerify()
}

// recomputed returns what alerts must return for a balance, from its journal.
func (p *alertProgram) recomputed(k ledger.BalanceKey, levels []int64) []string {
	p.t.Helper()
	rows, err := p.db.Query(p.t.Context(), `
		SELECT e.operation_id, e.kind, e.amount, coalesce(e.grant_id, ''), coalesce(e.source, ''), e.period_start,
		       coalesce(p.period_end <= e.created_at, false)
		FROM entries e
		LEFT JOIN periods p USING (tenant_id, meter, subject, period_start)
		WHERE e.tenant_id = $1 AND e.meter = $2 AND e.subject = $3
		ORDER BY e.seq`, k.Tenant, k.Meter, k.Subject)
	require.NoError(p.t, err)
	o := journalReader{levels: levels, grants: map[string]bool{}, told: []string{}}
	var e ledger.Entry
	var kind, source string
	var late bool
	columns := []any{&e.OperationID, &kind, &e.Amount, &e.Grant, &source, &e.PeriodStart, &late}
	_, err = pgx.ForEachRow(rows, columns, func() error {
		e.Kind, e.Source = ledger.EntryKind(kind), ledger.Source(source)
		o.read(e, late)
		return nil
	})
	require.NoError(p.t, err)
	o.end()
	return o.told
}

// journalReader finds out what a balance's journal requires to be told.
type journalReader struct {
	levels        []int64
	op            []ledger.Entry // entries of the newest operation
	late          bool           // it belongs to a period that had ended
	before, after ledger.Sums    // sums of the period, without and with it
	start         time.Time
	marks         map[string]bool // what was told and not armed since
	grants        map[string]bool // grants that were issued
	told          []string        // as alerts returns it; not nil
}

func (o *journalReader) read(e ledger.Entry, late bool) {
	if len(o.op) > 0 && (o.op[0].OperationID != e.OperationID || !o.start.Equal(e.PeriodStart)) {
		o.end()
	}
	if !o.start.Equal(e.PeriodStart) {
		o.start, o.marks = e.PeriodStart, map[string]bool{}
		o.after = ledger.Sums{Opening: o.after.Remaining() + o.after.Held, Held: o.after.Held}
		o.before = o.after
	}
	o.op, o.late = append(o.op, e), late
	o.after.Apply(e.Kind, e.Amount)
}

// end examines the newest operation.
func (o *journalReader) end() {
	defer func() { o.op, o.before = nil, o.after }()
	regrant := false
	for _, e := range o.op {
		refunds := e.Kind == ledger.EntryRefund || e.Kind == ledger.EntryRefundPaid
		regrant = regrant || refunds && !o.grants[e.Grant] && strings.HasPrefix(e.Grant, "regrant-")
		o.grants[e.Grant] = true
	}
	ofPlan := func(e *ledger.Entry) bool {
		return e.Source == ledger.SourceAllowance || e.Source == ledger.SourceRollover
	}
	due := func(e *ledger.Entry) bool { return strings.HasPrefix(e.OperationID, "§expire/") }
	if len(o.op) == 0 || o.late || due(&o.op[0]) && ofPlan(&o.op[0]) {
		return
	}
	used := func(s *ledger.Sums) int64 { return max(0, s.Used-s.Refunded) + s.Overage - s.Owed }
	reaches := func(s *ledger.Sums, level int64) bool { return s.Limit() > 0 && used(s)*100 >= level*s.Limit() }
	raw := func(s *ledger.Sums) int64 { return s.Used - s.Refunded + s.Overage - s.Owed }
	uses, a := raw(&o.after) > raw(&o.before), &o.after
	tell := func(what string) {
		if o.marks[what] {
			return
		}
		o.marks[what] = true
		o.told = append(o.told, fmt.Sprint(what, " ", used(a), " ", a.Limit(), " ", a.Remaining()))
	}
	if a.Limit() > o.before.Limit() || regrant {
		for _, level := range o.levels {
			o.marks[strconv.FormatInt(level, 10)] = o.marks[strconv.FormatInt(level, 10)] && reaches(a, level)
		}
		o.marks["exhausted"] = o.marks["exhausted"] && a.Remaining() == 0
	}
	exhausts := o.before.Remaining() > 0 && a.Remaining() == 0
	if !uses && exhausts && a.Limit() < o.before.Limit() {
		o.marks["exhausted"] = false
	}
	for _, level := range append(slices.Clone(o.levels), 1001) {
		if level > 100 && exhausts {
			tell("exhausted")
		}
		if (uses || a.Remaining() > 0) && level <= 1000 && !reaches(&o.before, level) && reaches(a, level) {
			tell(strconv.FormatInt(level, 10))
		}
	}
}
