package gate

import (
	"context"
	"hash/maphash"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/quotasvc/quotasvc/internal/balances"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/redisstore"
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
	operationsMax = 10_000

	// refusingMax and replaysMax bound what is remembered: at most 20 MB of keys, and some MB of results.
	refusingMax = 256
	replaysMax  = 4096
)

// memory knows requests that the ledger need not be asked again: for units that a balance was just read not to have, and for operations
// whose stored result was just asked for. It protects PostgreSQL from clients that repeat such requests in a loop.
//
// A refusal from memory is one that the ledger would have given within refusalAge. It is never given for a key that may be stored.
type memory struct {
	refusing *lru.Cache[ledger.BalanceKey, *refusing]
	replays  *lru.Cache[ledger.OperationID, *replay]
	flight   singleflight.Group
	seed     maphash.Seed
	most     int // operationsMax, except in tests
}

// refusing is a balance that refused a debit. It does not change.
type refusing struct {
	copy   *ledger.BalanceCopy // nil: it has not been read since
	readAt time.Time
	keys   []uint64 // hashes of the keys of the tenant's operations, in order
}

// replay is a stored result that was asked for again.
type replay struct {
	fingerprint [16]byte
	result      *ledger.DebitResult
	at          time.Time
}

func newMemory() *memory {
	refused, err := lru.New[ledger.BalanceKey, *refusing](refusingMax)
	if err != nil {
		panic("gate: " + err.Error()) // only for a size below 1
	}
	replays, err := lru.New[ledger.OperationID, *replay](replaysMax)
	if err != nil {
		panic("gate: " + err.Error())
	}
	return &memory{refusing: refused, replays: replays, seed: maphash.MakeSeed(), most: operationsMax}
}

// recalled is what the memory has about a request. The zero value is nothing.
type recalled struct {
	replay  *ledger.DebitResult
	balance *refusing
}

// likelyNoGrant reports whether the request will probably not be granted, so that only attempts cost.
func (r *recalled) likelyNoGrant(req *Request) bool {
	return r.balance != nil || r.replay != nil && req.Forwarded == ""
}

// recall returns what is remembered about d. It asks nobody.
func (m *memory) recall(d *ledger.Debit, now time.Time) recalled {
	if m.replays.Len() > 0 {
		if r, ok := m.replays.Get(d.ID()); ok && now.Sub(r.at) < repeatAge && r.answers(d) {
			return recalled{replay: r.result}
		}
	}
	if m.refusing.Len() > 0 && isPlain(d) {
		if b, ok := m.refusing.Get(balanceOf(d)); ok && now.Sub(b.readAt) < refusingAge && !m.mayBeStored(b, d.Key) {
			return recalled{balance: b}
		}
	}
	return recalled{}
}

// answers reports whether d is the same request as the one that was answered.
func (r *replay) answers(d *ledger.Debit) bool { return r.fingerprint == ledger.NewCall(d).Fingerprint }

// note remembers the ledger's answer to d.
func (m *memory) note(d *ledger.Debit, result *ledger.DebitResult, err error, now time.Time) {
	switch {
	case err == nil && result.Replayed:
		m.noteReplay(d, result, now)
	case err == nil && m.refusing.Len() > 0 && len(d.Items) == 1:
		m.refusing.Remove(balanceOf(d))
	case err != nil && isPlain(d):
		switch ledger.CodeOf(err) { //nolint:exhaustive // other refusals are not about the balance
		case ledger.CodeQuotaExceeded, ledger.CodeCreditsExhausted, ledger.CodeMeterNotInPlan:
			m.refusing.Add(balanceOf(d), &refusing{readAt: now})
		}
	}
}

func (m *memory) noteReplay(d *ledger.Debit, result *ledger.DebitResult, now time.Time) {
	m.replays.Add(d.ID(), &replay{ledger.NewCall(d).Fingerprint, result, now})
}

// isPlain reports whether one balance decides d, and a refusal is not stored.
func isPlain(d *ledger.Debit) bool {
	return len(d.Items) == 1 && (d.Mode == "" || d.Mode == ledger.ModeNormal) && !d.Items[0].StoreDenial && !d.Suspended
}

func balanceOf(d *ledger.Debit) ledger.BalanceKey {
	return ledger.BalanceKey{Tenant: d.Tenant, Meter: d.Items[0].Meter}
}

func (m *memory) mayBeStored(b *refusing, key string) bool {
	_, found := slices.BinarySearch(b.keys, maphash.String(m.seed, key))
	return found
}

// refusal returns the refusal of d by a balance that the memory has; nil: the ledger must decide. reads are those of the balance,
// nil if Redis was not asked.
func (g *Gate) refusal(ctx context.Context, d *ledger.Debit, facts *tenantFacts, b *refusing, reads *redisstore.Reads) error {
	if newest, shared := g.newestCopy(ctx, balanceOf(d), reads, b); !g.stillRefuses(b, &newest, facts, shared) {
		var err error
		if b, err = g.readRefusing(ctx, d, b); err != nil || g.memory.mayBeStored(b, d.Key) {
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
// share the answer.
func (g *Gate) readRefusing(ctx context.Context, d *ledger.Debit, b *refusing) (*refusing, error) {
	key := balanceOf(d)
	read, err, _ := g.memory.flight.Do(key.Tenant+" "+key.Meter, func() (any, error) {
		readAt := g.now()
		result, err := g.loader.check(context.WithoutCancel(ctx), d.Tenant, "", d.Items)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(result.Copies, func(c ledger.BalanceCopy) bool { return c.Meter == key.Meter && c.Subject == "" })
		if at < 0 {
			return nil, errBusy
		}
		next := &refusing{copy: &result.Copies[at], readAt: readAt}
		if b.copy != nil && b.copy.Seq == next.copy.Seq {
			next.keys = b.keys
		} else if next.keys, err = g.keysOf(ctx, d.Tenant); err != nil {
			return nil, err
		}
		g.memory.refusing.Add(key, next)
		return next, nil
	})
	if err != nil {
		return nil, err
	}
	return read.(*refusing), nil
}

// keysOf returns the hashes of the keys of the tenant's operations, in order. It fails if there are too many.
func (g *Gate) keysOf(ctx context.Context, tenant string) ([]uint64, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.loader.budget)
	defer cancel()
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
