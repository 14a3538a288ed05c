package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// checkpoint is the result of an earlier pass for a balance's entries up to and including Seq.
type checkpoint struct {
	Seq, At, Remaining int64 // seq, instant and remaining units of the newest entry
	Chain              chain
	Archived           bool
	State              state
}

// stateVersion is the format of state. Checkpoints of another format are not used.
const stateVersion = 1

// state is the column state of checkpoints. It has sums of the entries up to the checkpoint, but only the sums that
// later entries or comparisons need.
type state struct {
	Version     int                   `json:"v"`
	Open        int64                 `json:"open"`    // start of the newest entry's period, microseconds since 1970
	Held        int64                 `json:"held"`    // units that holds reserve
	ForgivenSeq int64                 `json:"forgave"` // the newest entry that forgave overage
	Period      []int64               `json:"period"`  // sums of the open period: see periodSums.list
	Totals      []*big.Int            `json:"totals"`  // sums of all periods: see journal.overall
	Grants      map[string]*grantSums `json:"grants"`  // grants that had not ended
	Facts       string                `json:"facts"`   // digest of the balance's row; empty: the row was not compared
	Paid        map[string]newestPaid `json:"paid"`    // by meter; nil: not known, a version wrote it that does not count
}

// list returns the sums in the order of state.Period.
func (p *periodSums) list() []int64 {
	n := []int64{
		p.granted, p.refunded, p.used, p.expired, p.adjusted, p.overage, p.owed, p.paid, p.owing, p.forgiven, p.held, p.lastSeq,
	}
	if p.amended != 0 { // earlier versions read a checkpoint without it
		n = append(n, p.amended)
	}
	return n
}

func periodOf(n []int64) *periodSums {
	p := &periodSums{
		moves: moves{granted: n[0], refunded: n[1], used: n[2], expired: n[3], adjusted: n[4], overage: n[5], owed: n[6], paid: n[7]},
		owing: n[8], forgiven: n[9], held: n[10], lastSeq: n[11],
	}
	if len(n) > 12 {
		p.amended = n[12]
	}
	return p
}

// journal returns a journal that has all entries up to the checkpoint.
func (c *checkpoint) journal() *journal {
	j := newJournal()
	j.resumed = c
	j.first, j.last, j.at, j.remaining, j.held = 1, c.Seq, c.At, c.Remaining, c.State.Held
	j.chain, j.forgivenSeq = c.Chain, c.State.ForgivenSeq
	j.periods[c.State.Open] = periodOf(c.State.Period) // its first entry is not known
	for id, g := range c.State.Grants {
		copied := *g
		j.grants[id] = &copied
	}
	j.resumePaid(c)
	return j
}

// valid reports whether the checkpoint's state has the format of this version.
func (c *checkpoint) valid() bool {
	return c.State.Version == stateVersion && (len(c.State.Period) == 12 || len(c.State.Period) == 13) && len(c.State.Totals) == overallSums && !slices.Contains(c.State.Totals, nil)
}

// stateOf returns the state of j. open contains the grants that had not ended; nil keeps all grants.
func stateOf(j *journal, open map[string]bool, facts string) state {
	out := state{
		Version: stateVersion, Open: j.newest(), Held: j.held, ForgivenSeq: j.forgivenSeq, Facts: facts,
		Totals: j.overall(), Grants: map[string]*grantSums{},
	}
	out.Period = j.periods[out.Open].list()
	for id, g := range j.grants {
		if open == nil || open[id] {
			out.Grants[id] = g
		}
	}
	out.Paid = j.newestPaid()
	return out
}

// newest returns the start of the period of the newest entry.
func (j *journal) newest() int64 {
	newest := int64(-1 << 63)
	for start := range j.periods {
		newest = max(newest, start)
	}
	return newest
}

// openGrants returns the grants that had not ended at an instant, or still hold units.
func openGrants(grants []grant, at time.Time) map[string]bool {
	open := make(map[string]bool, len(grants))
	for i := range grants {
		if g := &grants[i]; g.held > 0 || g.expiresAt.After(at) && g.status != "voided" {
			open[g.id] = true
		}
	}
	return open
}

// saved is a checkpoint to be written.
type saved struct {
	key      Key
	journal  *journal
	state    state
	archived bool
}

// save writes checkpoints, and removes earlier checkpoints that are not archived.
func (a *Auditor) save(ctx context.Context, list []saved) error {
	if len(list) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	keys := make([]Key, len(list))
	seqs, at, remaining := make([]int64, len(list)), make([]time.Time, len(list)), make([]int64, len(list))
	chains, states, archived := make([][]byte, len(list)), make([]string, len(list)), make([]bool, len(list))
	for i, s := range list {
		text, err := json.Marshal(s.state)
		if err != nil {
			return fmt.Errorf("encode checkpoint of %v: %w", s.key, err)
		}
		keys[i], states[i], archived[i] = s.key, string(text), s.archived
		seqs[i], at[i], remaining[i], chains[i] = s.journal.last, time.UnixMicro(s.journal.at), s.journal.remaining, s.journal.chain.encode()
		if chains[i] == nil {
			chains[i] = []byte{}
		}
	}
	tenants, meters, subjects := columnsOf(keys)
	b := &pgx.Batch{}
	b.Queue(a.sql["WriteCheckpoints"], tenants, meters, subjects, seqs, at, remaining, chains, states, archived)
	b.Queue(a.sql["DropCheckpoints"], tenants, meters, subjects, seqs)
	err := pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error { return tx.SendBatch(ctx, b).Close() })
	if err != nil {
		return fmt.Errorf("write checkpoints: %w", err)
	}
	return nil
}

func sorted[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for id := range m {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}
