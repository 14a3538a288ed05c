package ledger

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/period"
)

// live drives two instances of the real ledger on one database with the requests of a program. Its tenant is new, so programs
// share a database. What clients send at the same time has no order but one that explains all their answers: every model that
// does is kept.
//
// PostgreSQL's clock cannot be set, so what is stored is moved into the past instead. The model's time is PostgreSQL's plus
// ahead, which grows by as much.
type live struct {
	*program
	ledgers []*Ledger
	db      *bundle
	tenant  string
	ahead   time.Duration
	able    []*model // models that explain every answer so far
}

// goLive signs up a new tenant, as start does in memory.
func goLive(t *rapid.T, db *bundle, tenant string, ledgers []*Ledger) *live {
	s := &live{program: start(t), db: db, tenant: tenant, ledgers: ledgers}
	s.ahead = s.now.Sub(s.clock())
	for plan := range s.memory.plans {
		s.writeVersion(plan)
	}
	first := s.memory.history[0]
	db.tenant(tenant, s.planName(first.plan), s.stored(first.since), s.stored(first.anchorAt), "UTC")
	s.able = []*model{s.model}
	return s
}

// clock asks PostgreSQL.
func (s *live) clock() time.Time {
	var now time.Time
	if err := s.db.db.QueryRow(s.db.t.Context(), "SELECT clock_timestamp()").Scan(&now); err != nil {
		s.t.Fatal(err)
	}
	return now.UTC()
}

// stored is an instant of the model as PostgreSQL knows it.
func (s *live) stored(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-s.ahead)
}

func (s *live) look() {
	s.now = s.clock().Add(s.ahead)
	for _, m := range s.able {
		m.now = s.now
	}
}

// atomically makes changes that the instances see together or not at all: another program's roll takes in this tenant, too. It
// holds the balances, so that no batch and no roll has begun with what was there before.
func (s *live) atomically(change func()) {
	s.db.exec("BEGIN")
	s.db.exec("SELECT 1 FROM balances WHERE tenant_id = $1 ORDER BY meter, subject FOR UPDATE", s.tenant)
	change()
	s.db.exec("COMMIT")
}

// rewind lets time go by. The odd microsecond keeps the ids of allowances, which name their period's start, from coming again.
func (s *live) rewind(by time.Duration) {
	by = by.Truncate(time.Second) + time.Microsecond
	s.atomically(func() {
		s.db.rewind(s.tenant, by-7*time.Second) // which adds the seven
		s.db.exec("UPDATE holds SET created_at = created_at - $2::interval, expires_at = expires_at - $2::interval WHERE tenant_id = $1", s.tenant, by)
		s.db.exec("UPDATE hold_lines SET expires_at = expires_at - $2::interval WHERE tenant_id = $1", s.tenant, by)
		s.db.exec("UPDATE plans SET created_at = created_at - $2::interval WHERE plan LIKE $1 || '-%'", s.tenant, by)
	})
	s.ahead += by
	// A retry sends the instants it sent before, which mean others now.
	s.sent = slices.DeleteFunc(s.sent, func(r sent) bool {
		g, ok := r.call().req.(*Grant)
		return ok && !(g.EffectiveAt.IsZero() && g.ExpiresAt.IsZero())
	})
}

func (s *live) planName(plan string) string { return s.tenant + "-" + plan }

// writeVersion writes the newest version of a plan into the catalogue.
func (s *live) writeVersion(plan string) {
	versions := s.memory.plans[plan]
	v := versions[len(versions)-1]
	s.db.exec("INSERT INTO plans (plan, version, created_at) VALUES ($1, $2, $3)", s.planName(plan), v.version, s.stored(v.createdAt))
	for meter, a := range v.allowances {
		var policy, overflow *string
		var price *int64
		if a.overageAllowed {
			policy = new("allow")
		}
		if a.overflowMeter != "" {
			overflow, price = &a.overflowMeter, &a.overflowPrice
		}
		s.db.exec(`INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor, rollover_min, rollover_max,
			overage_policy, overage_cap, overflow_meter, overflow_price, per_subject) VALUES ($1, $2, $3, 0, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
			s.planName(plan), v.version, meter, a.amount, string(a.every), string(a.anchor), a.rolloverMin, a.rolloverMax,
			policy, a.overageCap, overflow, price, a.perSubject)
	}
}

func (s *live) newVersion(plan string) {
	s.look()
	s.addVersion(plan, s.now)
	s.atomically(func() { s.writeVersion(plan) })
}

func (s *live) newPlan(plan string, now, prorate bool) {
	s.look()
	s.changePlan(plan, now, prorate)
	for _, m := range s.able {
		m.changes = s.model.changes
	}
	at := s.stored(s.now)
	s.atomically(func() {
		s.db.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, immediate, prorate)
			SELECT tenant_id, $2, $3, anchor, timezone, $4, $5 FROM tenants WHERE tenant_id = $1`, s.tenant, at, s.planName(plan), now, prorate)
		if now {
			s.db.exec("UPDATE balances SET next_event_at = least(next_event_at, $2) WHERE tenant_id = $1", s.tenant, at)
		}
	})
}

// send makes c's request of l and sets its answer. It returns when the request was decided, zero when that was not said.
func (s *live) send(l *Ledger, c *call) (decided time.Time) {
	ctx := s.db.t.Context()
	switch r := c.req.(type) {
	case *Debit:
		r.Tenant, r.Key = s.tenant, c.id.id
		out, err := l.Debit(ctx, r)
		return took(c, out, err, func(r *DebitResult) time.Time { return r.AsOf })
	case *Grant:
		r.Tenant, r.Key, r.EffectiveAt, r.ExpiresAt = s.tenant, c.id.id, s.stored(r.EffectiveAt), s.stored(r.ExpiresAt)
		out, err := l.Grant(ctx, r)
		return took(c, out, err, func(r *GrantResult) time.Time { return r.AsOf })
	case *Hold:
		r.Tenant, r.Key = s.tenant, c.id.id
		out, err := l.Hold(ctx, r)
		return took(c, out, err, func(r *HoldResult) time.Time { return r.AsOf })
	case *HoldChange:
		r.Tenant, r.Key = s.tenant, c.id.id
		out, err := l.ChangeHold(ctx, r)
		return took(c, out, err, func(r *HoldResult) time.Time { return r.AsOf })
	case *Refund:
		r.Tenant, r.Key = s.tenant, c.id.id
		out, err := l.Refund(ctx, r)
		return took(c, out, err, func(r *RefundResult) time.Time { return r.AsOf })
	case *Adjust:
		r.Tenant, r.Key = s.tenant, c.id.id
		out, err := l.Adjust(ctx, r)
		return took(c, out, err, func(r *Change) time.Time { return r.AsOf })
	case *Void:
		r.Tenant, r.Key = s.tenant, c.id.id
		out, err := l.Void(ctx, r)
		return took(c, out, err, func(r *Change) time.Time { return r.AsOf })
	}
	panic(fmt.Sprintf("unknown request %T", c.req))
}

func took[R any](c *call, out *R, err error, asOf func(*R) time.Time) time.Time {
	if err == nil {
		c.result = out
		return asOf(out)
	}
	c.err = err
	if e, ok := errors.AsType[*Error](err); ok {
		return e.AsOf
	}
	return time.Time{}
}

// group sends some requests at the same time, each to one of the instances or, as an impatient client's, to both.
func (s *live) group() {
	t := s.t
	s.look()
	var group []sent
	for range rapid.IntRange(1, 3).Draw(t, "group") {
		if len(s.sent) > 0 && rapid.IntRange(0, 4).Draw(t, "again?") == 0 {
			group = append(group, rapid.SampledFrom(s.sent).Draw(t, "again"))
			continue
		}
		r := s.request()
		group = append(group, r)
		if rapid.IntRange(0, 3).Draw(t, "twin?") == 0 {
			group = append(group, r)
		}
	}
	s.grants, s.debits = append(s.grants, s.fresh.grants...), append(s.debits, s.fresh.debits...)
	s.fresh.grants, s.fresh.debits = nil, nil
	s.sent = append(s.sent, group...)
	// What a request names is looked up before its batch: of two at the same time, neither need see what the other makes.
	if s.related(group) {
		for i := range group {
			s.atOnce(group[i : i+1])
		}
		return
	}
	s.atOnce(group)
}

// related says whether a request of the group names what another one of it may make.
func (s *live) related(group []sent) bool {
	made := map[string]bool{}
	for _, r := range group {
		made[r.id] = true
		if h, ok := r.call().req.(*Hold); ok {
			made["hold "+h.HoldID] = true
		}
	}
	return slices.ContainsFunc(group, func(r sent) bool {
		h, ok := r.call().req.(*HoldChange)
		return made[r.refers] || ok && made["hold "+h.HoldID]
	})
}

func (s *live) atOnce(group []sent) {
	calls := make([]*call, len(group))
	at := make([]time.Time, len(group))
	to := make([]int, len(group))
	for i := range group {
		calls[i] = group[i].call()
		to[i] = rapid.IntRange(0, len(s.ledgers)-1).Draw(s.t, "instance")
	}
	var wg sync.WaitGroup
	for i := range group {
		wg.Go(func() { at[i] = s.send(s.ledgers[to[i]], calls[i]) })
	}
	wg.Wait()
	answers := make([]string, len(group))
	for i := range group {
		if at[i].IsZero() {
			at[i] = s.stored(s.now)
		}
		at[i] = at[i].Add(s.ahead)
		answers[i] = answerOf(calls[i])
		s.t.Logf("%s instance %d: %s %s => %s", at[i].Format(time.RFC3339Nano), to[i], group[i].id, group[i].body, answers[i])
	}
	s.explain(group, at, answers)
}

// explain keeps every model in which some order of the group gives these answers.
func (s *live) explain(group []sent, at []time.Time, answers []string) {
	var able []*model
	var expected []string
	seen := map[string]bool{}
	for _, m := range s.able {
		for _, order := range orders(len(group)) {
			work := m.clone()
			fits := true
			for _, i := range order {
				work.now = at[i]
				want := work.apply(group[i].id, group[i].body, s.sticky, group[i].act(work))
				if want != answers[i] {
					expected = append(expected, fmt.Sprintf("in order %v, %s: %s", order, group[i].id, want))
					fits = false
					break
				}
			}
			if !fits {
				continue
			}
			if state := work.state(); !seen[state] {
				seen[state] = true
				able = append(able, work)
			}
		}
	}
	if len(able) == 0 {
		s.t.Fatalf("no order of the model gives these answers:\n  %s\nthe model says\n  %s", strings.Join(answers, "\n  "), strings.Join(expected, "\n  "))
	}
	s.able = able
}

// state tells models apart.
func (m *model) state() string {
	out := ""
	for _, k := range m.keys() {
		out += fmt.Sprintf("%v %s %v\n", k, m.describe(k), m.balances[k].grants)
	}
	return out + fmt.Sprint(m.reserves)
}

// orders lists the permutations of 0..n-1.
func orders(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for _, shorter := range orders(n - 1) {
		for at := range n {
			out = append(out, slices.Insert(slices.Clone(shorter), at, n-1))
		}
	}
	return out
}

// compare reads the balances from one instance and expects one of the models.
func (s *live) compare() {
	keys := s.able[0].keys()
	if len(keys) == 0 {
		return
	}
	names := make([]key, len(keys))
	for i, k := range keys {
		names[i] = key{s.tenant, k.Meter, k.Subject}
	}
	view, err := s.ledgers[rapid.IntRange(0, len(s.ledgers)-1).Draw(s.t, "reader")].view(s.db.t.Context(), names)
	if err != nil {
		s.t.Fatal(err)
	}
	now := view.now.Add(s.ahead)
	var got string
	for i, k := range keys {
		b := view.books[names[i]]
		b.start = b.start.Add(s.ahead)
		if b.end.Before(period.Forever) {
			b.end = b.end.Add(s.ahead)
		}
		if name, ours := strings.CutPrefix(b.plan, s.tenant+"-"); ours {
			b.plan = name
		}
		got += fmt.Sprintf("%v %s\n", k, describeBook(b))
	}
	var want []string
	for _, m := range s.able {
		m.now = now
		text := ""
		for _, k := range keys {
			text += fmt.Sprintf("%v %s\n", k, m.describe(k))
		}
		if text == got {
			return
		}
		want = append(want, text)
	}
	s.t.Fatalf("the ledger reads\n%s\nand the model\n%s", got, strings.Join(want, "or\n"))
}

// TestTwoInstancesOnOneDatabaseAgreeWithTheModel runs random programs on the real ledger: every operation, several clients at
// once, impatient ones at both instances, time that goes by, new plan versions, plan changes, rolls. Two such runs at a time share
// the instances and the database. QUOTASVC_SOAK_SERVICE_STEPS sets how many steps a program has; -rapid.checks how many run.
func TestTwoInstancesOnOneDatabaseAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	steps := 6
	if text := os.Getenv("QUOTASVC_SOAK_SERVICE_STEPS"); text != "" {
		var err error
		if steps, err = strconv.Atoi(text); err != nil {
			t.Fatalf("QUOTASVC_SOAK_SERVICE_STEPS: %v", err)
		}
	}
	b := newBundle(t)
	b.meter(modelMeters...)
	ledgers := []*Ledger{b.Ledger, openLedger(t, b.url)}
	t.Run("programs", func(t *testing.T) {
		for run := range 2 {
			t.Run(strconv.Itoa(run), func(t *testing.T) {
				t.Parallel()
				own := &bundle{Ledger: b.Ledger, t: t, url: b.url}
				own.reconnect()
				tenants := 0
				rapid.Check(t, func(rt *rapid.T) {
					tenants++
					goLive(rt, own, fmt.Sprintf("t%d-%d", run, tenants), ledgers).play(steps)
				})
			})
		}
	})
	b.mustVerify()
	var deadlocks int64
	if err := b.db.QueryRow(t.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&deadlocks); err != nil || deadlocks != 0 {
		t.Errorf("%d deadlocks (%v)", deadlocks, err)
	}
}

func (s *live) play(steps int) {
	t := s.t
	for range steps {
		switch rapid.IntRange(0, 11).Draw(t, "step") {
		case 0, 1:
			s.rewind(time.Duration(rapid.IntRange(1, 1800).Draw(t, "seconds")) * time.Second)
		case 2:
			s.rewind(time.Duration(rapid.IntRange(1, 5*3600).Draw(t, "long")) * time.Second)
		case 3:
			if _, err := s.ledgers[rapid.IntRange(0, 1).Draw(t, "roller")].RunRoll(s.db.t.Context(), nil, func(Roll) {}); err != nil {
				t.Fatal(err)
			}
		case 4:
			s.newVersion(rapid.SampledFrom([]string{"small", "large"}).Draw(t, "plan"))
		case 5:
			now := rapid.Bool().Draw(t, "now")
			s.newPlan(rapid.SampledFrom([]string{"small", "large"}).Draw(t, "plan"), now, now && rapid.Bool().Draw(t, "prorate"))
		default:
			s.group()
		}
		s.compare()
	}
}
