package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// plainFilter is a query of the entries that a list must contain. It scans all entries.
const plainFilter = `SELECT format('%s/%s/%s', e.meter, e.subject, e.seq) FROM entries e
	WHERE e.tenant_id = $1 AND e.seq > 0 AND ($2 = '' OR e.meter = $2) AND ($3 = '' OR e.subject = $3 OR e.op_subject = $3)
		AND ($4 = '' OR e.kind = $4) AND e.created_at >= $5 AND e.created_at < $6 ORDER BY e.meter, e.subject, e.seq`

// several creates entries of two meters in several hours. One of the meters has a cap per subject.
func (b *bundle) several(r *rand.Rand) {
	b.t.Helper()
	b.hourly("acme", 10)
	b.allowance("hourly", "jobs", 20, "hour", "tenant")
	b.exec("UPDATE plan_allowances SET per_subject = 8 WHERE meter = 'jobs'")
	b.wander(r, 30)
	for i := range 30 {
		d := debitOf("acme", fmt.Sprint("s", i), 1)
		d.Subject = []string{"", "ann", "bob"}[r.IntN(3)]
		d.Items[0].Meter = []string{"api_calls", "jobs"}[r.IntN(2)]
		_, _ = pg.Do(b.t.Context(), b.ledger, d) // it may be refused
		if r.IntN(6) == 0 {
			b.rewind(20 * time.Minute)
		}
	}
	b.exec("UPDATE entries SET month = date_trunc('month', created_at AT TIME ZONE 'UTC')::date WHERE month <> date_trunc('month', created_at AT TIME ZONE 'UTC')::date")
}

func TestEntries_RandomFilters_EqualPlainFilter(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(0, seed))
	b.several(r)
	instants := b.instants(ledger.BalanceKey{Tenant: "acme", Meter: "jobs"})
	for range 60 {
		ask := EntryQuery{
			Tenant: "acme", Limit: 1 + r.IntN(20), Meter: []string{"", "api_calls", "jobs"}[r.IntN(3)], Subject: []string{"", "", "ann", "bob", "nobody"}[r.IntN(5)],
			Kind: []ledger.EntryKind{"", "", ledger.EntryDebit, ledger.EntryGrant, ledger.EntryExpire, ledger.EntryVoid}[r.IntN(6)], Order: []Order{"", OldestFirst, NewestFirst}[r.IntN(3)],
		}
		if r.IntN(2) == 0 {
			ask.From = instants[r.IntN(len(instants))]
		}
		if r.IntN(2) == 0 {
			ask.To = instants[r.IntN(len(instants))]
		}
		if !ask.From.IsZero() && !ask.To.IsZero() && !ask.To.After(ask.From) {
			ask.To = time.Time{}
		}
		from, to := ask.times()
		want := list(b, pgx.RowTo[string], plainFilter, ask.Tenant, ask.Meter, ask.Subject, ask.Kind, from, to)
		if ask.Order == NewestFirst {
			slices.Reverse(want)
		}
		var got []string
		for page := ask; ; {
			out, err := b.Entries(t.Context(), page)
			b.check(err)
			require.True(t, len(out.Items) <= ask.Limit, "%d items of at most %d", len(out.Items), ask.Limit)
			for _, e := range out.Items {
				got = append(got, fmt.Sprintf("%s/%s/%d", e.Meter, e.Subject, e.Seq))
			}
			if page.Cursor = out.NextCursor; page.Cursor == "" {
				break
			}
		}
		require.Equal(t, strings.Join(want, " "), strings.Join(got, " "), "entries of %+v", ask)
	}
	assert.True(t, period.Earliest.Before(instants[0]), "no bound in time is older than the entries")
}

func TestEntries_BadQuery_RefusedByField(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 10)
	must(b, debitOf("acme", "k1", 1))
	must(b, debitOf("acme", "k2", 1))
	wantRefused(t, errOf(b.Entries(t.Context(), EntryQuery{Tenant: "acme", Limit: 1, Order: "newest"})), "order")
	backwards := EntryQuery{Tenant: "acme", Limit: 1, From: time.Now(), To: time.Now().Add(-time.Hour)}
	wantRefused(t, errOf(b.Entries(t.Context(), backwards)), "to")
	page, err := b.Entries(t.Context(), EntryQuery{Tenant: "acme", Limit: 1})
	b.check(err)
	for _, ask := range []EntryQuery{{Order: NewestFirst}, {Meter: "jobs"}} {
		ask.Tenant, ask.Limit, ask.Cursor = "acme", 1, page.NextCursor
		wantRefused(t, errOf(b.Entries(t.Context(), ask)), "cursor")
	}
}

func TestStatements_ClosedAndOpen_NewestFirst_PagesJoin(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 10)
	b.allowance("hourly", "jobs", 20, "day", "tenant")
	jobs := debitOf("acme", "j1", 1)
	jobs.Items[0].Meter = "jobs"
	must(b, jobs)
	for i := range 3 {
		must(b, debitOf("acme", fmt.Sprint("k", i), int64(i+1)))
		b.rewind(time.Hour)
	}
	b.rewind(5 * time.Hour)                      // the periods of these hours are idle
	for _, stored := range []bool{false, true} { // the last period is closed in memory first, then in the tables
		all, err := b.Statements(t.Context(), StatementQuery{Tenant: "acme", Limit: 100})
		b.check(err)
		require.True(t, len(all.Items) == 10 && all.NextCursor == "",
			"stored %t: %d periods, want 9 of api_calls and 1 of jobs: %+v", stored, len(all.Items), all.Items)
		for i := range all.Items {
			s := &all.Items[i]
			one, err := b.Statement(t.Context(), "acme", s.Meter, "", s.Start)
			b.check(err)
			one.Lines, one.AsOf = nil, s.AsOf
			wantEqual(t, "statement of the list", s, one)
			if i > 0 && inList(all.Items[i-1], *s) >= 0 {
				t.Errorf("%s %s comes after %s %s", s.Meter, s.Start, all.Items[i-1].Meter, all.Items[i-1].Start)
			}
		}
		for limit := 1; limit <= 3; limit++ {
			var joined []Statement
			for ask := (StatementQuery{Tenant: "acme", Limit: limit}); ; {
				page, err := b.Statements(t.Context(), ask)
				b.check(err)
				joined = append(joined, page.Items...)
				if ask.Cursor = page.NextCursor; ask.Cursor == "" {
					break
				}
			}
			for i := range joined {
				joined[i].AsOf = all.Items[i].AsOf
			}
			wantEqual(t, fmt.Sprint("pages of ", limit), joined, all.Items)
		}
		must(b, debitOf("acme", fmt.Sprint("last", stored), 1))
	}
	current, err := b.StatementCurrent(t.Context(), "acme", "api_calls", "")
	b.check(err)
	last, err := b.StatementLast(t.Context(), "acme", "api_calls", "")
	b.check(err)
	assert.True(t, !current.Closed && last.Closed && last.End.Equal(current.Start),
		"current %+v, last %+v", current, last)
	wantCode(t, errOf(b.StatementLast(t.Context(), "acme", "jobs", "")), errcode.NotFound)
	wantRefused(t, errOf(b.StatementAt(t.Context(), "acme", "jobs", "", time.Now().Add(time.Hour))), "period_start")
	page, err := b.Statements(t.Context(), StatementQuery{Tenant: "acme", Limit: 1})
	b.check(err)
	for _, ask := range []StatementQuery{{Subject: "ann"}, {Meter: "other"}, {Cursor: "x"}} {
		ask.Tenant, ask.Limit = "acme", 1
		if ask.Cursor == "" {
			ask.Cursor = page.NextCursor
		}
		wantRefused(t, errOf(b.Statements(t.Context(), ask)), "cursor")
	}
}

func TestUsage_BySubject_FromWhatRequestsNamed(t *testing.T) {
	t.Parallel()
	b := newBundle(t).monthly("acme", 100)
	for i, subject := range []string{"ann", "bob", "ann", ""} {
		d := debitOf("acme", fmt.Sprint("k", i), int64(1+i))
		d.Subject = subject
		must(b, d)
	}
	now := time.Now().UTC()
	ask := UsageQuery{Tenant: "acme", Meter: "api_calls", From: now.AddDate(-1, 0, 0), To: now.Add(time.Hour), Step: UsageByMonth}
	used := func(ask UsageQuery) map[string][2]int64 {
		t.Helper()
		out := map[string][2]int64{}
		items, err := b.Usage(t.Context(), ask)
		b.check(err)
		for _, u := range items {
			out[u.Value] = [2]int64{out[u.Value][0] + u.Used, out[u.Value][1] + u.Operations}
		}
		return out
	}
	wantEqual(t, "all", used(ask), map[string][2]int64{"": {10, 4}})
	ask.Subject = "ann" // the plan has no cap per subject
	wantEqual(t, "of a subject", used(ask), map[string][2]int64{"": {4, 2}})
	ask.Subject, ask.Group = "", UsageBySubject
	wantEqual(t, "by subject", used(ask), map[string][2]int64{"ann": {4, 2}, "bob": {2, 1}, "": {4, 1}})
	ask.Group = "plan"
	wantRefused(t, errOf(b.Usage(t.Context(), ask)), "group_by")
	ask.Group, ask.Step = "", "year"
	wantRefused(t, errOf(b.Usage(t.Context(), ask)), "by")
}
