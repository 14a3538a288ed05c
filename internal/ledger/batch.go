package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// Absence is the reason why a balance row could not be created.
type Absence int

// The reasons why a balance row could not be created.
const (
	AbsentTenant Absence = iota + 1
	AbsentMeter
	AbsentGauge // the meter is a gauge
)

// GrantKey names a grant.
type GrantKey struct {
	BalanceKey

	ID string
}

// Batch decides operations together. It performs no I/O: the store fills the exported fields before Decide, and
// afterwards writes the rows that Changes returns.
type Batch struct {
	Now     time.Time               // instant of the batch: the clock, read after the locks
	Books   map[BalanceKey]*Book    // the requested balances that exist
	Absent  map[BalanceKey]Absence  // the reasons why the other requested balances do not exist
	Stored  map[OperationID][]Entry // stored entries of the batch's keys, by line; Decide adds new entries
	Located Located                 // balances and entries to which operations refer
	Targets TargetState             // state of the holds, grants and entries that operations name

	journal []Entry // new entries of the batch, in order
	saved   []savepoint
	trial   bool       // the batch only finds out what an operation lacks: see future.try
	only    int        // in a trial: the only item that is decided, or every
	lacks   []shortage // in a trial: all that the operation lacks
	hashed  []byte     // buffer of chainEntries
}

// TargetState is the state of the holds, grants and entries that operations name, read under the locks. Decide adds
// the rows that it creates.
type TargetState struct {
	Taken   map[GrantKey]bool       // grants that the batch is to issue but that exist already
	Holds   map[HoldKey]*HoldRow    // existing holds among those that the batch is to create or to change
	Refunds map[EntryKey]*RefundSum // earlier refunds of the entries to be refunded
}

// NewTargetState returns a state in which nothing exists.
func NewTargetState() TargetState {
	return TargetState{Taken: map[GrantKey]bool{}, Holds: map[HoldKey]*HoldRow{}, Refunds: map[EntryKey]*RefundSum{}}
}

// RefundSum is the part of an entry that was refunded.
type RefundSum struct {
	Amount  int64
	Units   int64 // refunded units of the item; only for an overflow entry at a price that is not a whole number
	changed bool
}

// savepoint is a book as it was before the current operation changed it.
type savepoint struct {
	key    BalanceKey
	before *Book
}

// NewBatch returns an empty batch.
func NewBatch() *Batch {
	return &Batch{Books: map[BalanceKey]*Book{}, Stored: map[OperationID][]Entry{}}
}

// Next says what the store must do after Decide. The zero value means: write the changes, commit, and return the
// answers.
type Next struct {
	// More names further balances that the operations need, or need as a whole. Discard the batch, and read it again
	// with the grants and terms of these balances.
	More []Need
	// All means that the decisions need the grants and terms of every balance of the batch. Discard the batch, and
	// read it again with them. The store normally reads all that decisions need, so the cause is a clock that jumped
	// between two statements, or a bug.
	All bool
	// CatchUp means that a balance has missed more periods than one transaction closes. Write the changes, commit, and
	// read the batch again. No call has been answered.
	CatchUp bool
}

// Need names balances that a call needs. By is nil for a check.
type Need struct {
	By   *Call
	Keys []BalanceKey
}

// Done reports whether the batch was decided.
func (n Next) Done() bool { return len(n.More) == 0 && !n.All && !n.CatchUp }

// Keys returns the balances that all calls need.
func (n Next) Keys() []BalanceKey {
	var keys []BalanceKey
	for _, need := range n.More {
		keys = append(keys, need.Keys...)
	}
	return keys
}

// moreBalances is the error of a decision that needs balances which were not read.
type moreBalances struct{ keys []BalanceKey }

func (e *moreBalances) Error() string { return "ledger: more balances are needed than were read" }

// errNotLoaded is the error of a decision that needs grants or terms which were not read.
var errNotLoaded = errors.New("ledger: grants or terms were not read")

// Decide advances every balance to the batch's instant and answers the calls in order.
func (b *Batch) Decide(calls []*Call) Next {
	catchUp, err := b.advance()
	if catchUp {
		return Next{CatchUp: true}
	}
	if err != nil {
		return Next{All: true}
	}
	var next Next
	for _, c := range calls {
		next.add(b.decide(c), c)
	}
	return next
}

// add adds what a decision of the call `by` lacked.
func (n *Next) add(err error, by *Call) {
	if more, ok := errors.AsType[*moreBalances](err); ok {
		n.More = append(n.More, Need{by, more.keys})
		return
	}
	n.All = n.All || err != nil
}

// advance processes the due events of every book. It returns catchUp = true if another transaction must process
// further events.
func (b *Batch) advance() (catchUp bool, err error) {
	for _, book := range b.Books {
		mark := len(b.journal)
		_, more, err := book.advance(period.Later(b.Now, book.UpdatedAt), advanceStepsMax, &b.journal)
		switch {
		case errors.Is(err, errNotLoaded), errors.Is(err, errPastUse):
			return false, err
		case err != nil:
			b.journal = b.journal[:mark]
			book.Broken = err
		}
		catchUp = catchUp || more
	}
	return catchUp, nil
}

// AdvanceInMemory advances the books of a read-only batch to its instant. Each book keeps, in Unwritten, the entries
// that a write transaction would store. If many events are due, this takes several rounds. stop is called between two
// rounds, and its error ends the work. stop may be nil.
func (b *Batch) AdvanceInMemory(stop func() error) error {
	for more := true; more; {
		var err error
		if more, err = b.advance(); err == nil && more && stop != nil {
			err = stop()
		}
		if err != nil {
			return err
		}
		for _, e := range b.journal {
			book := b.Books[e.BalanceKey]
			book.Unwritten = append(book.Unwritten, e)
		}
		b.journal = nil
	}
	return nil
}

// Roll processes everything that is due. Rolls use it. The argument `most` is the approximate limit on the events of all
// books together. Beyond the limit, books stay unchanged and due. Roll returns the number of books that it finished, and
// the errors of broken books.
func (b *Batch) Roll(most int) (finished int, broken map[BalanceKey]error) {
	broken = map[BalanceKey]error{}
	for _, book := range b.Books {
		if most <= 0 {
			break
		}
		mark, now := len(b.journal), period.Later(b.Now, book.UpdatedAt)
		steps, more, err := book.advance(now, min(most, advanceStepsMax), &b.journal)
		most -= steps + 1
		if err == nil && !more {
			if book.refresh(); !book.RollAt.After(now) { // the stored RollAt may be from another version
				err = fmt.Errorf("ledger: balance %v is due at %s when all that is due was worked off", book.BalanceKey, book.RollAt.Format(time.RFC3339))
			}
		}
		if err != nil {
			b.journal = b.journal[:mark]
			book.Broken = err
			broken[book.BalanceKey] = err
		} else if !more {
			finished++
		}
	}
	return finished, broken
}

// decide answers c from the entries stored under its key. If there are no such entries, it decides c.
func (b *Batch) decide(c *Call) error {
	c.Reset()
	if stored, ok := b.Stored[c.ID]; ok {
		b.answerStored(c, stored)
		return nil
	}
	return c.Op.decide(b, c)
}

// answerStored answers a retry with the stored denial or the rebuilt answer. It refuses the retry if the stored request
// differs.
func (b *Batch) answerStored(c *Call, stored []Entry) {
	if len(stored) == 0 || string(stored[0].Fingerprint) != string(c.Fingerprint[:]) {
		_ = c.refuse(errcode.Errorf(errcode.IdempotencyKeyReused, "Idempotency-Key", "this key was used for another request of tenant %q", c.ID.Tenant))
		return
	}
	c.Replayed = true
	if stored[0].Kind == EntryDenial {
		_ = c.refuse(storedDenial(&stored[0], b.Now))
		return
	}
	a, err := c.Op.rebuild(stored)
	if err != nil {
		_ = c.refuse(&errcode.Error{Code: errcode.Internal, Detail: "the stored answer cannot be read", Cause: err})
		return
	}
	a.replay(b)
	c.Answer = a
}

// storedAnswer decodes the answer that the first entry of an operation carries in its detail.
func storedAnswer[A any](stored []Entry) (*A, error) {
	var detail struct {
		Answer json.RawMessage `json:"answer"`
	}
	if err := json.Unmarshal(stored[0].Detail, &detail); err != nil {
		return nil, err
	}
	out := new(A)
	return out, json.Unmarshal(detail.Answer, out)
}

// Book returns the book of k, or the reason why the operation cannot use it.
func (b *Batch) Book(k BalanceKey) (*Book, *errcode.Error) {
	book, ok := b.Books[k]
	switch {
	case !ok && b.Absent[k] == AbsentGauge:
		return nil, errcode.Errorf(errcode.InvalidArgument, "meter", "meter %q is a gauge, which is set: PUT /v1/tenants/{tenant}/gauges/{meter}", k.Meter)
	case !ok && b.Absent[k] == AbsentMeter:
		return nil, errcode.Errorf(errcode.NotFound, "meter", "meter %q does not exist", k.Meter)
	case !ok:
		return nil, errcode.Errorf(errcode.TenantNotFound, "tenant", "tenant %q does not exist", k.Tenant)
	case book.Broken != nil:
		return nil, &errcode.Error{Code: errcode.Internal, Detail: "the balance's next period cannot be computed", Cause: book.Broken}
	}
	return book, nil
}

// loadedBook returns the book of k with its open grants. It returns errNotLoaded if the grants were not read.
func (b *Batch) loadedBook(k BalanceKey) (*Book, *errcode.Error, error) {
	book, refused := b.Book(k)
	if refused == nil && (!book.loaded || book.needsTerms()) {
		return nil, nil, errNotLoaded
	}
	return book, refused, nil
}

// require returns an error that names the balances which were not read and may exist. It returns nil if there are
// none.
func (b *Batch) require(keys ...BalanceKey) error {
	missing := slices.DeleteFunc(slices.Clone(keys), func(k BalanceKey) bool {
		_, have := b.Books[k]
		_, absent := b.Absent[k]
		return have || absent
	})
	if len(missing) == 0 {
		return nil
	}
	return &moreBalances{keys: missing}
}

// position returns the position of a balance, for replays. It returns the zero Position if the batch has not read the
// balance.
func (b *Batch) position(k BalanceKey) Position {
	if book, ok := b.Books[k]; ok {
		return book.Position()
	}
	return Position{}
}

// save copies books, so that rollBack can restore them. Nil books are left out.
func (b *Batch) save(books ...*Book) {
	for _, book := range books {
		if book == nil || slices.ContainsFunc(b.saved, func(s savepoint) bool { return s.key == book.BalanceKey }) {
			continue
		}
		b.saved = append(b.saved, savepoint{book.BalanceKey, book.clone()})
	}
}

// rollBack restores the saved books and removes the entries from the index `first` on from the journal.
func (b *Batch) rollBack(first int) {
	for _, s := range b.saved {
		*b.Books[s.key] = *s.before
	}
	b.saved = b.saved[:0]
	b.journal = b.journal[:first]
}

// enter appends e as the next entry of book, at the batch's instant.
func (b *Batch) enter(book *Book, e Entry) { book.enter(&b.journal, b.Now, e) }

// finish marks the entries from the index `first` on as the entries of the call c, and returns the first of them. These
// entries also answer a retry in the same batch.
func (b *Batch) finish(c *Call, first int, subject string, metadata []byte) *Entry {
	b.saved = b.saved[:0]
	entries := b.journal[first:]
	entries[0].Fingerprint = c.Fingerprint[:]
	at := entries[0].CreatedAt // all entries of the operation get the latest of their instants
	for i := range entries {
		if entries[i].CreatedAt.After(at) {
			at = entries[i].CreatedAt
		}
	}
	for i := range entries {
		e := &entries[i]
		e.OperationID, e.Line, e.CreatedAt, e.OpSubject, e.Metadata = c.ID.Key, int32(i)+1, at, subject, metadata
		e.Actor = c.Actor
		if book := b.Books[e.BalanceKey]; book.UpdatedAt.Before(at) {
			book.UpdatedAt = at
		}
	}
	b.Stored[c.ID] = entries
	return &entries[0]
}

// Call is an operation in a batch and, after the decision, its answer.
type Call struct {
	Op          Operation
	Kind        Kind
	ID          OperationID
	Fingerprint [16]byte
	Actor       string // id of the key that the request was sent with; the entries carry it. Empty: no key
	Origin      any    // data of the store about the request; decisions do not read it

	Answer   any // a pointer to the answer type of the operation's kind; nil when Err is set
	Replayed bool
	Err      error
}

// NewCall prepares op for a batch. op must have passed Validate.
func NewCall(op Operation) *Call {
	return &Call{Op: op, Kind: op.Kind(), ID: op.ID(), Fingerprint: op.fingerprint()}
}

// Answer returns the answer or the error of a call whose operation has answers of type R.
func Answer[R any](c *Call) (*R, error) {
	if c.Err != nil {
		return nil, c.Err
	}
	return c.Answer.(*R), nil
}

// Reset removes the answer, before the batch is decided again.
func (c *Call) Reset() { c.Answer, c.Replayed, c.Err = nil, false, nil }

// refuse answers the call with e.
func (c *Call) refuse(e *errcode.Error) error {
	c.Answer, c.Err = nil, e
	return nil
}
