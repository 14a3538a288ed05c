package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// These queries compute the results of this package in the simplest way, without rollups and bisection. They sum all
// entries of a range.
const (
	oracleSums = `SELECT e.kind, e.source, sum(e.amount)::bigint, count(*) FROM entries e
		WHERE e.tenant_id = $1 AND e.meter = $2 AND e.subject = $3 AND e.seq > $4 AND e.seq <= $5 AND coalesce(e.effective_at, e.created_at) <= $6
		GROUP BY e.kind, e.source ORDER BY e.kind, e.source`
	oracleUsage = `SELECT date_trunc($6::text, e.created_at, $7::text), coalesce(sum(e.amount) FILTER (WHERE e.kind IN ('debit', 'capture')), 0)::bigint,
			coalesce(sum(e.amount) FILTER (WHERE e.kind = 'overage'), 0)::bigint, 0::bigint,
			coalesce(sum(e.amount) FILTER (WHERE e.kind IN ('refund', 'unsettle', 'unoverage', 'unowe', 'closed_refund')), 0)::bigint, count(DISTINCT e.operation_id), ''
		FROM entries e
		WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.created_at >= $4::timestamptz AND e.created_at < $5::timestamptz
			AND e.kind IN ('debit', 'capture', 'overage', 'refund', 'unsettle', 'unoverage', 'unowe', 'closed_refund')
		GROUP BY 1 ORDER BY 1`
)

// wander makes n random operations of tenant acme. Between some operations it moves the rows into the past, as if
// time had passed.
func (b *bundle) wander(r *rand.Rand, n int) {
	b.t.Helper()
	var debits, holds []string
	for i := range n {
		key := fmt.Sprint("k", i)
		var err error
		switch r.IntN(12) {
		case 0, 1, 2, 3:
			if _, err = pg.Do(b.t.Context(), b.ledger, debitOf("acme", key, 1+r.Int64N(4))); err == nil {
				debits = append(debits, key)
			}
		case 4:
			g := topupOf("acme", key, "api_calls", 5+r.Int64N(20))
			if r.IntN(2) == 0 {
				g.EffectiveAt = time.Now().Add(time.Duration(r.IntN(90)+1) * time.Minute)
			}
			if r.IntN(2) == 0 {
				g.ExpiresAt = time.Now().Add(time.Duration(r.IntN(300)+91) * time.Minute)
			}
			_, err = pg.Do(b.t.Context(), b.ledger, g)
		case 5, 6:
			h := &ledger.Hold{
				Tenant: "acme", Key: key, HoldID: key, Items: []ledger.Item{{Meter: "api_calls", Amount: 1 + r.Int64N(4)}},
				TTL: time.Duration(1+r.IntN(200)) * time.Minute,
			}
			if _, err = pg.Do(b.t.Context(), b.ledger, h); err == nil {
				holds = append(holds, key)
			}
		case 7:
			if len(holds) > 0 {
				_, err = pg.Do(b.t.Context(), b.ledger, &ledger.HoldChange{
					Tenant: "acme", Key: key, HoldID: holds[r.IntN(len(holds))], Action: []ledger.HoldAction{ledger.ActionCapture, ledger.ActionRelease}[r.IntN(2)],
				})
			}
		case 8:
			if len(debits) > 0 {
				_, err = pg.Do(b.t.Context(), b.ledger, &ledger.Refund{Tenant: "acme", Key: key, OperationID: debits[r.IntN(len(debits))], Amount: 1})
			}
		case 9:
			_, err = pg.Do(b.t.Context(), b.ledger, &ledger.Adjust{Tenant: "acme", Key: key, Meter: "api_calls", Amount: 1 + r.Int64N(3), Reason: "test"})
		default:
			b.rewind(time.Duration(r.IntN([]int{40, 400}[r.IntN(2)])+1) * time.Minute)
		}
		code := errcode.Of(err)
		require.True(b.t, code != errcode.Unavailable && code != errcode.Internal, err)
	}
}

func (b *bundle) oracle(k ledger.BalanceKey, s span, at time.Time) []StatementLine {
	b.t.Helper()
	return list(b, pgx.RowToStructByPos[StatementLine], oracleSums, k.Tenant, k.Meter, k.Subject, s.after, s.last, at)
}

func (b *bundle) oracleUsage(q UsageQuery) []UsageBucket {
	b.t.Helper()
	buckets := list(b, pgx.RowToStructByPos[UsageBucket], oracleUsage,
		q.Tenant, q.Meter, q.Subject, q.From, q.To, string(q.Step), q.Zone)
	for i := range buckets {
		buckets[i].Start = buckets[i].Start.UTC()
	}
	return buckets
}

// instants returns the times at which the entries of the balance were written or became effective, and the
// microsecond before each of these times.
func (b *bundle) instants(k ledger.BalanceKey) []time.Time {
	b.t.Helper()
	all := list(b, pgx.RowTo[time.Time], `SELECT created_at FROM entries WHERE tenant_id = $1 AND meter = $2 AND subject = $3
		UNION SELECT effective_at FROM entries WHERE tenant_id = $1 AND meter = $2 AND subject = $3 AND effective_at IS NOT NULL ORDER BY 1`,
		k.Tenant, k.Meter, k.Subject)
	for _, at := range slices.Clone(all) {
		all = append(all, at.Add(-time.Microsecond))
	}
	return all
}

// spans returns the range of the entries of each closed period and of the open period.
func (b *bundle) spans(k ledger.BalanceKey) []span {
	b.t.Helper()
	ends := list(b, pgx.RowTo[int64], `SELECT last_seq FROM periods WHERE tenant_id = $1 AND meter = $2 AND subject = $3
		UNION ALL SELECT seq FROM balances WHERE tenant_id = $1 AND meter = $2 AND subject = $3 ORDER BY 1`, k.Tenant, k.Meter, k.Subject)
	all, before := []span{}, int64(0)
	for _, end := range ends {
		all, before = append(all, span{before, end}), end
	}
	return all
}

// The reports return the same sums as a scan of all entries, whether none, some or all of the rollups are written.
func TestSums_RandomPrograms_EqualSumsOverAllEntries(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(0, seed))
	b.hourly("acme", 10)
	b.wander(r, 40)
	k := ledger.BalanceKey{Tenant: "acme", Meter: "api_calls"}
	w := b.rollups(2 + r.Int64N(7))
	for part := range 3 {
		b.compareSums(k, r)
		b.compareUsage(k, r)
		if part == 0 {
			b.check(errOf(w.write(t.Context(), k, 0)))
			b.check(errOf(w.write(t.Context(), k, 0)))
		} else {
			b.check(w.Pass(t.Context()))
		}
	}
	b.mustVerify()
}

// sample returns n random elements of the list `all`. An element may occur more than once.
func sample(r *rand.Rand, all []time.Time, n int) []time.Time {
	out := make([]time.Time, n)
	for i := range out {
		out[i] = all[r.IntN(len(all))]
	}
	return out
}

func (b *bundle) compareSums(k ledger.BalanceKey, r *rand.Rand) {
	b.t.Helper()
	instants := b.instants(k)
	for _, s := range b.spans(k) {
		if s.last == s.after && r.IntN(10) > 0 {
			continue
		}
		held := ledger.Sums{}
		for _, line := range b.oracle(k, span{0, s.after}, period.Forever) {
			held.Apply(line.Kind, line.Amount)
		}
		_, got, err := b.report().beforePeriod(b.t.Context(), k, b.startOf(k, s))
		b.check(err)
		if s.last > s.after { // successive periods without entries have the same last seq
			wantEqual(b.t, fmt.Sprint("held before entry ", s.after), got, held.Held)
		}
		for _, at := range sample(r, append(instants, period.Forever), 6) {
			sums, err := b.report().sumsAsOf(b.t.Context(), k, s, at)
			b.check(err)
			require.Equal(b.t, b.oracle(k, s, at), linesOf(sums), "sums of %v at %s", s, at)
		}
	}
}

// startOf returns the start of the period whose entries are s.
func (b *bundle) startOf(k ledger.BalanceKey, s span) time.Time {
	b.t.Helper()
	return one[time.Time](b, `SELECT coalesce((SELECT min(period_start) FROM periods WHERE tenant_id = $1 AND meter = $2 AND subject = $3 AND last_seq = $4
			AND period_start >= coalesce((SELECT max(period_end) FROM periods WHERE tenant_id = $1 AND meter = $2 AND subject = $3 AND last_seq <= $5), 'epoch')),
		(SELECT period_start FROM balances WHERE tenant_id = $1 AND meter = $2 AND subject = $3))`, k.Tenant, k.Meter, k.Subject, s.last, s.after)
}

func (b *bundle) compareUsage(k ledger.BalanceKey, r *rand.Rand) {
	b.t.Helper()
	instants := b.instants(k)
	// The clocks of this zone went half an hour ahead the day before yesterday, and back yesterday, like the clocks
	// of Lord Howe Island. So an hour begins twice.
	now := time.Now().UTC()
	shifted := fmt.Sprintf("A-10:30B-11,J%d,J%d", now.AddDate(0, 0, -2).YearDay(), now.AddDate(0, 0, -1).YearDay())
	for i, at := range sample(r, instants, 3) {
		for _, zone := range []string{"UTC", "Asia/Kolkata", "Asia/Kathmandu", shifted} {
			for _, step := range []UsageStep{UsageByHour, UsageByDay, UsageByMonth} {
				q := UsageQuery{Tenant: k.Tenant, Meter: k.Meter, From: at, To: time.Now().UTC().Add(time.Hour), Step: step, Zone: zone}
				if i%2 == 0 {
					q.From, q.To = time.Now().UTC().Add(-30*24*time.Hour), at
				}
				got, err := b.report().usage(b.t.Context(), &q)
				b.check(err)
				require.Equal(b.t, b.oracleUsage(q), got, "use of %+v", q)
			}
		}
	}
}
