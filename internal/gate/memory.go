package gate

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/quotasvc/quotasvc/internal/gate/balances"
	"github.com/quotasvc/quotasvc/internal/kit/recent"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

const (
	// refusalAge is how long a balance that was read refuses what it does not have, without being read again.
	refusalAge = 100 * time.Millisecond

	// confirmedAge is that time while Redis confirms with each request that the balance has no newer entry.
	confirmedAge = time.Second

	// refusingAge is how long after its last read a balance that refused is first read again, before the ledger is asked: requests at the same
	// time share that read, where each would take a part of a batch.
	refusingAge = time.Minute

	// repeatAge is how soon after a replay the next request must come to be answered from memory, and how long a replay is remembered.
	repeatAge = time.Second

	// operationsMax bounds the keys of a tenant that are remembered with a refusing balance, 8 bytes each. A tenant with more
	// operations in the memory of keys is always asked for in the ledger: one of them might be the request's own.
	operationsMax = 100_000

	// refusingMax, questionsMax and replaysMax bound what is remembered, besides keys: some MB each.
	refusingMax  = 4096
	questionsMax = 4096
	replaysMax   = 4096

	// keysMax bounds all keys that are remembered: 16 MB.
	keysMax = 2_000_000
)

// spendsAge is how long refusals of a balance are not remembered after it paid. Each time, the keys of its tenant would be read again.
const spendsAge = time.Second

// errSpends means that the tenant's balances change, so that a refusal is not remembered.
var errSpends = errors.New("the balance changed since it refused")

// memory knows requests that the ledger need not be asked again: for units that a balance was just read not to have, and for operations
// whose stored result was just asked for. It protects PostgreSQL from clients that repeat such requests in a loop.
//
// A refusal from memory is one that the ledger would have given within refusalAge. It is never given for a key that may be stored.
type memory struct {
	refusing  *recent.Cache[ledger.BalanceKey, *refusing]
	questions *recent.Cache[string, *refusedQuestion] // by questionOf
	replays   *recent.Cache[ledger.OperationID, *replay]
	keys      atomic.Int64 // of refusing and questions
	flight    singleflight.Group
	seed      maphash.Seed
	most      int    // operationsMax, except in tests
	onKeys    func() // nil, except in tests: keys are read
}

// refusing is a balance that refused a debit. It does not change. A balance that does not decide alone (ledger.BalanceCopy.Beyond) stays here so
// that refusals are remembered as questions.
type refusing struct {
	copy   *ledger.BalanceCopy // nil: it has not been read since
	readAt time.Time
	keys   []uint64  // hashes of the keys of the tenant's operations, in order
	spends time.Time // it has also paid: its refusals are not remembered before
}

// replay is a stored result that was asked for again.
type replay struct {
	fingerprint [16]byte
	result      *ledger.DebitResult
	at          time.Time
}

func newMemory() *memory {
	m := &memory{seed: maphash.MakeSeed(), most: operationsMax}
	m.refusing = recent.NewCache[ledger.BalanceKey](refusingMax, func(b *refusing) { m.keys.Add(-int64(len(b.keys))) })
	m.questions = recent.NewCache[string](questionsMax, func(q *refusedQuestion) { m.keys.Add(-int64(len(q.keys))) })
	m.replays = recent.NewCache[ledger.OperationID, *replay](replaysMax, nil)
	return m
}

// remember replaces what is remembered of key.
func (m *memory) remember(key ledger.BalanceKey, b *refusing) {
	m.refusing.Remove(key)
	m.makeRoom(len(b.keys))
	m.refusing.Put(key, b)
}

// rememberQuestion replaces what is remembered of the question with this name.
func (m *memory) rememberQuestion(name string, q *refusedQuestion) {
	m.questions.Remove(name)
	m.makeRoom(len(q.keys))
	m.questions.Put(name, q)
}

// makeRoom counts n keys that will be remembered, and forgets what was used longest ago if there are too many.
func (m *memory) makeRoom(n int) {
	for total := m.keys.Add(int64(n)); total > keysMax; total = m.keys.Load() {
		balance := m.refusing.RemoveOldest()
		question := m.questions.RemoveOldest()
		if !balance && !question {
			return
		}
	}
}

// recalled is what the memory has about a request. The zero value is nothing.
type recalled struct {
	replay   *ledger.DebitResult
	balance  *refusing
	question *refusedQuestion
}

// likelyNoGrant reports whether the request will probably not be granted, so that only attempts cost.
func (r *recalled) likelyNoGrant(req *Request) bool {
	return r.balance != nil || r.question != nil || r.replay != nil && req.Forwarded == ""
}

// recall returns what is remembered about d. It asks nobody.
func (m *memory) recall(d *ledger.Debit, now time.Time) recalled {
	if m.replays.Len() > 0 {
		if r, ok := m.replays.Get(d.ID()); ok && now.Sub(r.at) < repeatAge && r.answers(d) {
			return recalled{replay: r.result}
		}
	}
	if m.refusing.Len() > 0 && isPlain(d) {
		if b, ok := m.refusing.Get(balanceOf(d)); ok && b.spends.IsZero() && now.Sub(b.readAt) < refusingAge && !b.beyond() && !m.mayBeStored(b.keys, d.Key) {
			return recalled{balance: b}
		}
	}
	return recalled{question: m.recallQuestion(d, now)}
}

// beyond reports whether more than the balance decides.
func (b *refusing) beyond() bool { return b.copy != nil && b.copy.Beyond }

// answers reports whether d is the same request as the one that was answered.
func (r *replay) answers(d *ledger.Debit) bool { return r.fingerprint == ledger.NewCall(d).Fingerprint }

// note remembers the ledger's answer to d.
func (m *memory) note(d *ledger.Debit, result *ledger.DebitResult, err error, now time.Time) {
	switch {
	case err == nil && result.Replayed:
		m.noteReplay(d, result, now)
	case err == nil && m.refusing.Len() > 0 && len(d.Items) == 1:
		if b, ok := m.refusing.Peek(balanceOf(d)); ok && !b.beyond() {
			m.remember(balanceOf(d), &refusing{spends: now.Add(spendsAge)})
		}
	case err != nil && isNormal(d):
		switch ledger.CodeOf(err) { //nolint:exhaustive // other refusals are not about units
		case ledger.CodeQuotaExceeded, ledger.CodeCreditsExhausted, ledger.CodeMeterNotInPlan:
			m.noteRefusal(d, now)
		}
	}
}

// noteRefusal remembers that the ledger refused d.
func (m *memory) noteRefusal(d *ledger.Debit, now time.Time) {
	if isPlain(d) {
		b, ok := m.refusing.Get(balanceOf(d))
		if ok && (now.Before(b.spends) || b.copy != nil && !b.copy.Beyond && now.Sub(b.readAt) < refusalAge) { // requests that came with the first one
			return
		}
		if !ok || !b.beyond() || now.Sub(b.readAt) >= refusingAge {
			m.remember(balanceOf(d), &refusing{readAt: now})
			return
		}
	}
	name := questionOf(d)
	if q, ok := m.questions.Get(name); !ok || !now.Before(q.spends) && (q.check == nil || now.Sub(q.readAt) >= refusalAge) {
		m.rememberQuestion(name, &refusedQuestion{readAt: now})
	}
}

func (m *memory) noteReplay(d *ledger.Debit, result *ledger.DebitResult, now time.Time) {
	m.replays.Put(d.ID(), &replay{ledger.NewCall(d).Fingerprint, result, now})
}

// isPlain reports whether d is normal and has one item, so that one balance decides unless its plan says otherwise.
func isPlain(d *ledger.Debit) bool { return len(d.Items) == 1 && isNormal(d) }

func balanceOf(d *ledger.Debit) ledger.BalanceKey {
	return ledger.BalanceKey{Tenant: d.Tenant, Meter: d.Items[0].Meter}
}

// mayBeStored reports whether key is one of those whose hashes are in keys.
func (m *memory) mayBeStored(keys []uint64, key string) bool {
	_, found := slices.BinarySearch(keys, maphash.String(m.seed, key))
	return found
}

// refusal returns the refusal of d by a balance that the memory has; nil: the ledger must decide. reads are those of the balance,
// nil if Redis was not asked.
func (g *Gate) refusal(ctx context.Context, d *ledger.Debit, facts *tenantFacts, b *refusing, reads *redisstore.Reads) error {
	if newest, shared := g.newestCopy(ctx, balanceOf(d), reads, b); !g.stillRefuses(b, &newest, facts, shared) {
		var err error
		if b, err = g.readRefusing(ctx, d, b); err != nil || g.memory.mayBeStored(b.keys, d.Key) {
			return nil //nolint:nilerr // the ledger is asked instead
		}
	}
	if b.copy.Beyond || d.Items[0].Amount <= b.copy.Remaining {
		return nil
	}
	check := fromCopies(d.Items, []balances.Cached{{Copy: b.copy}}, SourceCache, false)
	g.conclude(&check, nil, false)
	return check.Refusal()
}

// newestCopy returns the newest copy of b's balance that is known, and whether Redis vouches for it. A balance that goes on refusing is asked for
// in Redis, which announces its changes from then on.
func (g *Gate) newestCopy(ctx context.Context, key ledger.BalanceKey, reads *redisstore.Reads, b *refusing) (newest balances.Cached, shared bool) {
	keys, copies := [1]ledger.BalanceKey{key}, make([]balances.Cached, 0, 1)
	if reads == nil || reads.Values == nil { // the limits did not need Redis
		if held, ok := g.copies.Held(copies, keys[:], nil); ok {
			return held[0], true
		}
		if b.copy != nil && g.now().Sub(b.readAt) >= refusalAge {
			reads = g.copies.Reads(keys[:], nil)
			g.copies.Read(ctx, reads)
		}
	}
	return g.copies.LookupReads(copies, keys[:], reads)[0], reads != nil && reads.Values != nil
}

// stillRefuses reports whether b need not be read again. newest is the newest copy that is known of its balance.
func (g *Gate) stillRefuses(b *refusing, newest *balances.Cached, facts *tenantFacts, redisAnswered bool) bool {
	now := g.now()
	if b.copy == nil || newest.Copy == nil || newest.Copy.Seq != b.copy.Seq || b.copy.AsOf.Before(facts.changedAt) ||
		!b.copy.ValidUntil.IsZero() && !now.Before(b.copy.ValidUntil) {
		return false
	}
	age := now.Sub(b.readAt)
	return age < refusalAge || redisAnswered && newest.Confirmed && age < confirmedAge
}

// readRefusing reads the balance of d, and the keys of the tenant's operations unless those of b still hold. Callers at the same time
// share the answer. It fails if the balance has changed since it was read: the keys of a tenant that also spends would be read again and again.
func (g *Gate) readRefusing(ctx context.Context, d *ledger.Debit, b *refusing) (*refusing, error) {
	key := balanceOf(d)
	read, err, _ := g.memory.flight.Do(key.Tenant+" "+key.Meter, func() (any, error) {
		readAt := g.now()
		result, err := g.loader.check(context.WithoutCancel(ctx), d.Tenant, "", d.Items, false)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(result.Copies, func(c ledger.BalanceCopy) bool { return c.Meter == key.Meter && c.Subject == "" })
		if at < 0 {
			return nil, busy()
		}
		next := &refusing{copy: &result.Copies[at], readAt: readAt}
		switch {
		case next.beyond(): // what refuses is remembered as a question
		case b.copy == nil:
			next.keys, err = g.keysOf(ctx, d.Tenant)
		case b.copy.Seq == next.copy.Seq:
			next.keys = b.keys
		default:
			err = errSpends
		}
		if err != nil {
			g.memory.remember(key, &refusing{spends: readAt.Add(pauseAfter(err))})
			return nil, err
		}
		g.memory.remember(key, next)
		return next, nil
	})
	if err != nil {
		return nil, err
	}
	return read.(*refusing), nil
}

// pauseAfter returns how long refusals are not remembered after err: a tenant with too many keys keeps them.
func pauseAfter(err error) time.Duration {
	if ledger.CodeOf(err) == ledger.CodeQueueFull {
		return refusingAge
	}
	return spendsAge
}

// keysOf returns the hashes of the keys of the tenant's operations, in order. It fails if there are too many.
func (g *Gate) keysOf(ctx context.Context, tenant string) ([]uint64, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.loader.budget)
	defer cancel()
	if g.memory.onKeys != nil {
		g.memory.onKeys()
	}
	keys, err := g.ledger.Keys(ctx, tenant, g.memory.most)
	if err != nil {
		return nil, err
	}
	hashes := make([]uint64, len(keys))
	for i, key := range keys {
		hashes[i] = maphash.String(g.memory.seed, key)
	}
	slices.Sort(hashes)
	return hashes, nil
}
