package balances

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// The test has the rows of the table in the package comment, in the same order. The policy accepts copies up to 30 s
// old.
func TestPolicy_OneCopy(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	const (
		freshFor    = 30 * time.Second
		moment      = time.Nanosecond
		confirmed   = true
		unconfirmed = false
	)
	// aged returns a copy of 1,000 units that was read at the instant now - age.
	aged := func(age time.Duration, confirmed bool, change ...func(*ledger.BalanceCopy)) Cached {
		c := copyOf("t", 0, now.Add(-age))
		c.ResetAt, c.ValidUntil = now.Add(time.Hour), now.Add(time.Hour)
		for _, f := range change {
			f(c)
		}
		return Cached{Copy: c, Confirmed: confirmed}
	}
	ended := func(c *ledger.BalanceCopy) { c.ValidUntil = now }
	endless := func(c *ledger.BalanceCopy) { c.ValidUntil = time.Time{} }
	prepaid := func(c *ledger.BalanceCopy) { c.Renews, c.ValidUntil = false, time.Time{} }
	renewed := func(c *ledger.BalanceCopy) { c.Renews, c.Allowance = true, 2000 }
	incomplete := func(c *ledger.BalanceCopy) { c.Beyond = true }
	accept := func(d time.Duration) *time.Duration { return &d }

	type actions [4]Action // the actions while both servers are up; Redis is down; PostgreSQL is down; both are down
	use := actions{Use, Use, Use, Use}
	refresh := actions{UseAndRefresh, UseAndRefresh, UseAndRefresh, UseAndRefresh}
	read := actions{Read, Read, Read, Read}
	readOrUse := actions{ReadOrUse, ReadOrUse, UseDegraded, UseDegraded}

	for _, row := range []struct {
		situation string
		copy      Cached
		facts     Facts
		amount    int64
		want      actions
	}{
		{"there is no copy", Cached{}, Facts{}, 1, read},
		{"there is no copy, Redis confirms nothing", Cached{Confirmed: true}, Facts{}, 1, read},

		{"confirmed, just read", aged(0, confirmed), Facts{}, 1, use},
		{"confirmed, from a clock ahead of ours", aged(-time.Second, confirmed), Facts{}, 1, use},
		{"confirmed, the balance has no next event", aged(0, confirmed, endless), Facts{}, 1, use},
		{"confirmed, too little for the request, and nothing comes", aged(0, confirmed, prepaid), Facts{}, 1001, use},
		{"confirmed, too little for the request, and the next period has enough", aged(0, confirmed, renewed), Facts{}, 1001, use},
		{"confirmed, too little for the request, and something may come", aged(0, confirmed), Facts{}, 1001, readOrUse},
		{"confirmed, in the first 75 % of its time", aged(freshFor*3/4, confirmed), Facts{}, 1, use},
		{"confirmed, at the end of its time", aged(freshFor, confirmed), Facts{}, 1, refresh},
		{"confirmed, a moment too old", aged(freshFor+moment, confirmed), Facts{}, 1, readOrUse},

		{"unconfirmed, just read", aged(0, unconfirmed), Facts{}, 1, actions{ReadIfSpare, UseDegraded, UseDegraded, UseDegraded}},
		{"unconfirmed, a second old", aged(time.Second, unconfirmed), Facts{}, 1, actions{ReadIfSpare, UseDegraded, UseDegraded, UseDegraded}},
		{"unconfirmed, over a second old", aged(time.Second+moment, unconfirmed), Facts{}, 1, actions{ReadIfSpare, ReadWithin, UseDegraded, UseDegraded}},
		{"unconfirmed, at the end of its time", aged(freshFor, unconfirmed), Facts{}, 1, actions{ReadIfSpare, ReadWithin, UseDegraded, UseDegraded}},
		{"in Redis since before anybody asked, perhaps", Cached{Copy: aged(time.Second, unconfirmed).Copy, Unwanted: true}, Facts{}, 1, readOrUse},
		{"unconfirmed, a moment too old", aged(freshFor+moment, unconfirmed), Facts{}, 1, readOrUse},

		{"an event was due since", aged(time.Second, confirmed, ended), Facts{}, 1, read},
		{"an event was due since, unconfirmed", aged(time.Second, unconfirmed, ended), Facts{}, 1, read},
		{"an event was due since, whatever the caller accepts", aged(time.Second, confirmed, ended), Facts{MaxStale: accept(time.Hour)}, 1, read},

		{"the tenant's terms changed since", aged(time.Second, confirmed), Facts{TermsChangedAt: now}, 1, readOrUse},
		{"the terms changed since, unconfirmed", aged(time.Second, unconfirmed), Facts{TermsChangedAt: now}, 1, readOrUse},
		{"the terms changed at the same instant", aged(time.Second, confirmed), Facts{TermsChangedAt: now.Add(-time.Second)}, 1, use},

		{"incomplete, its own units suffice", aged(0, confirmed, incomplete), Facts{}, 1000, readOrUse},
		{"incomplete, its own units suffice, unconfirmed", aged(0, unconfirmed, incomplete), Facts{}, 1000, readOrUse},
		{"incomplete, its own units do not suffice", aged(0, confirmed, incomplete), Facts{}, 1001, read},
		{"incomplete, the request names a subject", aged(0, confirmed, incomplete), Facts{Subject: "u1"}, 1, read},
		{"complete, the request names a subject", aged(0, confirmed), Facts{Subject: "u1"}, 1, use},
		{"incomplete, whatever the caller accepts", aged(0, confirmed, incomplete), Facts{MaxStale: accept(time.Hour)}, 1, readOrUse},

		{"the caller accepts its age", aged(time.Minute, unconfirmed), Facts{MaxStale: accept(time.Minute)}, 1, use},
		{"the caller accepts its age, and something may come", aged(time.Minute, unconfirmed), Facts{MaxStale: accept(time.Minute)}, 1001, readOrUse},
		{"the caller accepts its age, which is near the end", aged(freshFor, confirmed), Facts{MaxStale: accept(time.Minute)}, 1, use},
		{"the caller does not accept its age", aged(2*time.Millisecond, confirmed), Facts{MaxStale: accept(time.Millisecond)}, 1, readOrUse},
		{"the caller does not accept its age, unconfirmed", aged(2*time.Millisecond, unconfirmed), Facts{MaxStale: accept(time.Millisecond)}, 1, readOrUse},
		{"the caller accepts no copy", aged(-time.Second, confirmed), Facts{MaxStale: accept(0)}, 1, readOrUse},
	} {
		for i, want := range row.want {
			f := row.facts
			f.Items, f.Now = []ledger.Item{{Meter: "m", Amount: row.amount}}, now
			f.RedisAway, f.PostgresAway = i&1 != 0, i&2 != 0
			if got := (Policy{FreshFor: freshFor}).For([]Cached{row.copy}, &f); got != want {
				t.Errorf("%s; redis away %v, postgresql away %v: %v, want %v", row.situation, f.RedisAway, f.PostgresAway, got, want)
			}
		}
	}
}

func TestPolicy_SeveralItems_TheMostCarefulActionOfAll(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	p := Policy{FreshFor: 30 * time.Second}
	aged := func(age time.Duration, confirmed, incomplete bool) Cached {
		c := copyOf("t", 0, now.Add(-age))
		c.ValidUntil, c.Beyond = now.Add(time.Hour), incomplete
		return Cached{Copy: c, Confirmed: confirmed}
	}
	fresh, old := aged(0, true, false), aged(30*time.Second, true, false)
	unconfirmed, unconfirmedOld, tooOld := aged(0, false, false), aged(2*time.Second, false, false), aged(time.Minute, true, false)
	incomplete, none := aged(0, true, true), Cached{}
	for i, row := range []struct {
		copies []Cached
		facts  Facts
		want   Action
	}{
		{[]Cached{fresh, fresh}, Facts{}, Use},
		{[]Cached{fresh, old}, Facts{}, UseAndRefresh},
		{[]Cached{old, unconfirmed}, Facts{}, ReadIfSpare},
		{[]Cached{unconfirmed, unconfirmed}, Facts{RedisAway: true}, UseDegraded},
		{[]Cached{unconfirmed, unconfirmedOld}, Facts{RedisAway: true}, ReadWithin},
		{[]Cached{unconfirmed, tooOld}, Facts{}, ReadOrUse},
		{[]Cached{unconfirmedOld, incomplete}, Facts{RedisAway: true}, ReadOrUse},
		{[]Cached{fresh, none}, Facts{}, Read},
		{[]Cached{fresh, unconfirmed, tooOld, incomplete}, Facts{PostgresAway: true}, UseDegraded},
		{[]Cached{fresh, none}, Facts{PostgresAway: true}, Read},
	} {
		for range len(row.copies) { // the action must be the same for each order of the copies
			row.copies = append(row.copies[1:], row.copies[0])
			f := row.facts
			f.Items, f.Now = make([]ledger.Item, len(row.copies)), now
			got := p.For(row.copies, &f)
			assert.True(t, got == row.want, "row %d, %s: %v, want %v", i, fmt.Sprint(row.copies), got, row.want)
		}
	}
}

// Copies that were read together become due at different ages, between 75 and 95 % of FreshFor.
func TestPolicy_RefreshDue_SpreadsCopiesReadTogether(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	p := Policy{FreshFor: 30 * time.Second}
	const copies = 1000
	due := func(age time.Duration) (n int) {
		for i := range copies {
			if p.refreshDue(copyOf("t", 1, now.Add(-age+time.Duration(i)*time.Microsecond)), now) {
				n++
			}
		}
		return n
	}
	for age, want := range map[time.Duration]int{
		22500 * time.Millisecond: 0, 24 * time.Second: copies / 4, 25500 * time.Millisecond: copies / 2, 27 * time.Second: copies * 3 / 4,
		28501 * time.Millisecond: copies,
	} {
		n := due(age)
		assert.True(t, n >= want-50 && n <= want+50, "after %s %d of %d are due, want about %d", age, n, copies, want)
	}
	assert.False(t, p.refreshDue(copyOf("t", 1, now.Add(time.Second)), now), "a copy from a clock ahead of ours is due")
}
