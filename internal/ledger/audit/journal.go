package audit

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// journal has the sums and facts from the entries of one balance, up to and including the newest entry that was read.
type journal struct {
	first, last, count int64
	at, remaining      int64 // created_at and remaining_after of the newest entry
	held               int64
	chain              chain
	forgivenSeq        int64
	periods            map[int64]*periodSums // by start
	grants             map[string]*grantSums
	paid               map[paidFor]int64 // nil: not known, because the checkpoint does not have it

	// The period and the grant of the newest entry: most entries have the same period and grant as the entry before.
	period      *periodSums
	periodStart int64
	grant       *grantSums
	grantID     string

	// resumed is the checkpoint at which the journal begins; nil: it begins at the first entry.
	resumed *checkpoint
	faults  []fault
}

// fault is an error in the entries themselves.
type fault struct{ what, want, got string }

// faultsMax bounds the faults that one balance reports. Each kind is reported at its first entry.
const faultsMax = 16

// periodSums has the sums of the entries of one period.
type periodSums struct {
	moves

	owing, forgiven int64 // overage at the period's beginning, and overage forgiven at its end
	held            int64 // reserved units after the period's newest entry
	lastSeq         int64
	rollover        string // id of the last rollover that ended in the period

	// firstAt is the instant of the period's first entry; 0 if a checkpoint has that entry. begun means that this entry
	// was made when the period opened, in the transaction that closed the period before it.
	firstAt int64
	begun   bool
	busy    bool // it has an entry of a request
}

// grantSums has the sums of the entries about one grant.
type grantSums struct {
	Issued    int64 `json:"issued,omitempty"`
	Scheduled int64 `json:"scheduled,omitempty"`
	Returned  int64 `json:"returned,omitempty"` // amount of the entry that created this grant from returned units
	Left      int64 `json:"left,omitempty"`
	Topped    int64 `json:"topped,omitempty"`    // for a rollover: units issued in the newest period that issued units
	ToppedIn  int64 `json:"topped_in,omitempty"` // start of that period, microseconds since 1970
	Voided    bool  `json:"voided,omitempty"`
	Given     int64 `json:"given,omitempty"` // for an allowance: units that it gave, less those that changes of terms took back
	maker
}

// maker describes the entry that created a grant, with the entry's facts about the grant.
type maker struct {
	Source    string      `json:"source"`
	Kind      string      `json:"kind"`
	Operation string      `json:"operation,omitempty"`
	Facts     *grantFacts `json:"facts,omitempty"`
	At        int64       `json:"at,omitempty"`     // instant of the entry; 0 in checkpoints of earlier versions
	Begins    int64       `json:"begins,omitempty"` // of an allowance, microseconds since 1970; 0: not known
}

// grantFacts is the part of an entry's detail that describes a grant.
type grantFacts struct {
	Priority    *int32     `json:"priority"`
	EffectiveAt time.Time  `json:"effective_at"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty"`
	CostBasis   string     `json:"cost_basis,omitempty"`
	Reason      string     `json:"reason,omitempty"`
}

// The priorities of the grants that no request gives a priority.
const (
	priorityAllowance = 10
	priorityTopup     = 100
)

func newJournal() *journal {
	return &journal{periods: map[int64]*periodSums{}, grants: map[string]*grantSums{}, paid: map[paidFor]int64{}}
}

func (j *journal) fault(what, want, got string) {
	for _, f := range j.faults {
		if f.what == what {
			return // the first entry suffices to find the fault
		}
	}
	if len(j.faults) < faultsMax {
		j.faults = append(j.faults, fault{what, want, got})
	}
}

// add adds the next entry to the sums. The stored chain must cover every entry that was written at or after the instant
// `unchained`.
func (j *journal) add(h *hasher, k Key, e *entry, stored *chain, unchained int64) error {
	m := e.moves
	if m == nil {
		m = &moves{}
		j.fault("entries of unknown kind", "none", "entry "+text64(e.seq)+" is a "+string(e.kind))
	}
	j.follow(e, m.remaining())
	j.count++
	j.last, j.at, j.remaining = e.seq, e.createdAt, e.remaining
	j.held += m.held * e.amount
	j.addToPeriod(e, m)
	j.addPayment(e)
	if len(e.grant) > 0 {
		j.addToGrant(e, m)
	}
	switch {
	case stored.From > 0 && e.seq < stored.From, e.seq > stored.Last:
		if e.createdAt >= unchained {
			j.fault("hash chain", "every entry in it", "entry "+text64(e.seq)+" is not")
		}
		return nil
	}
	if j.chain.Last != e.seq-1 || e.seq == stored.From {
		j.chain = chain{}
	}
	return h.add(&j.chain, k, e)
}

// follow compares the entry with the previous entry.
func (j *journal) follow(e *entry, remaining int64) {
	switch {
	case j.count == 0 && j.resumed == nil:
		j.first = e.seq
		if e.seq != 1 {
			j.fault("numbering of entries", "from 1", "from "+text64(e.seq))
		} else if remaining*e.amount != e.remaining {
			j.fault("remaining_after of an entry", text64(remaining*e.amount), text64(e.remaining)+" in entry 1")
		}
	case e.seq != j.last+1:
		j.fault("numbering of entries", text64(j.last+1), text64(e.seq))
	case j.remaining+remaining*e.amount != e.remaining:
		j.fault("remaining_after of an entry", text64(j.remaining+remaining*e.amount), text64(e.remaining)+" in entry "+text64(e.seq))
	}
	if e.createdAt < j.at && j.last > 0 {
		j.fault("time of entries", "never backwards", instant(e.createdAt)+" in entry "+text64(e.seq))
	}
	if !e.inMonth() {
		j.fault("month of an entry", "that of "+instant(e.createdAt), time.Unix(int64(e.month)*86_400, 0).UTC().Format("2006-01")+" in entry "+text64(e.seq))
	}
}

func (j *journal) addToPeriod(e *entry, m *moves) {
	p := j.period
	if p == nil || j.periodStart != e.period {
		if p = j.periods[e.period]; p == nil {
			p = &periodSums{firstAt: e.createdAt, begun: opens(e)}
			j.periods[e.period] = p
		}
		j.period, j.periodStart = p, e.period
	}
	p.granted += m.granted * e.amount
	p.amended += m.amended * e.amount
	p.refunded += m.refunded * e.amount
	p.used += m.used * e.amount
	p.expired += m.expired * e.amount
	p.adjusted += m.adjusted * e.amount
	p.overage += m.overage * e.amount
	p.owed += m.owed * e.amount
	p.paid += m.paid * e.amount
	p.held, p.lastSeq = j.held, e.seq
	p.busy = p.busy || !bytes.HasPrefix(e.operation, []byte("§"))
	switch string(e.kind) {
	case "owe":
		p.owing += e.amount
	case "forgive":
		p.forgiven += e.amount
		j.forgivenSeq = e.seq
	case "expire", "rollover_out":
		if string(e.source) == "rollover" {
			p.rollover = string(e.grant)
		}
	}
}

// opens reports whether an entry was made when its period opened: its operation is one of those by which a period opens,
// and it was due then.
func opens(e *entry) bool {
	if e.effectiveAt != e.period {
		return false
	}
	for _, event := range [...]string{"§allowance/", "§once/", "§rollover-min/", "§owe/", "§idle/"} {
		if bytes.HasPrefix(e.operation, []byte(event)) {
			return true
		}
	}
	return false
}

func (j *journal) addToGrant(e *entry, m *moves) {
	g := j.grant
	if g == nil || j.grantID != string(e.grant) {
		g = j.grants[string(e.grant)]
		j.grant, j.grantID = g, string(e.grant)
	}
	if g == nil {
		g = &grantSums{maker: makerOf(e)}
		j.grants[j.grantID], j.grant = g, g
		if g.Kind == "" && j.resumed == nil {
			j.fault("entry that made a grant", "before any other of grant "+string(e.grant), "entry "+text64(e.seq)+" is a "+string(e.kind))
		}
		if g.Kind == "refund" || g.Kind == "unsettle" || g.Kind == "release" {
			g.Returned = e.amount
			if g.Source == "allowance" {
				g.Given = e.amount
			}
		}
	}
	if string(e.source) != g.Source {
		j.fault("source of grant "+string(e.grant), g.Source, string(e.source)+" in entry "+text64(e.seq))
	}
	g.Issued += m.issued * e.amount
	g.Left += m.left * e.amount
	switch g.Source {
	case "rollover":
		g.roll(e, m)
	case "allowance":
		g.Given += (m.granted + m.amended) * e.amount
	}
	switch string(e.kind) {
	case "schedule":
		g.Scheduled += e.amount
	case "extend_grant":
		j.extend(e, g)
	case "void":
		g.Voided = true
	}
}

// extend sets the later end in the facts of a grant. It copies the facts first, because a checkpoint may share them.
func (j *journal) extend(e *entry, g *grantSums) {
	if g.Facts == nil {
		return // the grant ended before the checkpoint, which compare reports, or its first entry has no facts
	}
	var of struct {
		Answer struct {
			Before *time.Time `json:"previous_expires_at"`
			Until  *time.Time `json:"expires_at"`
		} `json:"answer"`
	}
	was, a := g.Facts.ExpiresAt, &of.Answer
	if json.Unmarshal(e.detail, &of) != nil || was == nil || a.Before == nil || !a.Before.Equal(*was) || a.Until != nil && !a.Until.After(*was) {
		j.fault("extension of grant "+string(e.grant), "from its end to a later one", "entry "+text64(e.seq)+" says something else")
	}
	facts := *g.Facts
	facts.ExpiresAt, g.Facts = a.Until, &facts
}

// roll adds an entry about a rollover grant. Units that roll over are entered in the period before. Units that a
// minimum adds are entered in the grant's own period.
func (g *grantSums) roll(e *entry, m *moves) {
	if m.issued != 0 && g.ToppedIn != e.period {
		g.Topped, g.ToppedIn = 0, e.period
	}
	g.Topped += m.issued * e.amount
}

// makerOf returns the facts of a grant's first entry. Kind is empty if such an entry cannot be the first entry of a
// grant.
func makerOf(e *entry) maker {
	m := maker{Source: string(e.source), Operation: string(e.operation), At: e.createdAt}
	switch kind := string(e.kind); kind {
	case "grant", "schedule", "rollover_in", "adjust_up", "amend_up":
		m.Kind = kind
	case "refund", "unsettle", "release":
		// The detail of an operation's first release has its answer in place of the policy.
		says := bytes.Contains(e.detail, []byte(`"regrant"`)) || kind == "release" && bytes.Contains(e.detail, []byte(`"answer"`))
		if m.Source == "refund" || m.Source == "allowance" && says {
			m.Kind = kind
		}
	}
	if len(e.detail) > 0 && (m.Kind == "grant" || m.Kind == "schedule" || m.Kind == "rollover_in") {
		var facts grantFacts
		if json.Unmarshal(e.detail, &facts) == nil && facts.Priority != nil {
			m.Facts = &facts
		}
	}
	if m.Source == "allowance" {
		m.Begins = e.allowanceBegins()
	}
	if m.Kind == "adjust_up" { // the grant takes effect at once and never ends
		facts := grantFacts{Priority: new(int32(priorityTopup)), EffectiveAt: time.UnixMicro(e.createdAt)}
		_ = json.Unmarshal(e.detail, &facts) // the detail has the reason
		m.Facts = &facts
	}
	return m
}

// allowanceBegins returns when the allowance begins that the entry gives, and 0 if the entry does not say it. An
// allowance begins with its period, or when a change of terms gives it. Only the first period of a balance may begin
// before its allowance was due.
func (e *entry) allowanceBegins() int64 {
	switch op := string(e.operation); {
	case strings.HasPrefix(op, "§allowance/"):
		return e.period
	case e.hasEffective && (strings.HasPrefix(op, "§amend/") || strings.HasPrefix(op, "§once/")):
		return e.effectiveAt
	}
	return 0
}
