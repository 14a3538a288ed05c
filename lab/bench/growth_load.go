package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/quotasvc/quotasvc/lab/bench/growth"
	"github.com/quotasvc/quotasvc/lab/bench/past"
	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// inMemory is the default value of QUOTASVC_TENANTS_IN_MEMORY.
const inMemory = 50_000

// tenants measures the effect of the number of stored tenants, and of the number of tenants in use.
func (g *grower) tenants(ctx context.Context) (out growth.Step, err error) {
	sizes, leftOut, err := g.fits(g.cfg.Sizes.Tenants, "tenants", func(n int) float64 { return float64(n) * tenantBytes })
	if err != nil {
		return out, err
	}
	out.LeftOut = leftOut
	var all []*grown
	for _, n := range sizes {
		s, err := g.add(ctx, all, growth.Label(int64(n), "tenants"), float64(n), past.Yearly(n, 1, time.Now()), 0.4*float64(n)/float64(sum(sizes)))
		if err != nil {
			return out, err
		}
		all = append(all, s)
		if n > inMemory && n < sizes[len(sizes)-1] {
			all = append(all, &grown{
				Size: growth.Size{Label: s.Label + growth.InMemory, Value: s.Value}, tenants: n, of: s, env: []string{fmt.Sprint("QUOTASVC_TENANTS_IN_MEMORY=", n)},
				at: []*site{g.siteOf(s.database, len(all)-1)},
			})
		}
	}
	last := all[len(all)-1]
	if few := sizes[0]; len(all) > 1 {
		all = append(all, &grown{Size: growth.Size{Label: fmt.Sprintf("%s, %d of them in use", last.Label, few), Value: last.Value}, tenants: few, of: last})
	}
	return out, g.measure(ctx, &out, all, nil)
}

// journal measures the effect of the number of entries.
func (g *grower) journal(ctx context.Context) (out growth.Step, err error) {
	sizes, leftOut, err := g.fits(g.cfg.Sizes.Entries, "entries", func(n int) float64 { return float64(n) * entryBytes })
	if err != nil {
		return out, err
	}
	out.LeftOut = leftOut
	var all []*grown
	for _, n := range sizes {
		h := past.Yearly(g.cfg.Sizes.EntryTenants, max(1, n/g.cfg.Sizes.EntryTenants-1), time.Now())
		s, err := g.add(ctx, all, growth.Label(h.Entries(), "entries"), float64(h.Entries()), h, 0.6*float64(n)/float64(max(sum(sizes), 1)))
		if err != nil {
			return out, err
		}
		all = append(all, s)
	}
	return out, g.measure(ctx, &out, all, nil)
}

// instances measures the effect of the number of instances of the service. The load is divided between them.
func (g *grower) instances(ctx context.Context) (out growth.Step, err error) {
	var all []*grown
	for _, n := range g.cfg.Sizes.Instances {
		what := "instances"
		if n == 1 {
			what = "instance"
		}
		s, err := g.add(ctx, all, growth.Label(int64(n), what), float64(n), past.Yearly(g.cfg.Sizes.Base, 1, time.Now()), 0)
		if err != nil {
			return out, err
		}
		all = append(all, s)
	}
	return out, g.measure(ctx, &out, all, g.cfg.Sizes.Instances)
}

// moreMonths creates partitions of past months until $MONTHS exist.
const moreMonths = `DO $$
DECLARE
    mon  date := (SELECT min(to_date(right(inhrelid::regclass::text, 7), 'YYYY_MM')) FROM pg_inherits WHERE inhparent = 'entries'::regclass);
    name text;
BEGIN
    WHILE (SELECT count(*) FROM pg_inherits WHERE inhparent = 'entries'::regclass) < $MONTHS LOOP
        mon := mon - interval '1 month';
        name := to_char(mon, '"entries_"YYYY_MM');
        EXECUTE format('CREATE TABLE %I (LIKE entries INCLUDING ALL)', name);
        EXECUTE format('ALTER TABLE entries ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', name, mon, (mon + interval '1 month')::date);
    END LOOP;
END
$$`

// partitions measures the effect of the number of monthly partitions.
func (g *grower) partitions(ctx context.Context) (out growth.Step, err error) {
	var all []*grown
	for _, n := range g.cfg.Sizes.Months {
		s, err := g.add(ctx, all, growth.Label(int64(n), "months"), float64(n), past.Yearly(g.cfg.Sizes.Base, 1, time.Now()), 0, replace(moreMonths, "$MONTHS", n))
		if err != nil {
			return out, err
		}
		there, err := g.count(ctx, s, "SELECT count(*) FROM pg_inherits WHERE inhparent = 'entries'::regclass")
		if err != nil {
			return out, err
		}
		s.Label, s.Value = growth.Label(there, "months"), float64(there)
		all = append(all, s)
	}
	return out, g.measure(ctx, &out, all, nil)
}

// moreRules stores $RULES rules in four equal groups. In two groups, each rule replaces a limit of every check, for
// one tenant. The rules of the third group are for routes below a common path. The rules of the fourth group are for
// routes that differ after a wildcard. A check has three limits, for any number of rules.
const moreRules = `INSERT INTO limits (rule, spec)
SELECT kind || '-' || n, jsonb_build_object('rule', kind || '-' || n, 'kind', 'token_bucket') || CASE kind
    WHEN 'per-tenant' THEN jsonb_build_object('per', '["tenant"]'::jsonb, 'rate', '2000000/s', 'replaces', 'per-tenant', 'match', jsonb_build_object('tenant', tenant))
    WHEN 'per-user' THEN jsonb_build_object('per', '["tenant","subject"]'::jsonb, 'rate', '2000000/s', 'replaces', 'per-user', 'match', jsonb_build_object('tenant', tenant))
    WHEN 'item' THEN jsonb_build_object('per', '["tenant"]'::jsonb, 'rate', '1000000/s', 'match', jsonb_build_object('route', '/items/w' || n || '/*'))
    ELSE jsonb_build_object('per', '["tenant"]'::jsonb, 'rate', '1000000/s', 'match', jsonb_build_object('route', '/v1/*/w' || n)) END
FROM (SELECT kind, n, 't-' || lpad(n::text, 6, '0') AS tenant FROM generate_series(0, $RULES / 4 - 1) AS n, unnest('{per-tenant,per-user,item,route}'::text[]) AS kind) AS r`

// catalogue measures the effect of the number of rules.
func (g *grower) catalogue(ctx context.Context) (out growth.Step, err error) {
	var all []*grown
	for _, n := range g.cfg.Sizes.Rules {
		s, err := g.add(ctx, all, growth.Label(int64(n), "rules"), float64(n), past.Yearly(g.cfg.Sizes.Base, 1, time.Now()), 0, replace(moreRules, "$RULES", n), "ANALYZE limits")
		if err != nil {
			return out, err
		}
		all = append(all, s)
	}
	return out, g.measure(ctx, &out, all, nil)
}

// measure starts the instances of all sizes, loads the sizes in turn, and verifies their journals.
func (g *grower) measure(ctx context.Context, out *growth.Step, all []*grown, instances []int) error {
	for i, s := range all {
		if s.isGuest() {
			s.at = s.of.at
			continue
		}
		n := 1
		if instances != nil {
			n = instances[i]
		}
		if err := g.start(ctx, s, n); err != nil {
			return err
		}
	}
	// This writes earlier changes to the disk, so that they do not slow down a size in the rounds.
	if _, err := g.stand.db.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := g.warmUp(ctx, all); err != nil {
		return err
	}
	if err := g.rounds(ctx, all); err != nil {
		return err
	}
	for _, s := range all {
		if !s.isGuest() {
			for _, at := range s.at {
				s.Memory = max(s.Memory, peakMemory(at.child.Pid()))
			}
		}
	}
	for _, s := range all {
		if err := g.prove(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.Label, err)
		}
	}
	for _, s := range all {
		out.Sizes = append(out.Sizes, s.Size)
	}
	return nil
}

// The first change of a page after a checkpoint writes the whole page to the WAL. In production these writes are
// spread over the minutes between two checkpoints. If there are many pages, these writes are a large part of the work
// soon after a checkpoint.
const (
	// warmPages is the maximum number of whole pages per debit at which a size counts as warm. The value is reached
	// if each page changes ten times between two checkpoints.
	warmPages = 0.1

	// warmLeast and warmMost bound the time, in slices, for which each size gets debits before the rounds.
	warmLeast, warmMost = 5, 240
)

// warmUp sends debits to each size until the size is warm, that is, until most of its pages have changed once.
func (g *grower) warmUp(ctx context.Context, all []*grown) error {
	for _, s := range all {
		g.say("%s: warming up", s.Label)
		before, err := g.wholePages(ctx)
		if err != nil {
			return err
		}
		for did := 0; did < warmMost; did += warmLeast {
			r, _, err := g.fast(ctx, s, g.debits(), warmLeast*g.cfg.Slice, &growth.Load{})
			if err != nil {
				return err
			}
			after, err := g.wholePages(ctx)
			if err != nil {
				return err
			}
			s.Pages = float64(after-before) / float64(max(r.units, 1))
			if before = after; s.Pages <= warmPages {
				break
			}
		}
		g.say("%s: warm, %.2f whole pages in the WAL for a debit", s.Label, s.Pages)
	}
	return nil
}

// wholePages returns the number of whole pages that PostgreSQL has written to the WAL. The number may be up to a
// second old, because sessions report their pages late.
func (g *grower) wholePages(ctx context.Context) (n int64, err error) {
	if err := g.stand.db.QueryRow(ctx, "SELECT wal_fpi FROM pg_stat_wal").Scan(&n); err != nil {
		return 0, fmt.Errorf("whole pages in the WAL: %w", err)
	}
	return n, nil
}

func (g *grower) debits() *template {
	t := newTemplate("/v1/debits", bearer(adminKey)+keyHeader(), debitBody(tenantMark), 1)
	t.recorded = true
	return t
}

// rounds puts both loads on every size in each round, first as fast as possible and then at a fixed rate. Each round
// begins with another size.
func (g *grower) rounds(ctx context.Context, all []*grown) error {
	loads := []struct {
		name string
		t    *template
	}{
		{growth.Debits, g.debits()},
		{growth.Checks, newTemplate("/v1/check", bearer(adminKey), checkBody(tenantMark, plainRoute), 1)},
	}
	units := make([][]int64, len(all))
	for i, s := range all {
		s.Loads, units[i] = make([]growth.Load, len(loads)), make([]int64, len(loads))
		for l := range loads {
			s.Loads[l] = growth.Load{Name: loads[l].name, Achieved: 1}
		}
	}
	begin, part := g.bar.within, 0.0
	for round := range g.cfg.Rounds {
		for l := range loads {
			t := loads[l].t
			for i := range all {
				at := (i + round) % len(all)
				s, out := all[at], &all[at].Loads[l]
				if err := g.lead(ctx, s, t, out); err != nil {
					return err
				}
				sample, used, err := g.fast(ctx, s, t, g.cfg.Slice, out)
				if err != nil {
					return err
				}
				out.Rates = append(out.Rates, sample.rate())
				out.Used, units[at][l] = out.Used.Plus(used), units[at][l]+sample.units
				if err := g.steady(ctx, s, t, out); err != nil {
					return err
				}
				part += 0.95 / float64(g.cfg.Rounds*len(loads)*len(all))
				g.at(begin + (1-begin)*part)
				g.say("round %d/%d  %-36s %6s %7.0f/s, p99 %s", round+1, g.cfg.Rounds, s.Label, out.Name, out.Rates[round], report.Micros(int64(out.P99s[round])))
			}
		}
	}
	for i, s := range all {
		for l := range loads {
			s.Loads[l].Used = s.Loads[l].Used.Per(units[i][l])
		}
	}
	return nil
}

const (
	// leadAsks is the average number of requests per tenant in use that each instance gets before its size is
	// measured. With this average, 95 % of the tenants get at least one request.
	leadAsks = 3

	// leadMost is the maximum duration of a lead-in, in slices. With a million tenants, the lead-in ends before every
	// tenant has got a request.
	leadMost = 8
)

// lead puts the load on a size until its instances are in the same state as under a continuous load. While other sizes
// were loaded, the instances' copies of this size's balances became too old. A check without a fresh copy reads
// PostgreSQL.
func (g *grower) lead(ctx context.Context, s *grown, t *template, out *growth.Load) error {
	if _, _, err := g.fast(ctx, s, t, time.Duration(leadIn*float64(g.cfg.Slice)), out); err != nil || t.recorded {
		return err
	}
	asks := int64(leadAsks * s.tenants * len(s.at))
	for end := time.Now().Add(leadMost * g.cfg.Slice); asks > 0 && time.Now().Before(end); {
		r, _, err := g.fast(ctx, s, t, min(g.cfg.Slice, time.Until(end)), out)
		if err != nil {
			return err
		}
		asks -= r.units
	}
	return nil
}

// dialAll opens the connections of the load, divided evenly between the instances.
func (g *grower) dialAll(ctx context.Context, s *grown) (all []*client, err error) {
	for i, at := range s.at {
		n := (g.cfg.Connections*(i+1))/len(s.at) - g.cfg.Connections*i/len(s.at)
		some, err := dial(ctx, at.api, n)
		all = append(all, some...)
		if err != nil {
			closeAll(all)
			return nil, err
		}
	}
	return all, nil
}

// fast loads a size in a closed loop. It returns the sample and the CPU time used.
func (g *grower) fast(ctx context.Context, s *grown, t *template, d time.Duration, out *growth.Load) (sample, report.CPU, error) {
	clients, err := g.dialAll(ctx, s)
	if err != nil {
		return sample{}, report.CPU{}, err
	}
	defer closeAll(clients)
	pids := make([]int, len(s.at))
	for i, at := range s.at {
		pids[i] = at.child.Pid()
	}
	before := cpuOf(os.Getpid(), pids...)
	r, err := closedLoop(ctx, len(clients), d, func(caller int) (outcome, error) {
		status, err := clients[caller].send(t, g.seq.Add(1), s.tenants)
		return clients[caller].outcome(status, t), err
	})
	used := cpuOf(os.Getpid(), pids...).Minus(before)
	s.note(t, &r, out)
	if err == nil && r.sent > 0 && r.units == 0 {
		err = fmt.Errorf("%s: none of %d requests was answered with 200: %v", s.Label, r.sent, r.answers)
	}
	return r, used, err
}

// steady loads a size at the fixed rate. The measurement begins after a quarter of its duration.
func (g *grower) steady(ctx context.Context, s *grown, t *template, out *growth.Load) error {
	clients, err := g.dialAll(ctx, s)
	if err != nil {
		return err
	}
	defer closeAll(clients)
	load := steady{t: t, tenants: s.tenants, rate: g.cfg.Rate, drain: drainMax, tick: paceTick}
	for _, d := range []time.Duration{g.cfg.OpenFor / 4, g.cfg.OpenFor} {
		load.d = d
		r, err := openLoop(ctx, clients, &g.seq, load)
		s.note(t, &r, out)
		if err != nil {
			return err
		}
		if d == g.cfg.OpenFor {
			out.P50s = append(out.P50s, float64(r.latency.ValueAtQuantile(50)))
			out.P99s = append(out.P99s, float64(r.latency.ValueAtQuantile(99)))
			out.Achieved = min(out.Achieved, r.rate()/float64(g.cfg.Rate))
		}
	}
	return nil
}

// note counts the debits that the journal must contain, and the requests whose answer is not 200.
func (s *grown) note(t *template, r *sample, out *growth.Load) {
	out.Errors += r.errors
	if t.recorded {
		at := s
		if s.of != nil {
			at = s.of
		}
		at.acked += r.units
	}
}

// complete returns an error if debits are missing. The number of entries, `entered`, must not be less than the number
// of entries before the load plus the number of answered debits.
func (s *grown) complete(entered int64) error {
	if entered < s.Entries+s.acked {
		return fmt.Errorf("%d debits were answered, and of %d entries there are %d", s.acked, s.Entries+s.acked, entered)
	}
	return nil
}

// prove returns an error if a debit is missing in the journal, or if `quotasvc verify` finds a difference.
func (g *grower) prove(ctx context.Context, s *grown) error {
	if s.of != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	if g.cfg.Tamper != nil {
		if err := g.cfg.Tamper(ctx, s.at[0].databaseURL); err != nil {
			return err
		}
	}
	entered, err := g.count(ctx, s, "SELECT coalesce(sum(seq), 0)::bigint FROM balances") // verify checks these numbers
	if err != nil {
		return err
	}
	if err := s.complete(entered); err != nil {
		return err
	}
	g.say("%s: verifying %d entries", s.Label, entered)
	began := time.Now()
	if err := g.stand.tool(ctx, s.at[0], "verify"); err != nil {
		return err
	}
	s.Verified = time.Since(began).Seconds()
	return nil
}

// count runs a query in a size's database that returns one number.
func (g *grower) count(ctx context.Context, s *grown, sql string) (n int64, err error) {
	err = g.ask(ctx, s, sql, &n)
	return n, err
}

// ask runs a query in a size's database that returns one row.
func (g *grower) ask(ctx context.Context, s *grown, sql string, into ...any) (err error) {
	db, err := connect(ctx, s.at[0].databaseURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(ctx)) }()
	if err := db.QueryRow(ctx, sql).Scan(into...); err != nil {
		return fmt.Errorf("%.60s: %w", sql, err)
	}
	return nil
}
