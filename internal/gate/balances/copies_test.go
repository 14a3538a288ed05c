package balances

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// copyOf returns a copy of the balance of meter m of a tenant.
func copyOf(tenant string, seq int64, asOf time.Time) *ledger.BalanceCopy {
	return &ledger.BalanceCopy{
		Tenant: tenant, Meter: "m", Seq: seq, Remaining: 1000 - seq, Limit: 1000, InPlan: true, Renews: true, Allowance: 1000,
		ResetAt: asOf.Add(time.Hour), ValidUntil: asOf.Add(time.Hour), AsOf: asOf,
	}
}

func TestCopies_OlderCopy_IsIgnored(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_700_000_000, 0).UTC()
	rapid.Check(t, func(t *rapid.T) {
		pending, local := newPendingCopies(100), newLocalCopies(100)
		newest := map[ledger.BalanceKey]*ledger.BalanceCopy{}
		for range rapid.IntRange(1, 40).Draw(t, "publications") {
			tenant := strconv.Itoa(rapid.IntRange(0, 3).Draw(t, "tenant"))
			c := copyOf(tenant, rapid.Int64Range(1, 9).Draw(t, "seq"), start.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "s"))*time.Second))
			pending.add([]*ledger.BalanceCopy{c})
			local.put([]*ledger.BalanceCopy{c})
			if old := newest[keyOf(c)]; old == nil || c.Seq > old.Seq || c.Seq == old.Seq && c.AsOf.After(old.AsOf) {
				newest[keyOf(c)] = c
			}
		}
		waiting := pending.take(100, nil)
		require.True(t, len(waiting) == len(newest) && pending.len() == 0,
			"%d copies wait and %d are left, want %d and 0", len(waiting), pending.len(), len(newest))
		for _, c := range waiting {
			key := keyOf(c)
			want := newest[key]
			require.True(t, *c == *want, "pending has %+v, want %+v", c, want)
			got := local.merge(nil, []ledger.BalanceKey{key}, nil, true)[0].Copy
			require.True(t, *got == *newest[key], "local copies have %+v, want %+v", got, newest[key])
		}
	})
}

// A read counts due entries that are not written yet. After a period without use, a later read may count fewer of
// them than an earlier read, so its seq is lower.
func TestCopies_EndedCopy_GivesWayToLaterOneWithLowerSeq(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_700_000_000, 0).UTC()
	local := newLocalCopies(1)
	first, early, later := copyOf("t", 9, start), copyOf("t", 8, start.Add(59*time.Minute)), copyOf("t", 8, start.Add(time.Hour))
	for _, step := range []struct{ put, want *ledger.BalanceCopy }{{first, first}, {early, first}, {later, later}} {
		local.put([]*ledger.BalanceCopy{step.put})
		if got := local.merge(nil, []ledger.BalanceKey{keyOf(first)}, nil, true)[0].Copy; *got != *step.want {
			t.Errorf("after a copy with seq %d of %s the newest has seq %d of %s", step.put.Seq, step.put.AsOf, got.Seq, got.AsOf)
		}
	}
}

func TestPending_IsBounded(t *testing.T) {
	t.Parallel()
	const most = 3
	p := newPendingCopies(most)
	now := time.Unix(1_700_000_000, 0)
	for i := range most + 2 {
		p.add([]*ledger.BalanceCopy{copyOf(strconv.Itoa(i), 1, now)})
	}
	require.True(t, p.len() == most && p.droppedTotal() == 2,
		"%d wait and %d were dropped, want %d and 2", p.len(), p.droppedTotal(), most)
	p.add([]*ledger.BalanceCopy{copyOf("0", 2, now)}) // a newer copy replaces the waiting copy and needs no room
	require.True(t, p.len() == most && p.droppedTotal() == 2,
		"after a newer copy %d wait and %d were dropped, want %d and 2", p.len(), p.droppedTotal(), most)
	var total int
	for part := p.take(2, nil); len(part) > 0; part = p.take(2, part) {
		total += len(part)
	}
	assert.True(t, total == most, "%d copies came out, want %d", total, most)
}

func TestLocalCopies_ConfirmedIfRedisHasACopy(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0).UTC()
	local := newLocalCopies(10)
	mine := copyOf("t", 5, now)
	local.put([]*ledger.BalanceCopy{mine})
	keys := []ledger.BalanceKey{keyOf(mine)}

	stored := func(c *ledger.BalanceCopy) []string {
		return []string{strconv.FormatInt(c.Seq, 10) + " " + encodeCopy(c)}
	}

	lost := local.merge(nil, keys, []string{""}, false)[0]
	assert.True(t, !lost.Confirmed && *lost.Copy == *mine,
		"a copy only this process has: got %+v, want it unconfirmed", lost)
	older := local.merge(nil, keys, stored(copyOf("t", 4, now)), false)[0]
	assert.True(t, older.Confirmed && *older.Copy == *mine,
		"redis has an older one: got %+v, want ours, confirmed", older)
	theirs := copyOf("t", 6, now)
	for range 2 { // the first merge decodes the text, the second recognises its hash
		newer := local.merge(nil, keys, stored(theirs), false)[0]
		assert.True(t, newer.Confirmed && *newer.Copy == *theirs, "redis has a newer one: got %+v, want theirs", newer)
	}
	if away := local.merge(nil, keys, nil, false)[0]; away.Confirmed || *away.Copy != *theirs {
		t.Errorf("redis away: got %+v, want what was read last, unconfirmed", away)
	}
	if garbage := local.merge(nil, keys, []string{"not a copy"}, false)[0]; garbage.Confirmed || *garbage.Copy != *theirs {
		t.Errorf("redis has something else: got %+v, want what was read last, unconfirmed", garbage)
	}
	newest := copyOf("t", 7, now)
	local.put([]*ledger.BalanceCopy{newest})
	if ours := local.merge(nil, keys, stored(theirs), false)[0]; !ours.Confirmed || *ours.Copy != *newest {
		t.Errorf("redis still has an older one: got %+v, want ours, confirmed", ours)
	}
}
