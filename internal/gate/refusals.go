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
	// refusalAge is how long the result of a read of a balance is used. In this time, debits that exceed the balance
	// are refused without another read.
	refusalAge = 100 * time.Millisecond

	// confirmedAge replaces refusalAge while Redis confirms with each request that the balance has no newer entry.
	confirmedAge = time.Second

	// refusingAge is how long a balance that refused is remembered after its last read. In this time a debit causes a
	// new read of the balance before the ledger decides. Concurrent requests share that read. In the ledger, each
	// request would use one item of a batch.
	refusingAge = time.Minute

	// repeatAge is how long a replay is remembered. In this time the same request is answered from memory.
	repeatAge = time.Second

	// operationsMax is the largest number of keys of a tenant that are remembered with a refusing balance, 8 bytes
	// each. If a tenant has more operations in the ledger, the ledger always decides, because one of these operations
	// might have the request's key.
	operationsMax = 100_000

	// refusingMax, questionsMax and replaysMax are the largest numbers of remembered entries of each kind. The
	// entries of each kind take some MB without their keys.
	refusingMax  = 4096
	questionsMax = 4096
	replaysMax   = 4096

	// keysMax is the largest number of keys that are remembered for all tenants. They take 16 MB.
	keysMax = 2_000_000
)

// spendsAge is the time after a paid debit in which refusals by the same balance are not remembered. Otherwise each
// payment would require another read of the tenant's keys.
const spendsAge = time.Second

// errSpends means that a balance changed after its refusal, so the refusal is not remembered.
var errSpends = errors.New("the balance changed since it refused")

// refusals answers two kinds of debits from memory. The first kind is debits for more units than a balance had at a
// very recent read. The second kind is debits whose stored result was just returned. This memory protects PostgreSQL
// from clients that repeat such debits in a loop. In normal service it answers nothing, and a reader of the code may
// skip it. For each debit, the method answer is called before the ledger decides, and the method note afterwards.
//
// If a debit is refused from memory, the ledger would have refused it at some instant in the last refusalAge. While
// Redis confirms that the balance has not changed, that instant is in the last confirmedAge. If the key of a debit
// may be stored, the debit is never refused from memory. Refusals by one balance are in refusedbalance.go, all others
// in refusedquestion.go.
type refusals struct {
	copies *balances.Cache
	loader *loader
	stored func(ctx context.Context, tenant string, most int) (keys []string, err error) // operation keys of tenant
	now    func() time.Time                                                              // the ledger's clock

	refusing  *recent.Cache[ledger.BalanceKey, *refusing]
	questions *recent.Cache[string, *refusedQuestion] // by the result of questionOf
	replays   *recent.Cache[ledger.OperationID, *replay]
	keys      atomic.Int64 // number of keys in refusing and questions
	flight    singleflight.Group
	seed      maphash.Seed
	most      int    // operationsMax, except in tests
	onKeys    func() // is called before keys are read; nil, except in tests
}

// replay is a stored result that was returned a moment ago for a repeated request.
type replay struct {
	fingerprint [16]byte
	result      *ledger.DebitResult
	at          time.Time
}

// newRefusals returns an empty memory for g. The ledger, loader and copies of g must be set.
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

// answer answers d from memory. known is false if the ledger must decide. It may need a new read of the balance that
// refused, which all concurrent debits share.
func (m *refusals) answer(
	ctx context.Context, d *ledger.Debit, facts *tenantFacts,
) (result *ledger.DebitResult, known bool, err error) {
	found := m.find(d)
	return found.answer(ctx, facts, nil)
}

// remembered is what memory contains about a debit. The zero value means that there is no entry.
type remembered struct {
	in    *refusals
	debit *ledger.Debit

	// At most one of replay, balance and question is set.
	replay   *ledger.DebitResult
	balance  *refusing
	question *refusedQuestion
}

// find returns what memory contains about d. It makes no query.
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

// findReplay returns the stored result that d got less than repeatAge ago. It returns nil if memory has no such
// result.
func (m *refusals) findReplay(d *ledger.Debit, now time.Time) *ledger.DebitResult {
	if m.replays.Len() == 0 {
		return nil
	}
	if r, ok := m.replays.Get(d.ID()); ok && now.Sub(r.at) < repeatAge && r.answers(d) {
		return r.result
	}
	return nil
}

// likely reports whether memory will probably answer the debit without a charge of all limits. For a replay at a
// gateway, likely returns false, because the replay is charged as one more request.
func (r *remembered) likely(forwarded bool) bool {
	return r.balance != nil || r.question != nil || r.replay != nil && !forwarded
}

// reads returns the read of Redis that a refusal needs, so that it can be sent in the round trip of the limits. It
// returns nil if the refusal needs no read.
func (r *remembered) reads() *redisstore.Reads {
	if r.balance == nil {
		return nil
	}
	return r.in.copies.Reads([]ledger.BalanceKey{balanceOf(r.debit)}, nil)
}

// answer answers the debit from the entry that find returned. The results are those of refusals.answer. reads is the
// result of r.reads if Redis was read; else nil.
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

// answers reports whether d is the same request as the request of the replay.
func (r *replay) answers(d *ledger.Debit) bool { return r.fingerprint == ledger.NewCall(d).Fingerprint }

// note remembers the ledger's answer to d, if later debits can be answered from it.
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
		switch errcode.Of(err) { //nolint:exhaustive // other refusals have other reasons than units
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
			return // d was decided together with the first refused debit
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

// isNormal reports whether a check of d gives the same answer as d, and a refusal of d is not stored.
func isNormal(d *ledger.Debit) bool {
	return (d.Mode == "" || d.Mode == ledger.ModeNormal) && !d.Suspended &&
		!slices.ContainsFunc(d.Items, func(i ledger.Item) bool { return i.StoreDenial })
}

// isPlain reports whether d is normal and has one item. Then one balance decides, unless the plan has overflow,
// overage or caps of subjects.
func isPlain(d *ledger.Debit) bool { return len(d.Items) == 1 && isNormal(d) }

// makeRoom counts n keys that will be remembered. If there are more than keysMax keys, it drops the least recently
// used entries.
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

// readKeys returns the hashes of the keys of the tenant's operations, in order. It fails if the tenant has too many
// keys.
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

// pauseAfter returns the time for which refusals are not remembered after err. If a tenant has too many keys, it will
// still have too many for some time.
func pauseAfter(err error) time.Duration {
	if errcode.Of(err) == errcode.QueueFull {
		return refusingAge
	}
	return spendsAge
}
