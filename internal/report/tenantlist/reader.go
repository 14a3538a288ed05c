package tenantlist

import (
	"cmp"
	"context"
	"embed"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

const (
	// tenantsStep and balancesStep are the largest numbers of rows that one statement reads, in about 20 ms. If a
	// step were larger, a page could end too late.
	tenantsStep  = 5000
	balancesStep = 20_000

	// pageTime is the time during which a page may begin another step. It leaves time for the last step, and for the
	// work after it, within the time limit of reports.
	pageTime = 1200 * time.Millisecond

	// fewTenants is the largest number of tenants whose balances are looked up separately for sorting, in about 100
	// ms.
	fewTenants = 20_000

	// walkStep is the number of rows that the first step of a walk keeps. Each further step keeps walkGrowth times as
	// many rows, up to walkMax. If more than fewTenants of a million tenants match, the first page of a hundred
	// tenants usually needs one step, rarely two.
	walkStep   = 5000
	walkGrowth = 4
	walkMax    = 80_000

	// sortedMax is the number of balances that an idle machine can read in the time of a report. 1.2 million balances
	// take half a second to one second (docs/decisions/near.md).
	sortedMax = 2_500_000

	// viewsMax is the largest number of balances that the ledger computes in one call.
	viewsMax = 500

	// behindAll is greater than every meter's id, because no id contains a tilde.
	behindAll = "~"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// Reader answers queries. It has no goroutines, and uses the connections of other packages.
type Reader struct {
	reports *history.Reader
	ledger  *pg.Ledger
	store   *catalog.Store
	sql     map[string]string

	tenantsStep, balancesStep, fewTenants, walkStep int
	sortedMax                                       int64
	pageTime                                        time.Duration
}

// New returns a reader. Its queries use the connections and time limits of the reports of h.
func New(h *history.Reader, l *pg.Ledger, store *catalog.Store) *Reader {
	return &Reader{
		reports: h, ledger: l, store: store, sql: namedsql.Must(namedsql.Plain, sqlFiles), pageTime: pageTime,
		tenantsStep: tenantsStep, balancesStep: balancesStep, fewTenants: fewTenants, walkStep: walkStep, sortedMax: sortedMax,
	}
}

// Item is a tenant in a list.
type Item struct {
	Tenant  catalog.Tenant
	Balance *BalanceStatus // set if the query selects by balances
}

// Page is a page of a list. It may have fewer items than requested, or none, even if there are more pages.
type Page struct {
	Items      []Item
	NextCursor string // empty on the last page
}

// found contains the ids of a page's tenants in their order. If the query selects by balances, it also contains their
// statuses.
type found struct {
	ids      []string
	statuses map[string]*BalanceStatus
	next     string
}

// List returns a page of tenants. The package comment describes its errors.
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
		case q.AboutBalances():
			return r.standing(ctx, pool, &q, from)
		}
		return r.matching(ctx, pool, &q, from)
	})
	if q.ByRemaining && errcode.Of(err) == errcode.ReportTooSlow {
		err = r.tooMany(ctx, err)
	}
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
			page.Items = append(page.Items, Item{Tenant: tenants[i], Balance: f.statuses[id]})
		}
	}
	return page, nil
}

// one answers a query for one tenant.
func (r *Reader) one(ctx context.Context, q *Query) (Page, error) {
	tenants, err := r.store.TenantsNamed(ctx, []string{q.Tenant})
	if err != nil || len(tenants) == 0 || !q.matches(&tenants[0]) {
		return Page{}, err
	}
	item := Item{Tenant: tenants[0]}
	if q.AboutBalances() {
		all, err := r.ledger.Balances(ctx, q.Tenant, "")
		if err != nil {
			return Page{}, err
		}
		for i := range all {
			q.offer(&item.Balance, &all[i])
		}
		if item.Balance == nil {
			return Page{}, nil
		}
	}
	return Page{Items: []Item{item}}, nil
}

// offer compares b with best, the best status so far. If q selects b and b is better, offer sets best to the status of
// b.
func (q *Query) offer(best **BalanceStatus, b *ledger.Balance) {
	s, ok := statusOf(b)
	if !ok || s.Percent < q.percent() || q.Meter != "" && s.Meter != q.Meter {
		return
	}
	if *best == nil || q.ByRemaining && s.Remaining < (*best).Remaining || !q.ByRemaining && s.Percent > (*best).Percent {
		*best = &s
	}
}

// matching lists tenants by plan, status and metadata.
func (r *Reader) matching(ctx context.Context, pool *pgxpool.Pool, q *Query, from position) (f found, err error) {
	names, values := q.members()
	statement, more := "ScanTenants", []any{q.Status, names, values}
	if q.Plan != "" {
		statement, more = "ScanTenantsOfPlan", append(more, q.Plan, r.ledger.Now())
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

// standing lists the tenants that have a balance which the query selects. The order is that of the tenants' ids.
func (r *Reader) standing(ctx context.Context, pool *pgxpool.Pool, q *Query, from position) (f found, err error) {
	f.statuses = map[string]*BalanceStatus{}
	names, values := q.members()
	listed := "" // the last tenant of the previous page, if that page did not read all balances of the tenant
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
		full, err := r.addStatus(ctx, q, &f, keys)
		switch {
		case err != nil:
			return f, err
		case full:
			f.next = position{tenant: f.ids[q.Limit-1]}.cursor(false)
			return f, nil
		case read < r.balancesStep:
			return f, nil
		case time.Since(began) >= r.pageTime:
			last.listed = f.statuses[last.tenant] != nil || last.tenant == listed
			f.next = last.cursor(false)
			return f, nil
		}
		from = last
	}
}

// addStatus adds the tenants of candidates to f. full is true if the page is full and another tenant follows.
func (r *Reader) addStatus(ctx context.Context, q *Query, f *found, candidates []ledger.BalanceKey) (full bool, err error) {
	for keys := range slices.Chunk(candidates, viewsMax) {
		all, err := r.ledger.BalancesOf(ctx, keys)
		if err != nil {
			return false, err
		}
		for i := range all {
			tenant := all[i].Tenant
			best := f.statuses[tenant]
			if q.offer(&best, &all[i]); best == nil {
				continue
			}
			if f.statuses[tenant] == nil {
				if len(f.ids) == q.Limit {
					return true, nil
				}
				f.ids = append(f.ids, tenant)
			}
			f.statuses[tenant] = best
		}
	}
	return false, nil
}

// byRemaining lists tenants by remaining units, the fewest first. If few tenants match, it reads their balances.
// Otherwise it walks all balances in this order. Each step reads all balances, keeps the next balances in the order,
// and looks up only the tenants of these balances.
func (r *Reader) byRemaining(ctx context.Context, pool *pgxpool.Pool, q *Query, from position) (f found, err error) {
	f.statuses = map[string]*BalanceStatus{}
	var all []ledger.BalanceKey
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		// Connections for reports avoid sequential scans. This report needs them, because it reads all balances.
		if _, err := tx.Exec(ctx, "SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on; SET LOCAL enable_sort = on; SET LOCAL work_mem = '64MB'; SET LOCAL plan_cache_mode = force_custom_plan"); err != nil {
			return err
		}
		if q.filtersTenants() {
			keys, few, err := r.leastOfFew(ctx, tx, q, from, &f)
			if all = keys; err != nil || few {
				return err
			}
		}
		all, err = r.walk(ctx, tx, q, from, &f)
		return err
	})
	if err != nil {
		return f, history.Failed("list tenants by what remains", err)
	}
	if _, err := r.addStatus(ctx, q, &f, all); err != nil {
		return f, err
	}
	slices.SortStableFunc(f.ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(f.statuses[a].Remaining, f.statuses[b].Remaining), cmp.Compare(a, b))
	})
	return f, nil
}

// least contains tenants in the order of their fewest remaining units, with the meter of these units for each tenant.
type least struct {
	tenants, meters []string
	remaining       []int64
}

// page returns the balances of the first `limit` tenants. If there are more tenants, it sets f.next to the position
// after the last tenant of the page.
func (l *least) page(limit int, f *found) []ledger.BalanceKey {
	if n := len(l.tenants); n > limit {
		f.next = position{tenant: l.tenants[limit-1], remaining: l.remaining[limit-1]}.cursor(true)
	}
	keys := make([]ledger.BalanceKey, min(len(l.tenants), limit))
	for i := range keys {
		keys[i] = ledger.BalanceKey{Tenant: l.tenants[i], Meter: l.meters[i]}
	}
	return keys
}

// leastOfFew returns the balances of a page if at most fewTenants tenants match. Otherwise few is false.
func (r *Reader) leastOfFew(ctx context.Context, tx pgx.Tx, q *Query, from position, f *found) (keys []ledger.BalanceKey, few bool, err error) {
	names, values := q.members()
	var l least
	var match int
	err = tx.QueryRow(ctx, r.sql["LeastRemainingOfFew"], from.remaining, from.tenant, q.Limit+1, q.Meter, r.ledger.Now(), q.percent(), q.Status, names, values, q.Plan, r.fewTenants).
		Scan(&l.tenants, &l.meters, &l.remaining, &match)
	if err != nil || match > r.fewTenants {
		return nil, false, err
	}
	return l.page(q.Limit, f), true, nil
}

// walk returns the balances of a page. The page is short if its time is over.
func (r *Reader) walk(ctx context.Context, tx pgx.Tx, q *Query, from position, f *found) ([]ledger.BalanceKey, error) {
	names, values := q.members()
	var all least
	began := time.Now()
	for step := r.walkStep; ; step = min(walkGrowth*step, walkMax) {
		var l least
		var last position
		var walked, match int
		stepBegan := time.Now()
		err := tx.QueryRow(ctx, r.sql["LeastRemaining"], from.remaining, from.tenant, step, q.Meter, r.ledger.Now(), q.percent(), q.Status, names, values, q.Plan, q.Limit+1-len(all.tenants)).
			Scan(&l.tenants, &l.meters, &l.remaining, &last.remaining, &last.tenant, &walked, &match)
		if err != nil {
			return nil, err
		}
		all.tenants, all.meters, all.remaining = append(all.tenants, l.tenants...), append(all.meters, l.meters...), append(all.remaining, l.remaining...)
		full := match == q.Limit+1-(len(all.tenants)-len(l.tenants)) // then the step may have read further matches
		switch {
		case len(all.tenants) > q.Limit, walked < step && !full:
			return all.page(q.Limit, f), nil
		case time.Since(began)+time.Since(stepBegan) >= r.pageTime: // another step would take as long as this step
			keys := all.page(q.Limit, f)
			f.next = last.cursor(true)
			return keys, nil
		}
		from = last
	}
}

// tooMany returns the error for a report that was too slow. If the reason is the number of balances, the error
// explains how to narrow the list. Otherwise it returns err.
func (r *Reader) tooMany(ctx context.Context, err error) error {
	var n int64
	ask := r.store.DB().View(ctx, "count balances", func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, r.sql["BalancesAbout"]).Scan(&n)
	})
	if ask != nil || n <= r.sortedMax {
		return err
	}
	return errcode.Errorf(errcode.InvalidArgument, "sort", "must be tenant here: for remaining all balances are read, and these are about %d, more than the %d for which "+
		"the time of a report suffices; near, plan or metadata narrow a list by tenant", n, r.sortedMax)
}
