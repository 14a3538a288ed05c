package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/period"
)

// plainFilter is what a list of entries must contain, by a scan of everything.
const plainFilter = `SELECT format('%s/%s/%s', e.meter, e.subject, e.seq) FROM entries e
	WHERE e.tenant_id = $1 AND e.seq > 0 AND ($2 = '' OR e.meter = $2) AND ($3 = '' OR e.subject = $3 OR e.op_subject = $3)
		AND ($4 = '' OR e.kind = $4) AND e.created_at >= $5 AND e.created_at < $6 ORDER BY e.meter, e.subject, e.seq`

// several makes entries of two meters, one with a cap per subject, over some hours.
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
		_ = b.try(d)
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
		rows, err := b.db.Query(t.Context(), plainFilter, ask.Tenant, ask.Meter, ask.Subject, ask.Kind, from, to)
		b.check(err)
		want, err := pgx.CollectRows(rows, pgx.RowTo[string])
		b.check(err)
		if ask.Order == NewestFirst {
			slices.Reverse(want)
		}
		var got []string
		for page := ask; ; {
			out, err := b.Entries(t.Context(), page)
			b.check(err)
			if len(out.Items) > ask.Limit {
				t.Fatalf("%d items of at most %d", len(out.Items), ask.Limit)
			}
			for _, e := range out.Items {
				got = append(got, fmt.Sprintf("%s/%s/%d", e.Meter, e.Subject, e.Seq))
			}
			if page.Cursor = out.NextCursor; page.Cursor == "" {
				break
			}
		}
		if diff := cmp.Diff(strings.Join(want, " "), strings.Join(got, " ")); diff != "" {
			t.Fatalf("entries of %+v (-want +got):\n%s", ask, diff)
		}
	}
	if !period.Earliest.Before(instants[0]) {
		t.Error("no bound in time is older than the entries")
	}
}

func TestEntries_BadQuery_RefusedByField(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.hourly("acme", 10)
	must(b, debitOf("acme", "k1", 1))
	must(b, debitOf("acme", "k2", 1))
	_, err := b.Entries(t.Context(), EntryQuery{Tenant: "acme", Limit: 1, Order: "newest"})
	wantRefused(t, err, "order")
	_, err = b.Entries(t.Context(), EntryQuery{Tenant: "acme", Limit: 1, From: time.Now(), To: time.Now().Add(-time.Hour)})
	wantRefused(t, err, "to")
	page, err := b.Entries(t.Context(), EntryQuery{Tenant: "acme", Limit: 1})
	b.check(err)
	for _, ask := range []EntryQuery{{Order: NewestFirst}, {Meter: "jobs"}} {
		ask.Tenant, ask.Limit, ask.Cursor = "acme", 1, page.NextCursor
		_, err = b.Entries(t.Context(), ask)
		wantRefused(t, err, "cursor")
	}
}
