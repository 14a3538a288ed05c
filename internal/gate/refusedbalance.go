package gate

import (
	"context"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/gate/balances"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// refusing is the entry of a balance that refused a debit. An entry does not change. If the balance does not decide
// alone (ledger.BalanceCopy.Beyond), its entry remains, so that its refusals are remembered as questions.
type refusing struct {
	copy   *ledger.BalanceCopy // nil: the balance was not read since the refusal
	check  *ledger.CheckResult // the check that read it
	readAt time.Time
	keys   []uint64  // hashes of the keys of the tenant's operations, in order
	spends time.Time // not zero if the balance also pays: its refusals are not remembered before this instant
}

// incomplete reports whether overflow, overage or a subject's cap also decides about debits of the balance.
func (b *refusing) incomplete() bool { return b.copy != nil && b.copy.Beyond }

func balanceOf(d *ledger.Debit) ledger.BalanceKey {
	return ledger.BalanceKey{Tenant: d.Tenant, Meter: d.Items[0].Meter}
}

// keepBalance replaces the remembered entry of key.
func (m *refusals) keepBalance(key ledger.BalanceKey, b *refusing) {
	m.refusing.Remove(key)
	m.makeRoom(len(b.keys))
	m.refusing.Put(key, b)
}

// findBalance returns the remembered balance that probably refuses d. It returns nil if memory has no such balance.
func (m *refusals) findBalance(d *ledger.Debit, now time.Time) *refusing {
	if m.refusing.Len() == 0 || !isPlain(d) {
		return nil
	}
	b, ok := m.refusing.Get(balanceOf(d))
	if !ok || b.incomplete() || !b.spends.IsZero() || now.Sub(b.readAt) >= refusingAge || m.mayBeStored(b.keys, d.Key) {
		return nil
	}
	return b
}

// refuseByBalance returns the refusal of d by the balance b. It returns nil if the ledger must decide. reads is the
// read of the balance from Redis; it is nil if Redis was not read.
func (m *refusals) refuseByBalance(
	ctx context.Context, d *ledger.Debit, facts *tenantFacts, b *refusing, reads *redisstore.Reads,
) error {
	newest, shared := m.newestCopy(ctx, balanceOf(d), reads, b)
	if !m.balanceHolds(b, &newest, facts, shared) {
		var err error
		if b, err = m.readBalance(ctx, d, b); err != nil || m.mayBeStored(b.keys, d.Key) {
			return nil //nolint:nilerr // the ledger decides instead
		}
	}
	if b.copy.Beyond || d.Items[0].Amount <= b.copy.Remaining {
		return nil
	}
	if refusal := b.check.RefusalOf(d); refusal != nil { // a nil pointer would be an error that is not nil
		return refusal
	}
	return nil
}

// newestCopy returns the newest known copy of the balance of key. shared reports whether Redis answered, or this
// process holds the copy of Redis. If the balance refuses repeatedly, newestCopy reads it from Redis. From then on
// Redis announces changes of the balance.
func (m *refusals) newestCopy(
	ctx context.Context, key ledger.BalanceKey, reads *redisstore.Reads, b *refusing,
) (newest balances.Cached, shared bool) {
	keys := [1]ledger.BalanceKey{key}
	copies := make([]balances.Cached, 0, 1)
	if reads == nil || reads.Values == nil { // Redis was not read with the limits
		if held, ok := m.copies.Held(copies, keys[:], nil); ok {
			return held[0], true
		}
		if b.copy != nil && m.now().Sub(b.readAt) >= refusalAge {
			reads = m.copies.Reads(keys[:], nil)
			m.copies.Read(ctx, reads)
		}
	}
	return m.copies.LookupReads(copies, keys[:], reads)[0], reads != nil && reads.Values != nil
}

// balanceHolds reports whether b is still valid, so that the balance need not be read again. newest is its newest
// known copy.
func (m *refusals) balanceHolds(b *refusing, newest *balances.Cached, facts *tenantFacts, redisAnswered bool) bool {
	now := m.now()
	if b.copy == nil || newest.Copy == nil || newest.Copy.Seq != b.copy.Seq || b.copy.AsOf.Before(facts.changedAt) ||
		!b.copy.ValidUntil.IsZero() && !now.Before(b.copy.ValidUntil) {
		return false
	}
	age := now.Sub(b.readAt)
	return age < refusalAge || redisAnswered && newest.Confirmed && age < confirmedAge
}

// readBalance reads the balance of d. It also reads the keys of the tenant's operations, unless the keys of b are
// still current. Concurrent callers share the answer. It fails if the balance has changed since its last read. If it
// did not fail, each paid debit of the tenant would cause another read of the tenant's operation keys.
func (m *refusals) readBalance(ctx context.Context, d *ledger.Debit, b *refusing) (*refusing, error) {
	key := balanceOf(d)
	read, err, _ := m.flight.Do(key.Tenant+" "+key.Meter, func() (any, error) {
		readAt := m.now()
		result, err := m.loader.check(context.WithoutCancel(ctx), d.Tenant, "", d.Items, false)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(result.Copies, func(c ledger.BalanceCopy) bool {
			return c.Meter == key.Meter && c.Subject == ""
		})
		if at < 0 {
			return nil, busy()
		}
		next := &refusing{copy: &result.Copies[at], check: result, readAt: readAt}
		switch {
		case next.incomplete(): // its refusals are remembered as questions
		case b.copy == nil:
			next.keys, err = m.readKeys(ctx, d.Tenant)
		case b.copy.Seq == next.copy.Seq:
			next.keys = b.keys
		default:
			err = errSpends
		}
		if err != nil {
			m.keepBalance(key, &refusing{spends: readAt.Add(pauseAfter(err))})
			return nil, err
		}
		m.keepBalance(key, next)
		return next, nil
	})
	if err != nil {
		return nil, err
	}
	return read.(*refusing), nil
}
