package ledger

import "time"

// EntryKind is the kind of a journal entry.
type EntryKind string

// The kinds of entries. The variable entryKinds defines to which sums of the balance each kind adds its amount.
const (
	EntryGrant         EntryKind = "grant"         // a grant took effect
	EntryDebit         EntryKind = "debit"         // units of a grant were used
	EntryOverage       EntryKind = "overage"       // units were used that no grant pays
	EntryRefund        EntryKind = "refund"        // a debit was taken back
	EntryRefundOverage EntryKind = "unoverage"     // overage of the open period was taken back
	EntryForgive       EntryKind = "forgive"       // the closing period's overage was forgiven
	EntryOwe           EntryKind = "owe"           // the period begins with overage of earlier periods
	EntryPayOwed       EntryKind = "settle"        // the new allowance paid overage of earlier periods
	EntryRefundOwed    EntryKind = "unowe"         // overage of an earlier period was taken back before it was paid
	EntryRefundPaid    EntryKind = "unsettle"      // overage of an earlier period was taken back after it was paid
	EntryRefundClosed  EntryKind = "closed_refund" // overage that nobody owes any more was taken back
	EntryAmendUp       EntryKind = "amend_up"      // new terms raised the allowance of the open period
	EntryAmendDown     EntryKind = "amend_down"    // new terms lowered it
	EntryExpire        EntryKind = "expire"        // the remainder of a grant expired
	EntryVoid          EntryKind = "void"          // the remainder of a grant was taken back
	EntryAdjustUp      EntryKind = "adjust_up"
	EntryAdjustDown    EntryKind = "adjust_down"
	EntryHold          EntryKind = "hold"         // units were reserved
	EntryCapture       EntryKind = "capture"      // reserved units were used
	EntryRelease       EntryKind = "release"      // reserved units came back: released, expired, or not captured
	EntryRolloverOut   EntryKind = "rollover_out" // units left a grant of the closing period
	EntryRolloverIn    EntryKind = "rollover_in"  // units came to a grant of the next period
	EntrySchedule      EntryKind = "schedule"     // a grant was issued that takes effect later
	EntryExtend        EntryKind = "extend"       // a hold lasts longer
	EntryExtendGrant   EntryKind = "extend_grant" // a grant ends later
	EntryDenial        EntryKind = "denial"       // a denial was stored under its key
)

// Moves says what one unit of an entry's amount adds to each sum of the balance: 1, 0 or -1.
type Moves struct {
	Granted, Amended, Refunded, Used, Expired, Adjusted, Held, Overage, Owed, Paid int64
}

// Remaining returns what one unit of the amount adds to the remaining units. It is computed from the other sums.
func (m Moves) Remaining() int64 {
	return m.Granted + m.Amended + m.Refunded - m.Used - m.Expired + m.Adjusted - m.Held
}

// entryKinds holds every kind of entry in the order in which lists name them. It is the only place that defines to
// which sums each kind adds its amount. Decisions, statements and past balances use it to add up entries. A test
// compares it with the sums in the auditor's SQL.
var entryKinds = []struct {
	kind  EntryKind
	moves Moves
}{
	{EntryGrant, Moves{Granted: 1}},
	{EntryDebit, Moves{Used: 1}},
	{EntryOverage, Moves{Overage: 1}},
	{EntryRefund, Moves{Refunded: 1}},
	{EntryRefundOverage, Moves{Overage: -1}},
	{EntryForgive, Moves{}},
	{EntryOwe, Moves{Overage: 1, Owed: 1}},
	{EntryPayOwed, Moves{Used: 1, Overage: -1, Owed: -1, Paid: 1}},
	{EntryRefundOwed, Moves{Overage: -1, Owed: -1}},
	{EntryRefundPaid, Moves{Refunded: 1, Paid: -1}},
	{EntryRefundClosed, Moves{}},
	{EntryAmendUp, Moves{Amended: 1}},
	{EntryAmendDown, Moves{Amended: -1}},
	{EntryExpire, Moves{Expired: 1}},
	{EntryVoid, Moves{Adjusted: -1}},
	{EntryAdjustUp, Moves{Adjusted: 1}},
	{EntryAdjustDown, Moves{Adjusted: -1}},
	{EntryHold, Moves{Held: 1}},
	{EntryCapture, Moves{Used: 1, Held: -1}},
	{EntryRelease, Moves{Held: -1}},
	{EntryRolloverOut, Moves{}},
	{EntryRolloverIn, Moves{}},
	{EntrySchedule, Moves{}},
	{EntryExtend, Moves{}},
	{EntryExtendGrant, Moves{}},
	{EntryDenial, Moves{}},
}

// moves maps each kind to its Moves.
var moves = func() map[EntryKind]Moves {
	out := make(map[EntryKind]Moves, len(entryKinds))
	for _, k := range entryKinds {
		out[k.kind] = k.moves
	}
	return out
}()

// Moves returns what the kind adds to the sums, and false if the kind does not exist.
func (k EntryKind) Moves() (Moves, bool) {
	m, known := moves[k]
	return m, known
}

// EntryKinds lists the kinds of entries.
func EntryKinds() []EntryKind {
	kinds := make([]EntryKind, len(entryKinds))
	for i := range entryKinds {
		kinds[i] = entryKinds[i].kind
	}
	return kinds
}

// Entry is one immutable line of the journal.
type Entry struct {
	BalanceKey

	OperationID    string
	Line           int32 // number within the operation, from 1
	Seq            int64 // number within the balance, from 1 without gaps
	Kind           EntryKind
	PeriodStart    time.Time
	Grant          string // empty: no grant
	Source         Source
	Amount         int64
	RemainingAfter int64 // remaining units of the balance after this entry
	Item           int32 // index of the item in the request
	Requested      int64 // requested amount of the item, on the item's first entry; 0 on other entries
	Fingerprint    []byte
	CreatedAt      time.Time
	EffectiveAt    time.Time // when one of the ledger's own entries was due; zero on entries of clients' operations
	OpSubject      string    // subject of the request; empty: none
	Detail         []byte    // JSON object or nil
	Metadata       []byte    // JSON object or nil
	Actor          string    // id of the key that the operation was sent with; empty: none, or the ledger's own entry
}
