package model

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

func (p *Program) tick(d time.Duration) {
	p.Now = p.Now.Add(d)
	p.Model.Now = p.Now
}

// batch sends new requests, repeated requests and requests that reuse a key. They go to the model and, in batches, to
// package ledger. A batch may be lost before or after its commit, and is then sent again.
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
	// Before a batch begins, the ledger looks up the operations to which its requests refer. So no request may refer
	// to another request of its batch.
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
	// A request that was denied before may succeed now, and its refund may be in the same batch. Then each request is
	// run as a separate batch.
	most := len(calls)
	for _, a := range batch {
		if slices.ContainsFunc(batch, func(b Request) bool { return b.refers == a.ID }) {
			most = 1
		}
	}
	// The answers do not depend on how requests are batched.
	for from := 0; from < len(calls); {
		to := from + rapid.IntRange(1, min(most, len(calls)-from)).Draw(t, "cut")
		switch rapid.IntRange(0, 5).Draw(t, "crash") {
		case 0:
			p.Memory.run(t, calls[from:to], p.Now, true) // lost before its commit
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
	if !assert.Equal(t, want, got, "the answers differ") {
		p.logBalances()
		t.FailNow()
	}
}

// logBalances logs every balance, of the model and of the ledger, with its entries.
func (p *Program) logBalances() {
	for _, c := range p.Model.Changes {
		p.T.Logf("change at %s: %+v", c.at.Format(time.RFC3339), c)
	}
	for plan, versions := range p.Model.plans {
		for _, v := range versions {
			p.T.Logf("plan %s at %s: %+v", plan, v.at.Format(time.RFC3339), v.meters)
		}
	}
	for k := range p.Memory.balances {
		book := p.Memory.read(k, p.Now).Books[k]
		p.T.Logf("%v\n  model:  %s\n  ledger: %s", k, p.Model.describe(k), DescribeBook(book))
		for _, e := range p.Memory.entriesOf(book) {
			p.T.Logf("    %d %s %s %s %d -> %d", e.Seq, e.OperationID, e.Kind, e.Grant, e.Amount, e.RemainingAfter)
		}
	}
}

// loseAnswer runs a batch whose COMMIT gets no answer. It then sends the successful calls again, which must get the
// same answers. It does not repeat denied calls, because a denial that is not stored is decided again, after the rest
// of its batch.
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
			p.T.Fatalf("%v: the first answer was lost; the retry got %q, replayed %v, want %q", c.ID, got, c.Replayed, want[i])
		}
	}
}

// compare compares every balance, advanced to now, with the model. seen has the number of closed periods of each
// balance that were compared before. compare reads only the later periods. It returns the new numbers.
func (p *Program) compare(seen map[ledger.BalanceKey]int) map[ledger.BalanceKey]int {
	out := map[ledger.BalanceKey]int{}
	for k := range p.Memory.balances {
		b := p.Memory.read(k, p.Now)
		if err := b.AdvanceInMemory(nil); err != nil {
			p.T.Fatalf("read %v: %v", k, err)
		}
		if !assert.Equal(p.T, p.Model.describe(k), DescribeBook(b.Books[k]), "balance %v differs", k) {
			p.logBalances()
			p.T.FailNow()
		}
		rows, from := slices.Concat(p.Memory.periods[k], b.Books[k].Closed), 0
		for len(rows) > 0 && from+max(1, int(rows[0].Idle)) <= seen[k] {
			from, rows = from+max(1, int(rows[0].Idle)), rows[1:]
		}
		periods, _, err := p.Memory.single(rows)
		if err != nil {
			p.T.Fatal(err)
		}
		want, got := p.Model.balances[k].closed[from:], make([]string, len(periods))
		for i := range periods {
			got[i] = p.Memory.periodText(&periods[i])
		}
		if !slices.Equal(want, got) {
			p.logBalances()
			p.T.Fatalf("the closed periods of %v from the %dth on differ: model %q, ledger %q", k, from, want, got)
		}
		out[k] = from + len(periods)
	}
	p.Memory.check(p.T)
	return out
}

// The random programs have all operations, repeated requests and reused keys. The clock steps over several periods,
// and idle times last up to 300 periods (10,000 in one of a hundred programs of a soak). Plans get new versions, and
// tenants change plans. Rolls run at random, batches have random sizes, and crashes happen before and after the
// commit. QUOTASVC_SOAK_STEPS is the number of steps of a soak.
func TestModel_Programs_AgreeWithLedger(t *testing.T) {
	t.Parallel()
	wanted, steps := SoakSteps(t, "QUOTASVC_SOAK_STEPS"), 60
	if wanted > 0 {
		steps = 200
	}
	RunPrograms(t, 40, wanted, func(t *rapid.T) int {
		p, longest := Start(t), 300
		if wanted > 0 && rapid.IntRange(0, 99).Draw(t, "years?") == 99 {
			longest = 10_000
		}
		var seen map[ledger.BalanceKey]int
		since := p.Now
		for i := range steps {
			if p.Now.Sub(since) > 20*24*time.Hour {
				p.Sent, since = nil, p.Now // the keys may be forgotten soon
			}
			if i%10 == 9 {
				seen = p.compare(seen)
			}
			switch rapid.IntRange(0, 11).Draw(t, "step") {
			case 0, 1:
				p.tick(time.Duration(rapid.IntRange(0, 30).Draw(t, "minutes")) * time.Minute)
			case 2:
				hours := rapid.IntRange(0, 5).Draw(t, "hours")
				if rapid.IntRange(0, 7).Draw(t, "idle?") == 0 {
					hours = rapid.IntRange(0, longest).Draw(t, "idle hours")
				}
				p.tick(time.Duration(hours)*time.Hour + time.Duration(rapid.IntRange(0, 3600).Draw(t, "seconds"))*time.Second)
			case 3:
				p.Memory.sweep(p.T, p.Now)
			case 4:
				p.Model.Suspended = rapid.IntRange(0, 3).Draw(t, "suspended") == 0
				if rapid.IntRange(0, 2).Draw(t, "plan?") == 0 {
					p.tick(time.Second)
					p.Publish(rapid.SampledFrom(Plans).Draw(t, "plan"), p.DrawTerms(), p.DrawApply(), p.Now)
				}
			case 5:
				if rapid.IntRange(0, 2).Draw(t, "change?") == 0 {
					p.tick(time.Second)
					p.ChangePlan(p.DrawTermsChange())
				}
			default:
				p.batch()
			}
		}
		p.compare(nil)
		return steps
	})
}
