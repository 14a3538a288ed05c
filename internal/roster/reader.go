package roster

import (
	"cmp"
	"context"
	"embed"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/namedsql"
)

const (
	// tenantsStep and balancesStep are the rows that a statement reads at most: some 20 ms. Larger steps would not stop in time.
	tenantsStep  = 5000
	balancesStep = 20_000

	// pageTime bounds the steps of a page. What follows the last step, and the step itself, fits into the time limit of reports.
	pageTime = 1200 * time.Millisecond

	// viewsMax bounds the balances that are computed together.
	viewsMax = 500

	// behindAll comes after every meter. No id has a tilde.
	behindAll = "~"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// Reader answers questions. It has no goroutines and no connections of its own.
type Reader struct {
	reports *history.Reader
	ledger  *pg.Ledger
	store   *catalog.Store
	sql     map[string]string

	tenantsStep, balancesStep int
	pageTime                  time.Duration
}

// New returns a reader that asks as the reports of h do.
func New(h *history.Reader, l *pg.Ledger, store *catalog.Store) (*Reader, error) {
	sql, err := namedsql.Load(sqlFiles)
	if err != nil {
		return nil, err
	}
	return &Reader{reports: h, ledger: l, store: store, sql: sql, tenantsStep: tenantsStep, balancesStep: balancesStep, pageTime: pageTime}, nil
}

// Item is a tenant of a list.
type Item struct {
	Tenant   catalog.Tenant
	Standing *Standing // if the question is about balances
}

// Page is a part of a list. It may have fewer items than asked for, or none, although there are more pages.
type Page struct {
	Items      []Item
	NextCursor string // empty on the last page
}

// found are ids in their order, with standings if the question is about balances.
type found struct {
	ids       []string
	standings map[string]*Standing
	next      string
}

// List returns a page of tenants. Errors: see the package.
func (r *Reader) List(ctx context.Context, q Query) (Page, error) {
	if err := q.validate(); err != nil {
		return Page{}, err
	}
	from, err := q.begin()
	if err != nil {
		return Page{}, err
	}
	if q.Tenant != "" {
		return r.one(ctx, &q)
	}
	f, err := history.Report(ctx, r.reports, "", func(ctx context.Context, pool *pgxpool.Pool) (found, error) {
		switch {
		case q.ByRemaining:
			return r.byRemaining(ctx, pool, &q, from)
		case q.Stands():
			return r.standing(ctx, pool, &q, from)
		}
		return r.matching(ctx, pool, &q, from)
	})
	if err != nil {
		return Page{}, err
	}
	tenants, err := r.store.TenantsNamed(ctx, f.ids)
	if err != nil {
		return Page{}, err
	}
	page := Page{NextCursor: f.next}
	for _, id := range f.ids {
		if i, ok := slices.BinarySearchFunc(tenants, id, func(t catalog.Tenant, id string) int { return cmp.Compare(t.ID, id) }); ok {
			page.Items = append(page.Items, Item{Tenant: tenants[i], Standing: f.standings[id]})
		}
	}
	return page, nil
}

// one answers q about one tenant.
func (r *Reader) one(ctx context.Context, q *Query) (Page, error) {
	tenants, err := r.store.TenantsNamed(ctx, []string{q.Tenant})
	if err != nil || len(tenants) == 0 || !q.matches(&tenants[0]) {
		return Page{}, err
	}
	item := Item{Tenant: tenants[0]}
	if q.Stands() {
		all, err := r.ledger.Balances(ctx, q.Tenant, "")
		if err != nil {
			return Page{}, err
		}
		for i := range all {
			q.offer(&item.Standing, &all[i])
		}
		if item.Standing == nil {
			return Page{}, nil
		}
	}
	return Page{Items: []Item{item}}, nil
}

// offer makes best the standing of b if that is one that q asks for, and more so than best.
func (q *Query) offer(best **Standing, b *ledger.Balance) {
	s, ok := standingOf(b)
	if !ok || s.Percent < q.percent() || q.Meter != "" && s.Meter != q.Meter {
		return
	}
	if *best == nil || q.ByRemaining && s.Remaining < (*best).Remaining || !q.ByRemaining && s.Percent > (*best).Percent {
		*best = &s
	}
}

// matching lists tenants by what they are.
func (r *Reader) matching(ctx context.Context, pool *pgxpool.Pool, q *Query, from position) (f found, err error) {
	names, values := q.members()
	statement, more := "ScanTenants", []any{q.Status, names, values}
	if q.Plan != "" {
		statement, more = "ScanTenantsOfPlan", append(more, q.Plan)
	}
	after := from.tenant
	for began := time.Now(); ; {
		var ids []string
		var last string
		var read int
		if err := pool.QueryRow(ctx, r.sql[statement], append([]any{after, r.tenantsStep}, more...)...).Scan(&ids, &last, &read); err != nil {
			return f, history.Failed("list tenants", err)
		}
		f.ids = append(f.ids, ids...)
		switch {
		case len(f.ids) > q.Limit:
			f.ids = f.ids[:q.Limit]
			f.next = position{tenant: f.ids[q.Limit-1]}.cursor(false)
			return f, nil
		case read < r.tenantsStep:
			return f, nil
		case len(f.ids) == q.Limit || time.Since(began) >= r.pageTime:
			f.next = position{tenant: last}.cursor(false)
			return f, nil
		}
		after = last
	}
}

// standing lists tenants by where they stand, in the order of their ids.
func (r *Reader) standing(ctx context.Context, pool *pgxpool.Pool, q *Query, from position) (f found, err error) {
	f.standings = map[string]*Standing{}
	names, values := q.members()
	listed := "" // a tenant in whose balances the page before has ended, and which is on it
	if from.listed {
		listed = from.tenant
	}
	if from.tenant != "" && from.meter == "" {
		from.meter = behindAll
	}
	for began := time.Now(); ; {
		var tenants, meters []string
		var last position
		var read int
		err := pool.QueryRow(ctx, r.sql["ScanBalances"], from.tenant, from.meter, from.subject, r.balancesStep, q.Meter, r.ledger.Now(), q.percent(), q.Status, names, values, q.Plan).
			Scan(&tenants, &meters, &last.tenant, &last.meter, &last.subject, &read)
		if err != nil {
			return f, history.Failed("list tenants by their balances", err)
		}
		var keys []ledger.BalanceKey
		for i := range tenants {
			if tenants[i] != listed {
				keys = append(keys, ledger.BalanceKey{Tenant: tenants[i], Meter: meters[i]})
			}
		}
		full, err := r.addStanding(ctx, q, &f, keys)
		switch {
		case err != nil:
			return f, err
		case full:
			f.next = position{tenant: f.ids[q.Limit-1]}.cursor(false)
			return f, nil
		case read < r.balancesStep:
			return f, nil
		case time.Since(began) >= r.pageTime:
			last.listed = f.standings[last.tenant] != nil || last.tenant == listed
			f.next = last.cursor(false)
			return f, nil
		}
		from = last
	}
}

// addStanding adds the tenants of candidates to f. It reports whether there is one more than the page has room for.
func (r *Reader) addStanding(ctx context.Context, q *Query, f *found, candidates []ledger.BalanceKey) (full bool, err error) {
	for keys := range slices.Chunk(candidates, viewsMax) {
		all, err := r.ledger.BalancesOf(ctx, keys)
		if err != nil {
			return false, err
		}
		for i := range all {
			tenant := all[i].Tenant
			best := f.standings[tenant]
			if q.offer(&best, &all[i]); best == nil {
				continue
			}
			if f.standings[tenant] == nil {
				if len(f.ids) == q.Limit {
					return true, nil
				}
				f.ids = append(f.ids, tenant)
			}
			f.standings[tenant] = best
		}
	}
	return false, nil
}

// byRemaining lists tenants by what remains, the least first.
func (r *Reader) byRemaining(ctx context.Context, pool *pgxpool.Pool, q *Query, from position) (f found, err error) {
	f.standings = map[string]*Standing{}
	names, values := q.members()
	statement, args := "LeastRemaining", []any{from.remaining, from.tenant, q.Limit + 1, q.Meter, r.ledger.Now(), q.percent(), q.Status, names, values, q.Plan}
	if q.Meter != "" && q.Status == "" && q.Plan == "" && len(names) == 0 { // no tenant has to be looked up: a tenth of the time if many are near
		statement, args = "LeastRemainingOfMeter", args[:6]
	}
	var tenants, meters []string
	var last position
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		// Reports look things up; this one reads all balances.
		if _, err := tx.Exec(ctx, "SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on; SET LOCAL enable_sort = on; SET LOCAL work_mem = '64MB'; SET LOCAL plan_cache_mode = force_custom_plan"); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, r.sql[statement], args...)
		if err != nil {
			return err
		}
		var p position
		_, err = pgx.ForEachRow(rows, []any{&p.tenant, &p.meter, &p.remaining}, func() error {
			if len(tenants) < q.Limit {
				tenants, meters, last = append(tenants, p.tenant), append(meters, p.meter), p
			} else {
				f.next = last.cursor(true)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return f, history.Failed("list tenants by what remains", err)
	}
	keys := make([]ledger.BalanceKey, len(tenants))
	for i := range tenants {
		keys[i] = ledger.BalanceKey{Tenant: tenants[i], Meter: meters[i]}
	}
	if _, err := r.addStanding(ctx, q, &f, keys); err != nil {
		return f, err
	}
	slices.SortStableFunc(f.ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(f.standings[a].Remaining, f.standings[b].Remaining), cmp.Compare(a, b))
	})
	return f, nil
}
