package ledger

import (
	"slices"
)

// opKey identifies an operation.
type opKey struct{ tenant, id string }

// need is a balance an operation touches, and the most it may draw from it. needAll asks for the balance's open grants.
type need struct {
	key
	demand int64
}

const needAll int64 = 1<<63 - 1

// request is one client operation as the machine sees it.
type request interface {
	// needs lists the balances to lock. What the operation refers to was looked up before and is found in f.
	needs(f *found) []need
	// decide answers the call or sets its error. A denied or failed call leaves no trace in any book.
	decide(m *machine, c *call) error
	// replay answers the call from the lines stored under its key.
	replay(m *machine, c *call, stored []line)
}

// call is a request on its way through a batch, and then its answer.
type call struct {
	id    opKey
	kind  Kind
	print fingerprint
	req   request

	result   any // the answer's pointer type belongs to the request's kind
	replayed bool
	err      error
}

// reset forgets an answer, before the batch is decided again.
func (c *call) reset() { c.result, c.replayed, c.err = nil, false, nil }

// fail sets the call's error.
func (c *call) fail(e *Error) { c.result, c.err = nil, e }

// errNeedKeys says that a decision needs balances that were not locked with the batch. The batch is locked again with them.
type errNeedKeys struct{ keys []key }

func (e *errNeedKeys) Error() string { return "ledger: more balances are needed than were locked" }

// needKeys returns the error for those of keys that the machine has no book of and that may exist, nil when it has all.
func (m *machine) needKeys(keys ...key) error {
	missing := slices.DeleteFunc(slices.Clone(keys), func(k key) bool {
		_, have := m.books[k]
		_, absent := m.absent[k]
		return have || absent
	})
	if len(missing) == 0 {
		return nil
	}
	return &errNeedKeys{keys: missing}
}
