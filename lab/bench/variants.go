package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// checkBatch is the number of checks in a request with many checks.
const checkBatch = 64

// batchClients is the number of connections that send batches. It is enough to keep both lanes and the encoder busy.
const batchClients = 8

// probeConns are the pool sizes that are tried for the baseline. probeFor is the time for which each size is tried.
var probeConns = []int{4, 8, 16, 32, 64}

const probeFor = 500 * time.Millisecond

// variant is one kind of load on one server.
type variant struct {
	name string
	run  func(ctx context.Context, d time.Duration) (sample, error)
	site *site // the service's site; nil for baselines
}

// probe tries the sizes in probeConns and returns the pool with the best throughput of the PL/pgSQL baseline.
func (r *runner) probe(ctx context.Context, hot bool) (*pgxpool.Pool, error) {
	var best *pgxpool.Pool
	bestRate := 0.0
	for _, n := range probeConns {
		pool, err := openPool(ctx, r.stand.postgres.URL(), n)
		if err != nil {
			return nil, err
		}
		s, err := r.direct(pool, hot)(ctx, probeFor)
		if err != nil {
			pool.Close()
			return nil, err
		}
		loser := pool
		if s.rate() > bestRate {
			loser, best, bestRate = best, pool, s.rate()
		}
		if loser != nil {
			loser.Close()
		}
	}
	if best == nil {
		return nil, errors.New("the PL/pgSQL baseline answers nothing")
	}
	r.pools = append(r.pools, best)
	r.say("PL/pgSQL baseline, hot=%t: %d connections give the best throughput", hot, best.Config().MaxConns)
	return best, nil
}

// direct returns a load that calls the baseline's function, with one caller per connection of the pool.
func (r *runner) direct(pool *pgxpool.Pool, hot bool) func(context.Context, time.Duration) (sample, error) {
	return func(ctx context.Context, d time.Duration) (sample, error) {
		return closedLoop(ctx, int(pool.Config().MaxConns), d, func(int) (outcome, error) {
			n := r.seq.Add(1)
			tenant := hotTenant
			if !hot {
				tenant = tenantID(tenantOf(n, 0, r.cfg.Tenants))
			}
			key := make([]byte, len(keyMark))
			putKey(key, keyOf(n, 0))
			var left int64
			if err := pool.QueryRow(ctx, callBaseline, tenant, meter, string(key), 1).Scan(&left); err != nil {
				return outcome{}, fmt.Errorf("call the baseline: %w", err)
			}
			return outcome{status: 200, units: 1}, nil
		})
	}
}

// over returns a load that sends requests of t on n connections. It opens the connections before each slice, because
// a server may have closed connections without requests since the last round.
func (r *runner) over(address string, n int, t *template) func(context.Context, time.Duration) (sample, error) {
	return func(ctx context.Context, d time.Duration) (sample, error) {
		clients, err := dial(ctx, address, n)
		if err != nil {
			return sample{}, err
		}
		defer closeAll(clients)
		s, err := closedLoop(ctx, n, d, func(caller int) (outcome, error) {
			status, err := clients[caller].send(t, r.seq.Add(1), r.cfg.Tenants)
			return clients[caller].outcome(status, t), err
		})
		r.note(t, &s)
		return s, err
	}
}

// note counts the answered debits that the journal must contain at the end.
func (r *runner) note(t *template, s *sample) {
	if t.recorded {
		r.acked.Add(s.units)
	}
}

func (r *runner) templates() (debit, debitHot, check *template) {
	auth := bearer(adminKey)
	debit = newTemplate("/v1/debits", auth+keyHeader(), debitBody(tenantMark), 1)
	debitHot = newTemplate("/v1/debits", auth+keyHeader(), debitBody(hotTenant), 1)
	debit.recorded, debitHot.recorded = true, true
	return debit, debitHot, newTemplate("/v1/check", auth, checkBody(tenantMark, plainRoute), 1)
}

// prefixed returns the template of debits of the tenants with a prefix. The use of these tenants causes events at
// many percentages or at none. All debits have the same meter, and the use stays far below the lowest percentage.
func (r *runner) prefixed(prefix string) *template {
	t := newTemplate("/v1/debits", bearer(adminKey)+keyHeader(), debitBody(prefix+tenantMark), 1)
	t.recorded, t.among = true, thresholdTenants
	return t
}

func (r *runner) variants(many, hot *pgxpool.Pool) []variant {
	debit, debitHot, check := r.templates()
	auth := bearer(adminKey)
	batch := newTemplate("/v1/debits/batch", auth, batchBody(r.cfg.Batch), r.cfg.Batch)
	batch.recorded = true
	checks := newTemplate(checkBatchPath, auth, checksBody(tenantMark, checkBatch), checkBatch)
	web := func(name string, at *site, t *template) variant {
		return variant{name, r.over(at.api, r.cfg.Connections, t), at}
	}
	base := func(name, path, body string) variant {
		return variant{name, r.over(r.stand.baseAt, r.cfg.Connections, newTemplate(path, auth+keyHeader(), body, 1)), nil}
	}
	service := r.stand.service
	out := []variant{
		base(report.EchoDebits, "/echo/debits", debitBody(tenantMark)),
		web(report.DebitsMany, service, debit),
		{report.PLSQLMany, r.direct(many, false), nil},
		base(report.PLSQLWebMany, "/plpgsql/debits", debitBody(tenantMark)),
		{report.DebitBatches, r.over(service.api, min(batchClients, r.cfg.Connections), batch), service},
		base(report.EchoCheck, "/echo/check", checkBody(tenantMark, plainRoute)),
		web(report.ChecksMany, service, check),
		web(report.ChecksHot, service, newTemplate("/v1/check", auth, checkBody(hotTenant, plainRoute), 1)),
		{report.CheckBatches, r.over(service.api, min(batchClients, r.cfg.Connections), checks), service},
		web(report.DebitsThresholds, service, r.prefixed(thresholdPrefix)),
		web(report.DebitsPlain, service, r.prefixed(plainPrefix)),
		web(report.DebitsHot, service, debitHot),
		{report.PLSQLHot, r.direct(hot, true), nil},
		base(report.PLSQLWebHot, "/plpgsql/debits", debitBody(hotTenant)),
	}
	if before := r.stand.before; before != nil {
		// The other binary's debits are in its own journal, which is not compared with the answers.
		many, hot := *debit, *debitHot
		many.recorded, hot.recorded = false, false
		out = append(out, web(report.BeforeMany, before, &many), web(report.BeforeHot, before, &hot), web(report.BeforeChecks, before, check))
	}
	return out
}
