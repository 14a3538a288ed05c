package ledger

import (
	"time"
)

// Kind names what an operation does.
type Kind string

// The kinds of client operations.
const (
	KindDebit   Kind = "debit"
	KindGrant   Kind = "grant"
	KindHold    Kind = "hold"
	KindCapture Kind = "capture"
	KindRelease Kind = "release"
	KindExtend  Kind = "extend"
	KindRefund  Kind = "refund"
	KindVoid    Kind = "void"
	KindAdjust  Kind = "adjust"

	KindExtendGrant Kind = "extend_grant"
)

// Kinds lists the kinds of operations.
func Kinds() []Kind {
	return []Kind{KindDebit, KindGrant, KindHold, KindCapture, KindRelease, KindExtend, KindRefund, KindVoid, KindAdjust, KindExtendGrant}
}

// Operation is one client mutation. The batch and the store treat all kinds in the same way, through these methods. A
// new kind needs a file with a type that implements them, and an element in Kinds.
type Operation interface {
	// ID returns the id by which a retry is recognised.
	ID() OperationID
	// Kind returns the kind, for metrics and logs.
	Kind() Kind
	// Validate sets absent fields to their defaults, and returns the first fault as an *errcode.Error.
	Validate() error
	// Targets adds to t the holds, grants and operations that the request names without a balance, and the ids that
	// it is going to create.
	Targets(t *Targets)
	// Demand lists the balances to lock, and the most that may be drawn from each.
	Demand(found *Located) []Demand

	// fingerprint hashes the request as the client sent it, never anything derived from state.
	fingerprint() [16]byte
	// decide changes books and sets the call's answer or error. A refused operation leaves no trace in any book. It
	// returns an error only if balances, grants or terms were not read. The store then reads them, and the batch
	// decides again.
	decide(b *Batch, c *Call) error
	// rebuild returns the answer that the client got when the operation's entries were stored.
	rebuild(stored []Entry) (answer, error)
}

// Request is an Operation that is answered with an R.
type Request[R any] interface {
	Operation

	// answers ties the kind of operation to the type of its answer.
	answers(*R)
}

// answer is the interface of the answers to operations.
type answer interface {
	// replay marks a rebuilt answer as a replay and fills in the part that is not stored: the present state of its
	// balances.
	replay(b *Batch)
}

// Demands that are larger than any amount.
const (
	DemandAll   int64 = 1<<63 - 2 // all open grants of the balance
	DemandWhole int64 = 1<<63 - 1 // its open grants and its terms
)

// Demand is a balance that an operation touches, and the most units that it may draw from the balance.
type Demand struct {
	BalanceKey

	Most int64
}

// Targets lists the holds, grants and operations to which a batch refers.
type Targets struct {
	Holds      []HoldKey      // to be changed: the store looks up their balances
	NewHolds   []HoldKey      // to be created: the store looks up, under the lock, which of them exist
	Grants     []GrantName    // to be changed: the store looks up their balances
	NewGrants  []GrantKey     // to be issued under ids that clients chose: looked up like NewHolds
	KeyGrants  []GrantKey     // to be issued under ids made from keys: looked up like NewHolds, but not in a dry run
	Operations []OperationRef // to be refunded: the store looks up their entries
}

// Reissued lists the grants that refunds would issue under ids made from their keys. The store looks up, under the
// lock, which of these grants exist.
func (f *Located) Reissued(calls []*Call) []GrantKey {
	var out []GrantKey
	for _, c := range calls {
		if r, ok := c.Op.(*Refund); ok && r.Return == ReturnRegrant {
			out = append(out, r.regrants(f)...)
		}
	}
	return out
}

// None reports whether there are no targets.
func (t *Targets) None() bool {
	return len(t.Holds)+len(t.NewHolds)+len(t.Grants)+len(t.NewGrants)+len(t.KeyGrants)+len(t.Operations) == 0
}

// GrantName names a grant of a tenant without its balance.
type GrantName struct{ Tenant, ID string }

// Located has the Targets' data that the store read before it locked the balances. It never changes.
type Located struct {
	Holds      map[HoldKey][]BalanceKey
	Grants     map[GrantName][]BalanceKey
	Operations map[OperationRef][]Entry // by line
}

// RefundedHolds lists the holds whose captures are to be refunded, if the captures pay at a price that is not a whole
// number. A refund depends on all lines of such a hold.
func (f *Located) RefundedHolds() []HoldKey {
	var out []HoldKey
	for _, entries := range f.Operations {
		for i := range entries {
			e := &entries[i]
			if e.Kind != EntryCapture {
				continue
			}
			if paid := overflowOf(e); paid != nil && paid.Per > 1 {
				out = append(out, HoldKey{e.Tenant, holdOf(e)})
			}
		}
	}
	return out
}

// NamedGrants lists the grants to which refunds may return units. The store reads them even if they are no longer open.
func (f *Located) NamedGrants() []GrantKey {
	var out []GrantKey
	for _, entries := range f.Operations {
		for i := range entries {
			if entries[i].Grant != "" {
				out = append(out, GrantKey{entries[i].BalanceKey, entries[i].Grant})
			}
		}
	}
	return out
}

// Position is the state of a balance after an operation.
type Position struct {
	Remaining int64
	// Limit is the total that can be used in the open period: remaining units, held units, and units that were used
	// and not refunded.
	Limit   int64
	ResetAt time.Time // end of the period; zero when it has none
}

// Within returns the position of a subject's cap if less remains of it than of p, otherwise p. If there is no cap, the
// argument is nil.
func (p Position) Within(limit *Position) Position {
	if limit != nil && limit.Remaining < p.Remaining {
		return *limit
	}
	return p
}
