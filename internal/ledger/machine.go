package ledger

import (
	"errors"
	"time"
)

// missing says why a balance row could not be made.
type missing int

const (
	missingTenant missing = iota + 1
	missingMeter
)

type grantKey struct {
	key
	id string
}

// machine decides a batch. It performs no I/O: books, stored lines and now are read before, what changed is written after.
type machine struct {
	now     time.Time
	books   map[key]*book
	absent  map[key]missing
	stored  map[opKey][]line // what the journal knows of the batch's keys; grows with what the batch decides
	taken   map[grantKey]bool
	holds   map[holdKey]*holdRow
	refunds map[refundKey]*refundSum
	found   found
	journal journal
	undo    []undone
}

// found is what was looked up before the locks, to learn which balances an operation is about. None of it ever changes.
type found struct {
	holds  map[holdKey][]key
	grants map[homeKey][]key
	debits map[opKey][]line
}

func newMachine() machine {
	return machine{
		books: map[key]*book{}, absent: map[key]missing{}, stored: map[opKey][]line{}, taken: map[grantKey]bool{},
		holds: map[holdKey]*holdRow{}, refunds: map[refundKey]*refundSum{},
	}
}

// undone is a book as it was before the operation in hand touched it.
type undone struct {
	k      key
	before *book
}

// advanceAll brings every book to now. more = true: write what there is, commit, and read the batch again.
func (m *machine) advanceAll() (more bool, err error) {
	for _, b := range m.books {
		mark := len(m.journal.lines)
		again, err := b.advance(later(m.now, b.updatedAt), &m.journal)
		switch {
		case errors.Is(err, errNotLoaded):
			return false, err
		case err != nil:
			m.journal.lines = m.journal.lines[:mark]
			b.broken = err
		}
		more = more || again
	}
	return more, nil
}

// decide answers c: from what is stored under its key, or anew.
func (m *machine) decide(c *call) error {
	c.reset()
	if lines, ok := m.stored[c.id]; ok {
		if len(lines) == 0 || string(lines[0].fingerprint) != string(c.print[:]) {
			c.fail(errorf(CodeIdempotencyKeyReused, "Idempotency-Key", "this key was used for another request of tenant %q", c.id.tenant))
			return nil
		}
		c.replayed = true
		if lines[0].kind == lineDenial {
			c.fail(replayDenial(&lines[0], m.now))
			return nil
		}
		c.req.replay(m, c, lines)
		return nil
	}
	return c.req.decide(m, c)
}

// book returns the book of k, or why the operation cannot have it.
func (m *machine) book(k key, field string) (*book, *Error) {
	if b, ok := m.books[k]; ok {
		if b.broken != nil {
			return nil, &Error{Code: CodeInternal, Detail: "the balance's next period cannot be computed", cause: b.broken}
		}
		return b, nil
	}
	if m.absent[k] == missingMeter {
		return nil, errorf(CodeNotFound, field, "meter %q does not exist", k.Meter)
	}
	return nil, errorf(CodeTenantNotFound, "tenant", "tenant %q does not exist", k.Tenant)
}

// position reports where a balance stands, for replays; zero when the batch did not load it.
func (m *machine) position(k key) Position {
	if b, ok := m.books[k]; ok {
		return b.position()
	}
	return Position{}
}

// remember keeps b as it is, so that rollback can restore it.
func (m *machine) remember(b *book) {
	for _, u := range m.undo {
		if u.k == b.key {
			return
		}
	}
	m.undo = append(m.undo, undone{b.key, b.clone()})
}

// rollback restores every remembered book and drops the lines from first on.
func (m *machine) rollback(first int) {
	for _, u := range m.undo {
		*m.books[u.k] = *u.before
	}
	m.undo = m.undo[:0]
	m.journal.lines = m.journal.lines[:first]
}

// opMeta is what every line of one client operation carries.
type opMeta struct {
	subject  string
	metadata []byte
}

// seal marks the lines from first on as the operation of c, and remembers them for followers in the same batch.
func (m *machine) seal(c *call, first int, meta opMeta) {
	m.undo = m.undo[:0]
	lines := m.journal.lines[first:]
	lines[0].fingerprint = c.print[:]
	at := lines[0].createdAt
	for i := range lines {
		at = later(at, lines[i].createdAt)
	}
	for i := range lines {
		l := &lines[i]
		l.operationID, l.line = c.id.id, int32(i)+1
		// One operation, one instant: the latest of its balances' clocks.
		l.createdAt = at
		l.metadata = meta.metadata
		if meta.subject != "" {
			l.opSubject = &meta.subject
		}
		if b := m.books[l.key]; b.updatedAt.Before(at) {
			b.updatedAt = at
		}
	}
	m.stored[c.id] = lines
}
