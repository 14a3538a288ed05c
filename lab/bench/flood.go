package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
)

// FloodConfig configures floods of refused requests while other tenants make debits.
type FloodConfig struct {
	// Start starts an instance of the service on the same servers. stop ends the instance and its connections to
	// PostgreSQL.
	Start    func(ctx context.Context) (api string, stop func(context.Context) error, err error)
	Database string // URL of the service's database; its transactions are counted
	AdminKey string

	// Attack sends the flood of one slice. If it is nil, this process sends the flood.
	Attack func(ctx context.Context, a Attack) ([]map[int]int64, error)
	Echo   string // host:port of the bare echo handler for the control; empty: no control

	Rate        int           // debits/s of the other tenants, floodRateMin..openRateMax/floodFactor
	Connections int           // connections of the other tenants; the flood has the same number, at least one per kind
	Rounds      int           // 1..100
	Slice       time.Duration // duration of each measurement: first without a flood, then with a flood
}

const (
	floodFactor  = 10 // refused requests for each debit of the other tenants
	floodRateMin = 10
	floodOthers  = 50        // tenants that debit
	floodTenants = 10        // tenants of each kind of flood
	floodLimit   = "trickle" // name of the limit that refuses
	floodRoute   = "/trickle"

	// floodDrain is how long a flood may still send requests after the end of its slice. It is 0, so late requests are
	// dropped.
	floodDrain = 0

	// floodSpan is greater than the number of requests in a slice, so each attack has its own keys.
	floodSpan = 1 << 32

	// countTimeout is the time limit of the wait until the PostgreSQL sessions of a stopped instance have ended.
	countTimeout = 10 * time.Second
)

func (c *FloodConfig) validate() error {
	switch {
	case c.Rate < floodRateMin || c.Rate > openRateMax/floodFactor:
		return fmt.Errorf("rate is %d; must be between %d and %d", c.Rate, floodRateMin, openRateMax/floodFactor)
	case c.Connections < len(floodKinds) || c.Connections > 4096:
		return fmt.Errorf("connections is %d; must be between %d and 4096", c.Connections, len(floodKinds))
	case c.Rounds < 1 || c.Rounds > 100:
		return fmt.Errorf("rounds is %d; must be between 1 and 100", c.Rounds)
	case c.Slice < 100*time.Millisecond || c.Slice > time.Minute:
		return fmt.Errorf("slice is %s; must be between 100ms and 1m", c.Slice)
	}
	return nil
}

// floodKind is a kind of refused requests: the tenants that send them, and the reason of their refusal.
type floodKind struct {
	name         string
	first        int // number of the first tenant of this kind
	route        string
	plans        []string // plans of the tenants, in turn; empty: the tenants do not exist
	transactions float64  // maximum number of PostgreSQL's transactions for each refused request
}

// floodKinds lists the kinds of a flood. The bounds of transactions are for 500 requests/s of one tenant. The balance
// of a tenant without units is read again after 100 ms. At 500 requests/s that is 0.02 transactions per request, plus
// some transactions for the first requests.
var floodKinds = []floodKind{
	{name: "rate limited", first: 1000, route: floodRoute, plans: []string{"flood"}, transactions: 0.02},
	{name: "without units", first: 2000, route: plainRoute, plans: []string{"drop", "dry"}, transactions: 0.025},
	{name: "unknown tenants", first: 3000, route: plainRoute, transactions: 0.01},
}

// floodAll is the name of the flood that contains requests of all kinds.
const floodAll = "all of them"

// flood is the state of a run.
type flood struct {
	cfg   *FloodConfig
	debit *template
	seq   atomic.Uint64
	db    *pgx.Conn
}

// Flood measures the other tenants' debits with and without floods, in alternating slices of one run. It also counts
// the transactions that refused requests cost. It returns an error if a step fails. The caller judges the result.
func Flood(ctx context.Context, cfg FloodConfig) (_ *FloodResult, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Attack == nil {
		cfg.Attack = func(ctx context.Context, a Attack) ([]map[int]int64, error) { return a.Run(ctx) }
	}
	f := &flood{cfg: &cfg, debit: newTemplate("/v1/debits", bearer(cfg.AdminKey)+keyHeader(), debitBody(tenantMark), 1)}
	if f.db, err = connect(ctx, cfg.Database); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.db.Close(context.WithoutCancel(ctx))) }()
	r := &FloodResult{Rate: cfg.Rate, Factor: floodFactor, Others: floodOthers, Tenants: floodTenants, Rounds: cfg.Rounds, Slice: cfg.Slice.String()}
	if err := f.with(ctx, func(api string) error { return f.latencies(ctx, api, r) }); err != nil {
		return nil, err
	}
	if err := f.count(ctx, r); err != nil {
		return nil, err
	}
	r.judge()
	return r, nil
}

// with starts an instance, calls the function `do`, and stops the instance.
func (f *flood) with(ctx context.Context, do func(api string) error) error {
	api, stop, err := f.cfg.Start(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(api), stop(ctx))
}

// setUp creates the tenants and the limits. Three limits apply to every request; they never deny. A tenant with the
// plan "drop" has one unit a month. Its first request uses that unit, and later requests get 429. A tenant with the
// plan "dry" has no units, so its requests get 402.
func (f *flood) setUp(ctx context.Context, api string) error {
	put := func(path, body string) error { return putJSON(ctx, api, f.cfg.AdminKey, path, body) }
	err := errors.Join(
		put("/v1/meters/"+meter, `{"unit":"call"}`),
		put("/v1/plans/flood", `{"allowances":[{"meter":"`+meter+`","amount":1000000000000,"every":"month","anchor":"calendar"}]}`),
		put("/v1/plans/drop", `{"allowances":[{"meter":"`+meter+`","amount":1,"every":"month","anchor":"calendar"}]}`),
		put("/v1/plans/dry", `{"allowances":[{"meter":"`+meter+`","amount":0,"every":"once","anchor":"tenant"}]}`),
		put("/v1/limits/"+floodLimit, `{"per":["tenant"],"match":{"route":"`+floodRoute+`"},"kind":"token_bucket","rate":"1/m","burst":1}`),
	)
	err = errors.Join(err, putLimits(put))
	tenants := func(first, n int, plans ...string) {
		for i := 0; i < n && err == nil; i++ {
			err = put("/v1/tenants/"+tenantID(first+i), `{"plan":"`+plans[i%len(plans)]+`"}`)
		}
	}
	tenants(0, floodOthers, "flood")
	for _, k := range floodKinds {
		if len(k.plans) > 0 {
			tenants(k.first, floodTenants, k.plans...)
		}
	}
	return err
}

// latencies measures the other tenants' debits in each round and for each kind of flood: first without the flood,
// then with it.
func (f *flood) latencies(ctx context.Context, api string, r *FloodResult) error {
	if err := f.setUp(ctx, api); err != nil {
		return err
	}
	var all []string
	for _, k := range floodKinds {
		all = append(all, k.name)
	}
	// This opens the first periods and the connections, and uses the single unit of each tenant with the plan "drop".
	if _, _, err := f.slice(ctx, api, f.cfg.Rate, all...); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	r.Floods = append(r.Floods, newFloodSlices(floodAll, all...))
	for _, name := range all {
		r.Floods = append(r.Floods, newFloodSlices(name, name))
	}
	if f.cfg.Echo != "" {
		r.Floods = append(r.Floods, newFloodSlices(floodEcho, floodEcho))
	}
	for range f.cfg.Rounds {
		for i := range r.Floods {
			s := &r.Floods[i]
			quiet, _, err := f.slice(ctx, api, f.cfg.Rate)
			if err != nil {
				return fmt.Errorf("without a flood: %w", err)
			}
			loud, answers, err := f.slice(ctx, api, f.cfg.Rate, s.kinds...)
			if err != nil {
				return fmt.Errorf("flood, %s: %w", s.Name, err)
			}
			s.add(&quiet, &loud, answers)
		}
	}
	return ctx.Err()
}

// slice sends the other tenants' debits at a rate, together with a flood that is divided evenly between the given
// kinds. Without kinds, there is no flood. With the rate 0, there are no debits.
func (f *flood) slice(ctx context.Context, api string, rate int, kinds ...string) (others sample, answers []map[int]int64, err error) {
	var attackErr, debitErr error
	var wg sync.WaitGroup
	if len(kinds) > 0 {
		a := Attack{
			Address: api, AdminKey: f.cfg.AdminKey, Kinds: kinds, Rate: f.cfg.Rate * floodFactor, Connections: f.cfg.Connections, Slice: f.cfg.Slice,
			First: f.seq.Add(floodSpan),
		}
		if kinds[0] == floodEcho {
			a.Address = f.cfg.Echo
		}
		wg.Go(func() { answers, attackErr = f.cfg.Attack(ctx, a) })
	}
	if rate > 0 {
		wg.Go(func() {
			others, debitErr = openLoopOn(ctx, api, f.cfg.Connections, &f.seq, steady{t: f.debit, tenants: floodOthers, rate: rate, d: f.cfg.Slice, drain: drainMax, tick: paceTick})
		})
	}
	wg.Wait()
	return others, answers, errors.Join(attackErr, debitErr)
}

// count counts the transactions that each kind of refused requests costs, without debits of other tenants. A session
// may report its transactions only when it ends. So each kind has a separate instance, which is stopped before the
// count. The transactions of an instance without requests are subtracted.
func (f *flood) count(ctx context.Context, r *FloodResult) error {
	alone := int64(0)
	for i := -1; i < len(floodKinds); i++ {
		before, err := f.transactions(ctx)
		if err != nil {
			return err
		}
		var answers []map[int]int64
		err = f.with(ctx, func(api string) (err error) {
			if i < 0 {
				return wait(ctx, f.cfg.Slice)
			}
			_, answers, err = f.slice(ctx, api, 0, floodKinds[i].name)
			return err
		})
		if err != nil {
			return fmt.Errorf("count: %w", err)
		}
		after, err := f.transactions(ctx)
		if err != nil {
			return err
		}
		if i < 0 {
			alone = after - before
			continue
		}
		k := FloodCost{Name: floodKinds[i].name, Transactions: max(0, after-before-alone), most: floodKinds[i].transactions}
		for status, n := range answers[0] {
			if status >= 400 {
				k.Refused += n
			}
		}
		r.Costs = append(r.Costs, k)
	}
	return nil
}

// transactions returns the number of transactions in the database until now. First it waits until all other sessions
// have ended, because a session may report its transactions only at its end.
func (f *flood) transactions(ctx context.Context) (n int64, err error) {
	for deadline := time.Now().Add(countTimeout); ; {
		var others int
		err = f.db.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND backend_type = 'client backend' AND application_name !~ '^citus' AND pid <> pg_backend_pid()`).Scan(&others)
		if err != nil {
			return 0, fmt.Errorf("count sessions: %w", err)
		}
		if others == 0 {
			break
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("%d sessions remain %s after the service's end", others, countTimeout)
		}
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
	}
	err = f.db.QueryRow(ctx, "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()").Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count transactions: %w", err)
	}
	return n, nil
}

func wait(ctx context.Context, d time.Duration) error {
	if !backoff.Sleep(ctx, d) {
		return ctx.Err()
	}
	return nil
}

func newFloodSlices(name string, kinds ...string) FloodSlices {
	return FloodSlices{Name: name, Answers: map[int]int64{}, kinds: kinds, quiet: newHistogram(), loud: newHistogram()}
}

// add adds the results of two slices: quiet is without a flood, and loud is with a flood.
func (s *FloodSlices) add(quiet, loud *sample, answers []map[int]int64) {
	s.quiet.Merge(quiet.latency)
	s.loud.Merge(loud.latency)
	s.Ratios = append(s.Ratios, ratioOf(loud.latency, quiet.latency))
	s.Errors += quiet.errors + loud.errors
	for _, part := range answers {
		for status, n := range part {
			s.Answers[status] += n
		}
	}
	s.Quiet, s.Flood = percentilesOf(s.quiet), percentilesOf(s.loud)
}

func ratioOf(a, b *hdrhistogram.Histogram) float64 {
	return float64(a.ValueAtQuantile(99)) / float64(max(b.ValueAtQuantile(99), 1))
}
