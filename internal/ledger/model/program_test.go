package model

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

func (p *Program) tick(d time.Duration) {
	p.Now = p.Now.Add(d)
	p.Model.Now = p.Now
}

// batch sends some requests as one batch, new ones, repeated ones and ones that reuse a key; it may be lost before or after
// its commit, and is then sent again.
func (p *Program) batch() {
	t := p.T
	var batch []Request
	for range rapid.IntRange(1, 5).Draw(t, "batch") {
		if len(p.Sent) > 0 && rapid.IntRange(0, 4).Draw(t, "again?") == 0 {
			batch = append(batch, rapid.SampledFrom(p.Sent).Draw(t, "again"))
			continue
		}
		s := p.Request()
		batch = append(batch, s)
		if rapid.IntRange(0, 5).Draw(t, "twin?") == 0 {
			batch = append(batch, s)
		}
		if rapid.IntRange(0, 9).Draw(t, "reuse?") == 0 {
			batch = append(batch, p.RequestUnder(s.ID))
		}
	}
	// What an operation refers to is looked up before its batch begins. Requests of one batch are concurrent, so one that refers
	// to another's outcome cannot expect to see it, and none is made here.
	p.NameFresh()
	var want, got []string
	for i := range batch {
		answer := batch[i].Ask(p.Model, p.Sticky)
		want = append(want, answer)
		t.Logf("%s %s %s => %s", p.Now.Format(time.RFC3339), batch[i].ID, batch[i].Body, answer)
	}
	p.Sent = append(p.Sent, batch...)
	calls := make([]*ledger.Call, len(batch))
	for i := range batch {
		calls[i] = batch[i].Call()
		Suspend(calls[i], p.Model.Suspended)
	}
	// One that is sent again may succeed only now, together with its refund: those go one after the other.
	most := len(calls)
	for _, a := range batch {
		if slices.ContainsFunc(batch, func(b Request) bool { return b.refers == a.ID }) {
			most = 1
		}
	}
	// L6: where the batch is cut cannot be seen.
	for from := 0; from < len(calls); {
		to := from + rapid.IntRange(1, min(most, len(calls)-from)).Draw(t, "cut")
		switch rapid.IntRange(0, 5).Draw(t, "crash") {
		case 0:
			p.Memory.run(t, calls[from:to], p.Now, true) // lost before its commit: nothing happened
		case 1:
			p.loseAnswer(calls[from:to])
			from = to
			continue
		}
		p.Memory.run(t, calls[from:to], p.Now, false)
		from = to
	}
	for _, c := range calls {
		got = append(got, AnswerOf(c))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Logf("changes %+v", p.Model.Changes)
		for k := range p.Memory.balances {
			m := p.Memory.read(k, p.Now)
			t.Logf("%v\n  model:  %s\n  ledger: %s", k, p.Model.describe(k), DescribeBook(m.Books[k]))
			for id, lines := range p.Memory.entries {
				for _, l := range lines {
					if l.BalanceKey == k {
						t.Logf("    %d %s %s %s %d -> %d", l.Seq, id.Key, l.Kind, l.Grant, l.Amount, l.RemainingAfter)
					}
				}
			}
		}
		t.Fatalf("the model and the ledger disagree (-model +ledger):\n%s", diff)
	}
}

// loseAnswer runs a batch whose COMMIT is not answered, and sends again what was done: it is answered the same. (What was
// denied would be decided anew, after the rest of its batch, and is left out.)
func (p *Program) loseAnswer(calls []*ledger.Call) {
	p.Memory.run(p.T, calls, p.Now, false)
	var done []*ledger.Call
	var want []string
	for _, c := range calls {
		if c.Err == nil {
			done, want = append(done, c), append(want, AnswerOf(c))
		}
	}
	if len(done) == 0 {
		return
	}
	p.Memory.run(p.T, done, p.Now, false)
	for i, c := range done {
		if got := AnswerOf(c); got != want[i] || !c.Replayed {
			p.T.Fatalf("after a lost answer %v got %q, it was %q", c.ID, got, want[i])
		}
	}
}

// compare reads every balance in memory, advanced to now, and holds it against the model.
func (p *Program) compare() {
	for k := range p.Memory.balances {
		m := p.Memory.read(k, p.Now)
		if err := m.AdvanceInMemory(); err != nil {
			p.T.Fatalf("read %v: %v", k, err)
		}
		if diff := cmp.Diff(p.Model.describe(k), DescribeBook(m.Books[k])); diff != "" {
			p.T.Fatalf("balance %v differs (-model +ledger):\n%s", k, diff)
		}
		var closed []string
		for _, c := range slices.Concat(p.Memory.periods[k], m.Books[k].Closed) {
			closed = append(closed, accountOf(&c))
		}
		if diff := cmp.Diff(p.Model.balances[k].closed, closed, cmpopts.EquateEmpty()); diff != "" {
			p.T.Fatalf("the closed periods of %v differ (-model +ledger):\n%s", k, diff)
		}
	}
	p.Memory.check(p.T)
}

// TestModel_Programs_AgreeWithLedger runs random programs: all operations, duplicates, reused keys, clock
// steps over several periods, new plan versions, plan changes, a sweeper that runs or not, batches cut anywhere, crashes
// before and after the commit. QUOTASVC_SOAK_STEPS says how many steps a soak has.
func TestModel_Programs_AgreeWithLedger(t *testing.T) {
	t.Parallel()
	wanted, steps := SoakSteps(t, "QUOTASVC_SOAK_STEPS"), 60
	if wanted > 0 {
		steps = 200
	}
	RunPrograms(t, 100, wanted, func(t *rapid.T) int {
		p := Start(t)
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
				p.Memory.sweep(p.T, p.Now)
			case 4:
				p.Model.Suspended = rapid.IntRange(0, 3).Draw(t, "suspended") == 0
				if rapid.IntRange(0, 2).Draw(t, "plan?") == 0 {
					p.tick(time.Second)
					p.Publish(rapid.SampledFrom([]string{"small", "large"}).Draw(t, "plan"), p.DrawTerms(), p.Now)
				}
			case 5:
				if rapid.IntRange(0, 2).Draw(t, "change?") == 0 {
					p.tick(time.Second)
					now := rapid.Bool().Draw(t, "now")
					p.ChangePlan(rapid.SampledFrom([]string{"small", "large"}).Draw(t, "plan"), now, now && rapid.Bool().Draw(t, "prorate"))
				}
			default:
				p.batch()
			}
		}
		p.compare()
		return steps
	})
}
