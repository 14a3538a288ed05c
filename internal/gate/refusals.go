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
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/recent"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

const (
	// refusalAge is how long after a read of a balance the debits that exceed it are refused without another read.
	refusalAge = 100 * time.Millisecond

	// confirmedAge replaces refusalAge while Redis confirms with each request that the balance has no newer entry.
	confirmedAge = time.Second

	// refusingAge is the time after the last read of a balance that refused in which the balance is read again before
	// the ledger decides. Concurrent requests share that read; in the ledger each request would take a part of a
	// batch.
	refusingAge = time.Minute

	// repeatAge is how long a replay is remembered. A request that comes within this time after the replay is
	// answered from memory.
	repeatAge = time.Second

	// operationsMax bounds the keys of a tenant that are remembered with a refusing balance, 8 bytes each. The ledger
	// always decides for a tenant with more operations in the memory of keys: one of these operations might have the
	// request's key.
	operationsMax = 100_000

	// refusingMax, questionsMax and replaysMax bound the remembered entries, which take some MB each without their
	// keys.
	refusingMax  = 4096
	questionsMax = 4096
	replaysMax   = 4096

	// keysMax bounds all keys that are remembered: 16 MB.
	keysMax = 2_000_000
)

// spendsAge is how long the refusals of a balance are not remembered after the balance has paid. Otherwise each
// payment would require another read of the tenant's keys.
const spendsAge = time.Second

// errSpends means that the tenant's balances change, so that a refusal is not remembered.
var errSpends = errors.New("the balance changed since it refused")

// refusals answers two kinds of debits from memory: debits for more units than a balance had at a very recent read,
// and debits whose stored result was just returned. It protects PostgreSQL from clients that repeat such debits in a
// loop. In normal service it answers nothing, and a reader of the code may skip it: debits call answer before the
// ledger, and note after it.
//
// A refusal from memory is a refusal that the ledger would have given within refusalAge. It is never given for a key
// that may be stored. Refusals by one balance are in refusedbalance.go, all others in refusedquestion.go.
type refusals struct {
	copies *balances.Cache
	loader *loader
	stored func(ctx context.Context, tenant string, most int) (keys []string, err error) // of the tenant's operations
	now    func() time.Time                                                              // the ledger's clock

	refusing  *recent.Cache[ledger.BalanceKey, *refusing]
	questions *recent.Cache[string, *refusedQuestion] // by questionOf
	replays   *recent.Cache[ledger.OperationID, *replay]
	keys      atomic.Int64 // number of keys in refusing and questions
	flight    singleflight.Group
	seed      maphash.Seed
	most      int    // operationsMax, except in tests
	onKeys    func() // is called when keys are read; nil, except in tests
}

// replay is a stored result that was requested again.
type replay struct {
	fingerprint [16]byte
	result      *ledger.DebitResult
	at          time.Time
}

// newRefusals returns a memory of the refusals of g, whose ledger, loader and copies are set.
func newRefusals(g *Gate) *refusals {
	m := &refusals{
		copies: g.copies, loader: g.loader, stored: g.ledger.Keys, now: g.now,
		seed: maphash.MakeSeed(), most: operationsMax,
	}
	m.refusing = recent.NewCache[ledger.BalanceKey](refusingMax, func(b *refusing) { m.keys.Add(-int64(len(b.keys))) })
	m.questions = recent.NewCache[string](questionsMax, func(q *refusedQuestion) { m.keys.Add(-int64(len(q.keys))) })
	m.replays = recent.NewCache[ledger.OperationID, *replay](replaysMax, nil)
	return m
}

// answer answers d from memory. known is false if the ledger must decide. It may read a balance again, together with
// other debits.
func (m *refusals) answer(
	ctx context.Context, d *ledger.Debit, facts *tenantFacts,
) (result *ledger.DebitResult, known bool, err error) {
	found := m.find(d)
	return found.answer(ctx, facts, nil)
}

// remembered is the memory's entry about a debit. The zero value means that there is no entry.
type remembered struct {
	in    *refusals
	debit *ledger.Debit

	// At most one of these is set.
	replay   *ledger.DebitResult
	balance  *refusing
	question *refusedQuestion
}

// find returns the memory's entry about d. It makes no query.
func (m *refusals) find(d *ledger.Debit) remembered {
	found := remembered{in: m, debit: d}
	now := m.now()
	if found.replay = m.findReplay(d, now); found.replay != nil {
		return found
	}
	if found.balance = m.findBalance(d, now); found.balance != nil {
		return found
	}
	found.question = m.findQuestion(d, now)
	return found
}

// findReplay returns the result with which d was answered a moment ago. It returns nil if there is none.
func (m *refusals) findReplay(d *ledger.Debit, now time.Time) *ledger.DebitResult {
	if m.replays.Len() == 0 {
		return nil
	}
	if r, ok := m.replays.Get(d.ID()); ok && now.Sub(r.at) < repeatAge && r.answers(d) {
		return r.result
	}
	return nil
}

// likely reports whether memory probably answers the debit. At a gateway a replay is one more request and does not
// count here.
func (r *remembered) likely(forwarded bool) bool {
	return r.balance != nil || r.question != nil || r.replay != nil && !forwarded
}

// reads returns the read of Redis that a refusal needs, so that the limits can be decided in the same round trip. It
// returns nil if the refusal needs no read.
func (r *remembered) reads() *redisstore.Reads {
	if r.balance == nil {
		return nil
	}
	return r.in.copies.Reads([]ledger.BalanceKey{balanceOf(r.debit)}, nil)
}

// answer does the work of refusals.answer after find. reads is the result of r.reads if Redis was read; else nil.
func (r *remembered) answer(
	ctx context.Context, facts *tenantFacts, reads *redisstore.Reads,
) (result *ledger.DebitResult, known bool, err error) {
	switch {
	case r.replay != nil:
		return r.replay, true, nil
	case r.balance == nil && r.question == nil:
		return nil, false, nil
	}
	if err = r.debit.Validate(); err != nil {
		return nil, true, err
	}
	if r.question != nil {
		err = r.in.refuseByQuestion(ctx, r.debit, facts, r.question)
	} else {
		err = r.in.refuseByBalance(ctx, r.debit, facts, r.balance, reads)
	}
	return nil, err != nil, err
}

// answers reports whether d is the same request as the answered one.
func (r *replay) answers(d *ledger.Debit) bool { return r.fingerprint == ledger.NewCall(d).Fingerprint }

// note remembers the ledger's answer to d.
func (m *refusals) note(d *ledger.Debit, result *ledger.DebitResult, err error) {
	now := m.now()
	switch {
	case err == nil && result.Replayed:
		m.replays.Put(d.ID(), &replay{ledger.NewCall(d).Fingerprint, result, now})
	case err == nil && m.refusing.Len() > 0 && len(d.Items) == 1:
		if b, ok := m.refusing.Peek(balanceOf(d)); ok && !b.incomplete() {
			m.keepBalance(balanceOf(d), &refusing{spends: now.Add(spendsAge)})
		}
	case err != nil && isNormal(d):
		switch errcode.Of(err) { //nolint:exhaustive // other refusals are not about units
		case errcode.QuotaExceeded, errcode.CreditsExhausted, errcode.MeterNotInPlan:
			m.noteRefusal(d, now)
		}
	}
}

// noteRefusal remembers that the ledger refused d.
func (m *refusals) noteRefusal(d *ledger.Debit, now time.Time) {
	if isPlain(d) {
		b, ok := m.refusing.Get(balanceOf(d))
		if ok && (now.Before(b.spends) || b.copy != nil && !b.copy.Beyond && now.Sub(b.readAt) < refusalAge) {
			return // d came together with the first refused debit
		}
		if !ok || !b.incomplete() || now.Sub(b.readAt) >= refusingAge {
			m.keepBalance(balanceOf(d), &refusing{readAt: now})
			return
		}
	}
	name := questionOf(d)
	q, ok := m.questions.Get(name)
	if !ok || !now.Before(q.spends) && (q.check == nil || now.Sub(q.readAt) >= refusalAge) {
		m.keepQuestion(name, &refusedQuestion{readAt: now})
	}
}

// isNormal reports whether a refusal of d is not stored, and a check of d has the answer that d would have.
func isNormal(d *ledger.Debit) bool {
	return (d.Mode == "" || d.Mode == ledger.ModeNormal) && !d.Suspended &&
		!slices.ContainsFunc(d.Items, func(i ledger.Item) bool { return i.StoreDenial })
}

// isPlain reports whether d is normal and has one item, so that one balance decides unless its plan has other rules.
func isPlain(d *ledger.Debit) bool { return len(d.Items) == 1 && isNormal(d) }

// makeRoom counts n keys that will be remembered, and drops the least recently used entries if there are too many keys.
func (m *refusals) makeRoom(n int) {
	for total := m.keys.Add(int64(n)); total > keysMax; total = m.keys.Load() {
		balance := m.refusing.RemoveOldest()
		question := m.questions.RemoveOldest()
		if !balance && !question {
			return
		}
	}
}

// mayBeStored reports whether the hash of key is in keys.
func (m *refusals) mayBeStored(keys []uint64, key string) bool {
	_, found := slices.BinarySearch(keys, maphash.String(m.seed, key))
	return found
}

// readKeys returns the hashes of the keys of the tenant's operations, in order. It fails if there are too many.
func (m *refusals) readKeys(ctx context.Context, tenant string) ([]uint64, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.loader.budget)
	defer cancel()
	if m.onKeys != nil {
		m.onKeys()
	}
	keys, err := m.stored(ctx, tenant, m.most)
	if err != nil {
		return nil, err
	}
	hashes := make([]uint64, len(keys))
	for i, key := range keys {
		hashes[i] = maphash.String(m.seed, key)
	}
	slices.Sort(hashes)
	return hashes, nil
}

// pauseAfter returns how long refusals are not remembered after err. A tenant with too many keys will still have too
// many keys for some time.
func pauseAfter(err error) time.Duration {
	if errcode.Of(err) == errcode.QueueFull {
		return refusingAge
	}
	return spendsAge
}
