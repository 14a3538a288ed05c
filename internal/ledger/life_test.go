package ledger

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/period"
)

// life is one tenant of a service program: what clients ask of the fleet on its behalf, and the models that explain every answer
// so far.
//
// PostgreSQL's clock cannot be set, so what is stored is moved into the past instead. The model's time is PostgreSQL's plus
// ahead, which grows by as much.
type life struct {
	*program
	fleet  *fleet
	late   sync.WaitGroup // what members are asked, answered or not
	db     *pgx.Conn      // beside the fleet, and not through its proxies
	tenant string
	ahead  time.Duration
	able   []*model
	stamps atomic.Int64 // orders what clients see of each other
	past   []moment
	seed   maphash.Seed
	log    []string
	steps  int
}

// moment is what was read at an instant.
type moment struct {
	at      time.Time // the model's
	k       key
	figures string
}

// live signs up a new tenant, as start does in memory.
func live(t *rapid.T, db *pgx.Conn, tenant string, f *fleet) (*life, error) {
	s := &life{program: start(t), fleet: f, db: db, tenant: tenant, seed: maphash.MakeSeed()}
	now, err := s.clock()
	if err != nil {
		return nil, err
	}
	s.ahead = s.now.Sub(now)
	s.able = []*model{s.model}
	first := s.memory.history[0]
	return s, s.atomically(func(b *pgx.Batch) {
		for plan := range s.memory.plans {
			s.writeVersion(b, plan)
		}
		b.Queue("INSERT INTO tenants (tenant_id, plan, anchor, timezone, created_at) VALUES ($1, $2, $3, 'UTC', $4)",
			tenant, s.planName(first.plan), s.stored(first.anchorAt), s.stored(first.since))
		b.Queue("INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, initial) VALUES ($1, $2, $3, $4, 'UTC', true)",
			tenant, s.stored(first.since), s.planName(first.plan), s.stored(first.anchorAt))
	})
}

// clock asks PostgreSQL.
func (s *life) clock() (now time.Time, err error) {
	err = s.db.QueryRow(context.Background(), "SELECT clock_timestamp()").Scan(&now)
	return now.UTC(), err
}

// look sets the model's time to what it is.
func (s *life) look() error {
	now, err := s.clock()
	if err != nil {
		return err
	}
	s.now = now.Add(s.ahead)
	for _, m := range s.able {
		m.now = s.now
	}
	return nil
}

// stored is an instant of the model as PostgreSQL knows it.
func (s *life) stored(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-s.ahead)
}

// atomically makes changes that the instances see together or not at all: other programs' rolls take in this tenant, too. It holds
// the balances, so that no batch and no roll goes on with what was there before. The model's time is looked up under those locks.
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

// rewindTenant moves everything that is stored of tenant $1 into the past by $2. A balance that was made and not opened, because the
// instance was killed in between, has no instants yet.
var rewindTenant = []string{
	`UPDATE balances SET period_start = period_start - $2::interval, updated_at = updated_at - $2::interval,
		period_end = CASE WHEN period_end < '9999-01-01' THEN period_end - $2::interval ELSE period_end END,
		next_event_at = CASE WHEN next_event_at < '9999-01-01' THEN next_event_at - $2::interval ELSE next_event_at END
		WHERE tenant_id = $1 AND period_start > 'epoch'`,
	`UPDATE periods SET period_start = period_start - $2::interval, period_end = period_end - $2::interval,
		closed_at = closed_at - $2::interval WHERE tenant_id = $1`,
	`UPDATE grants SET effective_at = effective_at - $2::interval,
		expires_at = CASE WHEN expires_at < '9999-01-01' THEN expires_at - $2::interval ELSE expires_at END WHERE tenant_id = $1`,
	`UPDATE entries SET period_start = period_start - $2::interval, created_at = created_at - $2::interval,
		effective_at = effective_at - $2::interval WHERE tenant_id = $1`,
	`UPDATE holds SET created_at = created_at - $2::interval, expires_at = expires_at - $2::interval WHERE tenant_id = $1`,
	`UPDATE hold_lines SET expires_at = expires_at - $2::interval WHERE tenant_id = $1`,
	`UPDATE tenants SET anchor = anchor - $2::interval WHERE tenant_id = $1`,
	`UPDATE tenant_terms SET effective_at = effective_at - $2::interval, anchor = anchor - $2::interval WHERE tenant_id = $1`,
}

// rewind lets time go by. The odd microsecond keeps the ids of allowances, which name their period's start, from coming again.
func (s *life) rewind(by time.Duration) error {
	by = by.Truncate(time.Second) + time.Microsecond
	err := s.atomically(func(b *pgx.Batch) {
		for _, sql := range rewindTenant {
			b.Queue(sql, s.tenant, by)
		}
		b.Queue("UPDATE plans SET created_at = created_at - $2::interval WHERE plan = ANY($1)", []string{s.planName("small"), s.planName("large")}, by)
	})
	s.ahead += by
	s.logf("%s goes by", by)
	// A retry sends the instants it sent before, which mean others now.
	s.sent = slices.DeleteFunc(s.sent, func(r sent) bool {
		g, ok := r.call().req.(*Grant)
		return ok && !(g.EffectiveAt.IsZero() && g.ExpiresAt.IsZero())
	})
	return err
}

func (s *life) planName(plan string) string { return s.tenant + "-" + plan }

// writeVersion writes the newest version of a plan into the catalogue.
func (s *life) writeVersion(b *pgx.Batch, plan string) {
	versions := s.memory.plans[plan]
	v := versions[len(versions)-1]
	b.Queue("INSERT INTO plans (plan, version, created_at) VALUES ($1, $2, $3)", s.planName(plan), v.version, s.stored(v.createdAt))
	for meter, a := range v.allowances {
		var policy, atEnd, overflow *string
		var price *int64
		if a.overageAllowed {
			policy = new("allow")
		}
		if a.overagePreserved {
			atEnd = new("preserve")
		}
		if a.overflowMeter != "" {
			overflow, price = &a.overflowMeter, &a.overflowPrice
		}
		b.Queue(`INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor, rollover_min, rollover_max,
			overage_policy, overage_cap, overflow_meter, overflow_price, per_subject, overage_at_period_end)
			VALUES ($1, $2, $3, 0, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
			s.planName(plan), v.version, meter, a.amount, string(a.every), string(a.anchor), a.rolloverMin, a.rolloverMax,
			policy, a.overageCap, overflow, price, a.perSubject, atEnd)
	}
}

func (s *life) newVersion(plan string, meters map[string]modelTerms) error {
	return s.atomically(func(b *pgx.Batch) {
		s.publish(plan, meters, s.now)
		s.writeVersion(b, plan)
		s.logf("a new version of plan %s: %+v", plan, meters)
	})
}

func (s *life) newPlan(plan string, now, prorate bool) error {
	return s.atomically(func(b *pgx.Batch) {
		s.changePlan(plan, now, prorate)
		for _, m := range s.able {
			m.changes = s.model.changes
		}
		at := s.stored(s.now)
		b.Queue(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, immediate, prorate)
			SELECT tenant_id, $2, $3, anchor, timezone, $4, $5 FROM tenants WHERE tenant_id = $1`, s.tenant, at, s.planName(plan), now, prorate)
		if now {
			b.Queue("UPDATE balances SET next_event_at = least(next_event_at, $2) WHERE tenant_id = $1", s.tenant, at)
		}
		s.logf("plan %s now: %v prorated: %v", plan, now, prorate)
	})
}

func (s *life) suspend(suspended bool) {
	for _, m := range s.able {
		m.suspended = suspended
	}
	s.logf("suspended: %v", suspended)
}

func (s *life) logf(format string, args ...any) {
	s.log = append(s.log, s.now.Format("15:04:05.000000 ")+fmt.Sprintf(format, args...))
}

// send makes c's request of l and sets its answer. It returns when the request was decided, zero when that was not said.
func (s *life) send(l *Ledger, c *call) (decided time.Time) {
	ctx := context.Background()
	switch r := c.req.(type) {
	case *Debit:
		out, err := l.Debit(ctx, r)
		return took(c, out, err, func(r *DebitResult) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *Grant:
		out, err := l.Grant(ctx, r)
		return took(c, out, err, func(r *GrantResult) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *Hold:
		out, err := l.Hold(ctx, r)
		return took(c, out, err, func(r *HoldResult) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *HoldChange:
		out, err := l.ChangeHold(ctx, r)
		return took(c, out, err, func(r *HoldResult) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *Refund:
		out, err := l.Refund(ctx, r)
		return took(c, out, err, func(r *RefundResult) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *Adjust:
		out, err := l.Adjust(ctx, r)
		return took(c, out, err, func(r *Change) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *Void:
		out, err := l.Void(ctx, r)
		return took(c, out, err, func(r *Change) (time.Time, bool) { return r.AsOf, r.Replayed })
	}
	panic(fmt.Sprintf("unknown request %T", c.req))
}

// try asks what c would be answered, and sets that answer.
func (s *life) try(l *Ledger, c *call) (decided time.Time) {
	ctx := context.Background()
	switch r := c.req.(type) {
	case *Debit:
		out, err := l.DryRunDebit(ctx, r)
		return took(c, out, err, func(r *DebitResult) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *Grant:
		out, err := l.DryRunGrant(ctx, r)
		return took(c, out, err, func(r *GrantResult) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *Hold:
		out, err := l.DryRunHold(ctx, r)
		return took(c, out, err, func(r *HoldResult) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *HoldChange:
		out, err := l.DryRunChangeHold(ctx, r)
		return took(c, out, err, func(r *HoldResult) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *Refund:
		out, err := l.DryRunRefund(ctx, r)
		return took(c, out, err, func(r *RefundResult) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *Adjust:
		out, err := l.DryRunAdjust(ctx, r)
		return took(c, out, err, func(r *Change) (time.Time, bool) { return r.AsOf, r.Replayed })
	case *Void:
		out, err := l.DryRunVoid(ctx, r)
		return took(c, out, err, func(r *Change) (time.Time, bool) { return r.AsOf, r.Replayed })
	}
	panic(fmt.Sprintf("unknown request %T", c.req))
}

// prepared is a request as this tenant's clients send it.
func (s *life) prepared(r *sent) *call {
	c := r.call()
	suspend(c, s.able[0].suspended)
	switch r := c.req.(type) {
	case *Debit:
		r.Tenant = s.tenant
	case *Grant:
		r.Tenant, r.EffectiveAt, r.ExpiresAt = s.tenant, s.stored(r.EffectiveAt), s.stored(r.ExpiresAt)
	case *Hold:
		r.Tenant = s.tenant
	case *HoldChange:
		r.Tenant = s.tenant
	case *Refund:
		r.Tenant = s.tenant
	case *Adjust:
		r.Tenant = s.tenant
	case *Void:
		r.Tenant = s.tenant
	}
	return c
}

func took[R any](c *call, out *R, err error, when func(*R) (time.Time, bool)) (at time.Time) {
	if err == nil {
		c.result = out
		at, c.replayed = when(out)
		return at
	}
	c.err = err
	if e, ok := errors.AsType[*Error](err); ok {
		c.replayed = e.Replayed
		return e.AsOf
	}
	return time.Time{}
}

// figures is what there is to read of a balance at an instant.
func figures(n [9]int64) string {
	return fmt.Sprintf("opening %d granted %d refunded %d used %d expired %d adjusted %d overage %d held %d remaining %d",
		n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8])
}

// read describes balances as an instance sees them at one instant.
func (s *life) read(l *Ledger, keys []key) (text string, books []*book, now time.Time, err error) {
	names := make([]key, len(keys))
	for i, k := range keys {
		names[i] = key{s.tenant, k.Meter, k.Subject}
	}
	view, err := l.view(context.Background(), names)
	if err != nil {
		return "", nil, time.Time{}, err
	}
	var out strings.Builder
	for i, k := range keys {
		b := view.books[names[i]]
		books = append(books, b.clone())
		b.start = b.start.Add(s.ahead)
		if b.end.Before(period.Forever) {
			b.end = b.end.Add(s.ahead)
		}
		b.plan = strings.TrimPrefix(b.plan, s.tenant+"-")
		fmt.Fprintf(&out, "%v %s\n", k, describeBook(b))
	}
	return out.String(), books, view.now.Add(s.ahead), nil
}

func (m *model) read(keys []key) string {
	var out strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&out, "%v %s\n", k, m.describe(k))
	}
	return out.String()
}
