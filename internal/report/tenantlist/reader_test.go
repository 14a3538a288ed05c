package tenantlist

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

// bench is a reader with the database and the catalogue that it reads.
type bench struct {
	*Reader
	t     *testing.T
	pool  *pgxpool.Pool
	store *catalog.Store
}

func newBench(t *testing.T) *bench {
	t.Helper()
	url := testenv.Postgres(t)
	log, clock := slog.New(slog.DiscardHandler), pg.NewClock(0, slog.New(slog.DiscardHandler))
	b := &bench{t: t, pool: testenv.Pool(t, url)}
	l, err := pg.Open(t.Context(), pg.Config{
		DatabaseURL: testenv.AsService(url), Log: log, Metrics: prometheus.NewRegistry(), Clock: clock,
		AnswerBudget: testenv.Patience,
	})
	require.NoError(b.t, err)
	require.NoError(b.t, l.Start(t.Context()))
	t.Cleanup(func() { _ = l.Stop(context.Background()) })
	h, err := history.Open(t.Context(), l, history.Config{DatabaseURL: testenv.AsService(url), Metrics: prometheus.NewRegistry()})
	require.NoError(b.t, err)
	t.Cleanup(func() { _ = h.Stop(context.Background()) })
	db := pgstore.New(b.pool, pgstore.Config{
		Target: namedsql.Target(testenv.OnCitus()), Clock: clock, Timeout: testenv.Patience,
	})
	b.store = catalog.NewStore(db, catalog.StoreConfig{})
	b.Reader = New(h, l, b.store)
	return b
}

// all reads all pages of a query. It returns the ids of the tenants, and the number of pages.
func (b *bench) all(q Query) (ids []string, pages int) {
	b.t.Helper()
	for pages = 1; ; pages++ {
		page := testenv.Must(b.t).Get(b.List(b.t.Context(), q))
		for _, item := range page.Items {
			ids = append(ids, item.Tenant.ID)
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return ids, pages
		}
		require.True(b.t, pages <= 1000, "the list does not end")
	}
}

// A step or a page may end after any balance, even between two balances of a tenant. Each tenant must be listed
// exactly once.
func TestList_ShortStepsAndPages_EachTenantOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	meters := []string{"m1", "m2", "m3"}
	var allowances []catalog.Allowance
	for _, m := range meters {
		testenv.Put(t, b.store.PutMeter, catalog.Meter{ID: m, Unit: "u"})
		allowances = append(allowances, catalog.Allowance{Meter: m, Amount: 10, Every: "year", Anchor: "calendar", PerSubject: new(int64(5))})
	}
	testenv.Put(t, b.store.PutPlan, catalog.Plan{ID: "p", Allowances: allowances})
	var near, byPlan []string
	for i := range 6 {
		id := fmt.Sprintf("t%02d", i)
		testenv.Put(t, b.store.PutTenant, catalog.Tenant{ID: id, Plan: "p"})
		byPlan = append(byPlan, id)
		for j, m := range meters {
			amount := int64(1)
			if i%3 != 0 && (i+j)%2 == 0 { // one or two meters of the tenant are near
				amount = 5
			}
			for _, subject := range []string{"ann", "bob"} {
				_, err := pg.Do(t.Context(), b.ledger, &ledger.Debit{Tenant: id, Key: m + subject, Subject: subject, Items: []ledger.Item{{Meter: m, Amount: amount}}})
				require.NoError(b.t, err)
			}
		}
		if i%3 != 0 {
			near = append(near, id)
		}
	}
	eighty := 80
	limits, steps := []int{1, 5, 500}, []int{1, 2, 7, 1000}
	if testenv.OnCitus() { // each step queries all nodes, so fewer cases are tried
		limits, steps = []int{2, 500}, []int{1, 3, 1000}
	}
	for _, limit := range limits {
		for _, step := range steps {
			for _, page := range []time.Duration{0, testenv.Patience} {
				if page == 0 && limit == 5 {
					continue // a page of time 0 ends after each step
				}
				b.tenantsStep, b.balancesStep, b.walkStep, b.pageTime = step, step, step, page
				b.fewTenants = step
				for name, tc := range map[string]struct {
					q    Query
					want []string
				}{
					"near": {Query{Near: &eighty}, near}, "near, a meter": {Query{Near: &eighty, Meter: "m1"}, []string{"t02", "t04"}},
					"plan": {Query{Plan: "p"}, byPlan}, "status": {Query{Status: "active"}, byPlan}, "remaining": {Query{Near: &eighty, ByRemaining: true}, near},
					"remaining, plan": {Query{Near: &eighty, ByRemaining: true, Plan: "p"}, near}, "remaining, no plan": {Query{ByRemaining: true, Plan: "q"}, nil},
				} {
					tc.q.Limit = limit
					got, pages := b.all(tc.q)
					assert.True(t, slices.Equal(got, tc.want),
						"%s, steps of %d, pages of %d within %s: %v on %d pages, want %v", name, step, limit, page, got, pages, tc.want)
				}
			}
		}
	}
}

// If few tenants match, their balances are looked up. If many tenants match, all balances are walked in steps. Both
// ways must give the same order.
func TestList_ByRemaining_WalkAgreesWithLookingUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	meters := []string{"m1", "m2", "m3"}
	for _, plan := range []string{"p", "q"} {
		var allowances []catalog.Allowance
		for _, m := range meters {
			testenv.Put(t, b.store.PutMeter, catalog.Meter{ID: m, Unit: "u"})
			allowances = append(allowances, catalog.Allowance{Meter: m, Amount: 20, Every: "year", Anchor: "calendar"})
		}
		testenv.Put(t, b.store.PutPlan, catalog.Plan{ID: plan, Allowances: allowances})
	}
	type row struct {
		id, plan, segment string
		left              map[string]int64
	}
	var rows []row
	for i := range 12 {
		r := row{fmt.Sprintf("t%02d", i), []string{"p", "q"}[i%2], []string{"gold", "lead", "tin"}[i%3], map[string]int64{}}
		testenv.Put(t, b.store.PutTenant, catalog.Tenant{ID: r.id, Plan: r.plan, Metadata: []byte(`{"segment":"` + r.segment + `"}`)})
		for j, m := range meters {
			used := int64((i*7+j*5)%20 + 1)
			_, err := pg.Do(t.Context(), b.ledger, &ledger.Debit{Tenant: r.id, Key: m, Items: []ledger.Item{{Meter: m, Amount: used}}})
			require.NoError(b.t, err)
			r.left[m] = 20 - used
		}
		rows = append(rows, r)
	}
	want := func(q *Query) (ids []string) {
		matching := slices.DeleteFunc(slices.Clone(rows), func(r row) bool {
			return q.Plan != "" && r.plan != q.Plan || q.Metadata != nil && r.segment != q.Metadata["segment"]
		})
		least := func(r row) int64 {
			if q.Meter != "" {
				return r.left[q.Meter]
			}
			return min(r.left["m1"], r.left["m2"], r.left["m3"])
		}
		slices.SortFunc(matching, func(a, b row) int { return cmp.Or(cmp.Compare(least(a), least(b)), cmp.Compare(a.id, b.id)) })
		for _, r := range matching {
			ids = append(ids, r.id)
		}
		return ids
	}
	for _, q := range []Query{{}, {Plan: "p"}, {Meter: "m2"}, {Plan: "q", Meter: "m3"}, {Metadata: map[string]string{"segment": "tin"}}} {
		for _, limit := range []int{1, 4, 500} {
			for _, step := range []int{1, 3, 1000} {
				for _, few := range []int{1, 1000} {
					for _, page := range []time.Duration{0, testenv.Patience} {
						if few == 1000 && (step < 1000 || page == 0) {
							continue // these tenants are looked up without steps
						}
						b.walkStep, b.fewTenants, b.pageTime = step, few, page
						q.ByRemaining, q.Limit = true, limit
						got, pages := b.all(q)
						assert.True(t, slices.Equal(got, want(&q)),
							"%+v, steps of %d, few are %d, pages within %s: %v on %d pages, want %v", q, step, few, page, got, pages, want(&q))
					}
				}
			}
		}
	}
}

// If a list is too slow because of the number of balances, the error explains how to narrow the list. If the list is
// too slow for another reason, the error does not explain this.
func TestList_ByRemaining_TooManyBalances_NamesTheBound(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tx, err := b.pool.Begin(t.Context())
	require.NoError(b.t, err)
	defer tx.Rollback(context.Background()) //nolint:errcheck // the database is deleted after the test
	testenv.Exec(t, tx, "LOCK TABLE balances IN ACCESS EXCLUSIVE MODE")
	for bound, code := range map[int64]errcode.Code{-1: errcode.InvalidArgument, 1000: errcode.ReportTooSlow} {
		b.sortedMax = bound
		_, err := b.List(t.Context(), Query{ByRemaining: true, Limit: 10})
		assert.True(t, errcode.Of(err) == code, "bound %d: %v", bound, err)
		if code == errcode.InvalidArgument && (err == nil || !strings.Contains(err.Error(), "more than the -1")) {
			t.Errorf("%v", err)
		}
	}
}

func TestStatements_MigratedSchema_Prepare(t *testing.T) {
	t.Parallel()
	testenv.Statements(t, newBench(t).sql)
}
