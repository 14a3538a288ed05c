package pg

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/model"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
)

// life is one tenant of a service program. It has the requests that clients send to the fleet for this tenant, and
// the models that explain every answer so far.
//
// PostgreSQL's clock cannot be set. Instead, the stored rows are moved into the past, and ahead grows by the same
// duration. So the model's time is PostgreSQL's time plus ahead.
type life struct {
	*model.Program
	fleet  *fleet
	late   sync.WaitGroup // counts the calls of ask that still run on killed members
	db     *pgx.Conn      // a direct connection, not through the fleet's proxies
	tenant string
	ahead  time.Duration
	able   []*model.Model // the models that explain every answer so far
	stamps atomic.Int64   // orders requests and answers of all clients
	past   []moment
	seed   maphash.Seed
	log    []string
	steps  int
}

// moment contains the amounts of a balance that were read at an instant.
type moment struct {
	at      time.Time // in the model's time
	k       ledger.BalanceKey
	figures string
}

// live signs up a new tenant in the database and starts a program for it. The tenant has the same plan as after
// model.Start in memory.
func live(t *rapid.T, db *pgx.Conn, tenant string, f *fleet) (*life, error) {
	s := &life{Program: model.Start(t), fleet: f, db: db, tenant: tenant, seed: maphash.MakeSeed()}
	now, err := s.clock()
	if err != nil {
		return nil, err
	}
	s.ahead = s.Now.Sub(now)
	s.able = []*model.Model{s.Model}
	first := s.Memory.History[0]
	return s, s.atomically(func(b *pgx.Batch) {
		for plan := range s.Memory.Plans {
			s.writeVersion(b, plan)
		}
		b.Queue("INSERT INTO tenants (tenant_id, plan, anchor, timezone, created_at) VALUES ($1, $2, $3, 'UTC', $4)",
			tenant, s.planName(first.Plan), s.stored(first.AnchorAt), s.stored(first.Since))
		b.Queue("INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, initial) VALUES ($1, $2, $3, $4, 'UTC', true)",
			tenant, s.stored(first.Since), s.planName(first.Plan), s.stored(first.AnchorAt))
	})
}

// clock returns PostgreSQL's time.
func (s *life) clock() (now time.Time, err error) {
	err = s.db.QueryRow(context.Background(), "SELECT clock_timestamp()").Scan(&now)
	return now.UTC(), err
}

// look sets the models' time to the current time of PostgreSQL plus ahead.
func (s *life) look() error {
	now, err := s.clock()
	if err != nil {
		return err
	}
	s.Now = now.Add(s.ahead)
	for _, m := range s.able {
		m.Now = s.Now
	}
	return nil
}

// stored converts an instant of the model to PostgreSQL's time.
func (s *life) stored(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-s.ahead)
}

// atomically makes changes in one transaction, because rolls of other programs also process this tenant. It locks the
// tenant's balances, so no batch and no roll continues with rows from before the change. It reads the clock after it
// has the locks.
func (s *life) atomically(change func(b *pgx.Batch)) error {
	ctx := context.Background()
	return pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT 1 FROM balances WHERE tenant_id = $1 ORDER BY meter, subject FOR UPDATE", s.tenant); err != nil {
			return err
		}
		if err := s.look(); err != nil {
			return err
		}
		b := &pgx.Batch{}
		change(b)
		return tx.SendBatch(ctx, b).Close()
	})
}

// rewind moves the rows into the past, as if time had passed. The added microsecond keeps the ids of allowances
// unique, because such an id contains the start of a period.
func (s *life) rewind(by time.Duration) error {
	by = by.Truncate(time.Second) + time.Microsecond
	err := s.atomically(func(b *pgx.Batch) {
		const ofTenant = "tenant_id = $1"
		for _, sql := range slices.Concat(testenv.Rewind(ofTenant), testenv.RewindHolds(ofTenant), testenv.Rewound) {
			b.Queue(sql, s.tenant, by)
		}
		b.Queue(testenv.RewoundHolds, s.tenant, by)
		b.Queue("UPDATE plans SET created_at = created_at - $2::interval WHERE plan = ANY($1)", s.planNames(), by)
		// Ledgers remember which versions were made up to the instant of the newest one. So a version of no tenant is newer.
		b.Queue(`INSERT INTO plans (plan, version, created_at) VALUES ('rewound', 2, clock_timestamp())
			ON CONFLICT (plan, version) DO UPDATE SET created_at = excluded.created_at`)
	})
	before := s.fingerprints()
	s.ahead += by
	s.logf("%s pass", by)
	after := s.fingerprints()
	// A request with instants now has another fingerprint than its stored entry. It cannot be sent again.
	s.Sent = slices.DeleteFunc(s.Sent, func(r model.Request) bool { return before[r.ID] != after[r.ID] })
	return err
}

// fingerprints returns the fingerprints of the requests that can be sent again. The key of the map is the request's
// id.
func (s *life) fingerprints() map[string][16]byte {
	out := map[string][16]byte{}
	for i := range s.Sent {
		out[s.Sent[i].ID] = ledger.NewCall(s.prepared(&s.Sent[i]).Op).Fingerprint
	}
	return out
}

func (s *life) planName(plan string) string { return s.tenant + "-" + plan }

// planNames returns the names of all plans of the program.
func (s *life) planNames() []string {
	names := make([]string, len(model.Plans))
	for i, plan := range model.Plans {
		names[i] = s.planName(plan)
	}
	return names
}

// writeVersion writes the newest version of a plan to the catalogue.
func (s *life) writeVersion(b *pgx.Batch, plan string) {
	versions := s.Memory.Plans[plan]
	v := versions[len(versions)-1]
	b.Queue("INSERT INTO plans (plan, version, created_at, apply) VALUES ($1, $2, $3, nullif($4, ''))", s.planName(plan), v.Version, s.stored(v.CreatedAt), string(v.Apply))
	for meter, a := range v.Allowances {
		var policy, atEnd, overflow, ratio *string
		var price, units, per, days *int64
		if a.Lasts > 0 {
			days = new(int64(a.Lasts / (24 * time.Hour)))
		}
		if a.OverageAllowed {
			policy = new("allow")
		}
		if a.OveragePreserved {
			atEnd = new("preserve")
		}
		if a.OverflowMeter != "" {
			overflow, price = &a.OverflowMeter, &a.OverflowPrice.Units
			if !a.OverflowPrice.IsWhole() {
				overflow, price, ratio, units, per = nil, nil, &a.OverflowMeter, &a.OverflowPrice.Units, &a.OverflowPrice.Per
			}
		}
		b.Queue(`INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor, rollover_min, rollover_max,
			overage_policy, overage_cap, overflow_meter, overflow_price, per_subject, overage_at_period_end,
			ratio_meter, ratio_units, ratio_per, expires_in_days)
			VALUES ($1, $2, $3, 0, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,
			s.planName(plan), v.Version, meter, a.Amount, string(a.Every), string(a.Anchor), a.RolloverMin, a.RolloverMax,
			policy, a.OverageCap, overflow, price, a.PerSubject, atEnd, ratio, units, per, days)
	}
}

func (s *life) newVersion(plan string, meters map[string]model.Terms, apply string) error {
	return s.atomically(func(b *pgx.Batch) {
		s.Publish(plan, meters, apply, s.Now)
		s.writeVersion(b, plan)
		s.logf("a new version of plan %s: %+v", plan, meters)
	})
}

func (s *life) newPlan(c model.PlanChange) error {
	return s.atomically(func(b *pgx.Batch) {
		s.ChangePlan(c)
		for _, m := range s.able {
			m.Changes = s.Model.Changes
		}
		at := s.stored(s.Now)
		b.Queue(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, immediate, prorate, usage)
			SELECT tenant_id, $2, $3, anchor, timezone, $4, $5, CASE WHEN $6 THEN 'reset' WHEN $7 THEN 'add' ELSE 'carry' END FROM tenants WHERE tenant_id = $1`,
			s.tenant, at, s.planName(c.Plan), c.Now, c.Prorate, c.Reset, c.Add)
		s.logf("plan changes: %+v", c)
	})
}

func (s *life) suspend(suspended bool) {
	for _, m := range s.able {
		m.Suspended = suspended
	}
	s.logf("suspended: %v", suspended)
}

func (s *life) logf(format string, args ...any) {
	s.log = append(s.log, s.Now.Format("15:04:05.000000 ")+fmt.Sprintf(format, args...))
}

// asked returns a context with the actor of c. The request id in this context is the idempotency key of c.
func asked(c *ledger.Call) context.Context {
	return auditlog.With(context.Background(), &auditlog.Actor{KeyID: c.Actor, RequestID: c.ID.Key, Admin: c.Actor == model.Administrator})
}

// send sends c to l and sets the answer of c. It returns the instant of the decision, or the zero time if the answer
// has none.
func (s *life) send(l *Ledger, c *ledger.Call, options ...Option) (decided time.Time) {
	ctx := asked(c)
	switch r := c.Op.(type) {
	case *ledger.Debit:
		out, err := Do(ctx, l, r, options...)
		return took(c, out, err, func(r *ledger.DebitResult) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *ledger.Grant:
		out, err := Do(ctx, l, r, options...)
		return took(c, out, err, func(r *ledger.GrantResult) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *ledger.Hold:
		out, err := Do(ctx, l, r, options...)
		return took(c, out, err, func(r *ledger.HoldResult) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *ledger.HoldChange:
		out, err := Do(ctx, l, r, options...)
		return took(c, out, err, func(r *ledger.HoldResult) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *ledger.Refund:
		out, err := Do(ctx, l, r, options...)
		return took(c, out, err, func(r *ledger.RefundResult) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *ledger.Adjust:
		out, err := Do(ctx, l, r, options...)
		return took(c, out, err, func(r *ledger.Change) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *ledger.GrantChange:
		out, err := Do(ctx, l, r, options...)
		return took(c, out, err, func(r *ledger.Change) (time.Time, bool) { return r.AsOf, r.Replayed })
	}
	panic(fmt.Sprintf("unknown request %T", c.Op))
}

// prepared returns a call of the request for this tenant. The instants of the call are in PostgreSQL's time.
func (s *life) prepared(r *model.Request) *ledger.Call {
	c := r.Call()
	model.Suspend(c, s.able[0].Suspended)
	switch r := c.Op.(type) {
	case *ledger.Debit:
		r.Tenant = s.tenant
	case *ledger.Grant:
		r.Tenant, r.EffectiveAt, r.ExpiresAt = s.tenant, s.stored(r.EffectiveAt), s.stored(r.ExpiresAt)
	case *ledger.Hold:
		r.Tenant = s.tenant
	case *ledger.HoldChange:
		r.Tenant = s.tenant
	case *ledger.Refund:
		r.Tenant = s.tenant
	case *ledger.Adjust:
		r.Tenant = s.tenant
	case *ledger.GrantChange:
		r.Tenant, r.ExpiresAt = s.tenant, s.stored(r.ExpiresAt)
	}
	return c
}

// took sets the answer of c and returns the instant of the decision.
func took[R any](c *ledger.Call, out *R, err error, when func(*R) (time.Time, bool)) (at time.Time) {
	if err == nil {
		c.Answer = out
		at, c.Replayed = when(out)
		return at
	}
	c.Err = err
	if denial := ledger.DenialOf(err); denial != nil {
		c.Replayed = denial.Replayed
		return denial.AsOf
	}
	return time.Time{}
}

// figures returns nine amounts of a balance as text.
func figures(n [9]int64) string {
	return fmt.Sprintf("opening %d granted %d refunded %d used %d expired %d adjusted %d overage %d held %d remaining %d",
		n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8])
}

// named returns k with the tenant's id in the database.
func (s *life) named(k ledger.BalanceKey) ledger.BalanceKey {
	k.Tenant = s.tenant
	return k
}

// read reads the balances of keys from l, at one instant. It returns them as text and as books, and the instant.
func (s *life) read(l *Ledger, keys []ledger.BalanceKey) (text string, books []*ledger.Book, now time.Time, err error) {
	names := make([]ledger.BalanceKey, len(keys))
	for i, k := range keys {
		names[i] = s.named(k)
	}
	view, err := l.viewBalances(context.Background(), time.Time{}, names...)
	if err != nil {
		return "", nil, time.Time{}, err
	}
	var out strings.Builder
	for i, k := range keys {
		b := view.Books[names[i]]
		asRead := *b
		books = append(books, &asRead)
		b.Start = b.Start.Add(s.ahead)
		if o := b.Overflow; o != nil {
			b.Overflow = &ledger.Overflow{Period: o.Period.Add(s.ahead), Units: o.Units}
		}
		if b.End.Before(period.Forever) {
			b.End = b.End.Add(s.ahead)
		}
		b.Plan = strings.TrimPrefix(b.Plan, s.tenant+"-")
		fmt.Fprintf(&out, "%v %s\n", k, model.DescribeBook(b))
	}
	return out.String(), books, view.Now.Add(s.ahead), nil
}
