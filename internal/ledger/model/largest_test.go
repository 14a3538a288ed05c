package model

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// ask sends a request to the model and to the ledger, and compares the answers.
func (p *Program) ask(r Request) {
	want, call := r.Ask(p.Model, p.Sticky), r.Call()
	p.Memory.run(p.T, []*ledger.Call{call}, p.Now, false)
	require.Equal(p.T, want, AnswerOf(call), r.Body)
}

// debit sends a debit of calls.
func (p *Program) debit(key string, amount int64, mode ledger.Mode) {
	d := ledger.Debit{Tenant: Tenant, Key: key, Items: []ledger.Item{{Meter: "calls", Amount: amount}}, Mode: mode}
	p.ask(newRequest(key, fmt.Sprint(d),
		func() *ledger.Call { c := d; return ledger.NewCall(&c) },
		func(m *Model, op *operation) string { return m.debit(op, &d) }))
}

// fill grants all but a few of the units that the balance of calls can still receive, now or from a later instant on.
func (p *Program) fill(least int64) {
	k := ledger.BalanceKey{Tenant: Tenant, Meter: "calls"}
	g := ledger.Grant{Tenant: Tenant, Key: fmt.Sprint("fill", p.Now), Meter: "calls", Source: ledger.SourceTopup}
	g.Amount = p.Model.touch(k).room() - rapid.Int64Range(least, least+200).Draw(p.T, "room")
	if g.Amount < 1 {
		return
	}
	if rapid.IntRange(0, 3).Draw(p.T, "pending?") == 0 {
		g.EffectiveAt = p.Now.Add(p.drawMinutes(3000, "pending"))
	}
	p.ask(newRequest(g.Key, fmt.Sprint(g),
		func() *ledger.Call { c := g; return ledger.NewCall(&c) },
		func(m *Model, _ *operation) string { return m.issue(&g) }))
}

// Near the largest balance, an idle period brings what a period in use would bring: what fits.
func TestModel_NearLargestBalance_IdlePeriodsAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := Start(t)
		p.debit("owed", rapid.Int64Range(1, 300).Draw(t, "owed"), ledger.ModeDrain)
		p.fill(100)
		p.fill(0)
		for i := range 12 {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				p.Memory.sweep(t, p.Now)
			case 1:
				mode := rapid.SampledFrom([]ledger.Mode{ledger.ModeNormal, ledger.ModeDrain}).Draw(t, "mode")
				p.debit(fmt.Sprint("d", i), 12*p.drawAmount(), mode)
			default:
				p.tick(time.Duration(rapid.IntRange(0, 40).Draw(t, "hours")) * time.Hour)
			}
			p.compare(nil)
			for k := range p.Memory.balances {
				b := p.Memory.read(k, p.Now)
				require.NoError(t, b.AdvanceInMemory(nil))
				for _, e := range p.Memory.entriesOf(b.Books[k]) {
					require.LessOrEqual(t, e.RemainingAfter, ledger.MaxAmount, e)
				}
			}
		}
	})
}
