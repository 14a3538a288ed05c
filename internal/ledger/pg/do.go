package pg

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/lane"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
)

// Option changes what Do does with an operation.
type Option func(treatment) treatment

// treatment says what Do does with an operation. The zero value means: carry it out.
type treatment struct {
	dryRun bool
	at     time.Time // instant of a dry run; zero: now
}

// DryRun returns an option. If dry is true, Do returns the answer that it would give now, and records nothing. Do
// then does not look up the operation's key.
func DryRun(dry bool) Option {
	return func(t treatment) treatment {
		t.dryRun = dry
		return t
	}
}

// DryRunAt is like DryRun(true), for a future instant, at most simulatedMax ahead. It assumes that until then only
// due events change the ledger: those of periods, grants, holds and terms. The zero time means now.
func DryRunAt(at time.Time) Option {
	return func(treatment) treatment { return treatment{dryRun: true, at: at} }
}

// simulatedMax bounds how far ahead the instant of a dry run may be: a year's period and some days.
const simulatedMax = 400 * 24 * time.Hour

// Do carries out the operation op, once per tenant and key, and returns its answer. A retry gets the stored answer
// with Replayed set. Errors are *errcode.Error; see errcode.Code for the meaning of each code.
func Do[R any](ctx context.Context, l *Ledger, op ledger.Request[R], options ...Option) (*R, error) {
	if err := op.Validate(); err != nil {
		return nil, err
	}
	var how treatment
	for _, option := range options {
		how = option(how)
	}
	c := ledger.NewCall(op)
	if how.dryRun {
		if err := l.simulateAt(ctx, c, how.at); err != nil {
			return nil, err
		}
	} else {
		if err := l.enqueue(ctx, l.laneOf(c.ID.Tenant), []*ledger.Call{c}); err != nil {
			return nil, l.countError(c.Kind, err)
		}
		l.count(c)
	}
	out, err := ledger.Answer[R](c)
	return out, l.OrArchived(ctx, c.ID.Tenant, err)
}

// simulateAt decides a call on a view, at a future instant. The zero time means now.
func (l *Ledger) simulateAt(ctx context.Context, c *ledger.Call, at time.Time) error {
	p := newPlan([]*ledger.Call{c})
	err := p.repeat(extraRounds, func() (ledger.Next, error) {
		b, err := l.view(ctx, p, time.Time{})
		if err != nil {
			return ledger.Next{}, err
		}
		if !at.IsZero() {
			if ahead := at.Sub(b.Now); ahead <= 0 || ahead > simulatedMax {
				return ledger.Next{}, errcode.Errorf(errcode.InvalidArgument, "at",
					"must lie in the next 400 days; it is %s now", b.Now.Format(time.RFC3339))
			}
			b.Now = period.Micros(at)
			if err := b.AdvanceInMemory(ctx.Err); err != nil {
				return ledger.Next{}, err
			}
		}
		return b.Decide(p.calls), nil
	})
	if err != nil {
		return uncomputable(err)
	}
	return nil
}

// extraRounds bounds how often a decision on a view may request more balances. A decision requests them at most once
// for subject caps and once for overflow meters.
const extraRounds = 4

// DebitOutcome is the answer to one debit of a batch.
type DebitOutcome struct {
	Result *ledger.DebitResult
	Err    error
}

// DebitBatch carries out at most ledger.BatchMax independent debits, each with its own key. It returns an outcome for
// each debit.
func (l *Ledger) DebitBatch(ctx context.Context, debits []*ledger.Debit) []DebitOutcome {
	out := make([]DebitOutcome, len(debits))
	groups := map[int][]int{} // by lane
	calls := make([]*ledger.Call, len(debits))
	for i, d := range debits {
		if err := d.Validate(); err != nil {
			out[i].Err = err
			continue
		}
		calls[i] = ledger.NewCall(d)
		ln := l.laneOf(d.Tenant)
		groups[ln] = append(groups[ln], i)
	}
	var wg sync.WaitGroup
	for ln, members := range groups {
		wg.Go(func() {
			group := make([]*ledger.Call, len(members))
			for j, i := range members {
				group[j] = calls[i]
			}
			err := l.enqueue(ctx, ln, group)
			for _, i := range members {
				if err != nil {
					out[i].Err = l.countError(ledger.KindDebit, err)
					continue
				}
				l.count(calls[i])
				out[i].Result, out[i].Err = ledger.Answer[ledger.DebitResult](calls[i])
			}
		})
	}
	wg.Wait()
	return out
}

// writerLane is a lane for operations. For each group it returns nil, or a function that waits for the group's parked
// calls.
type writerLane = lane.Lane[group, func(context.Context)]

// group has calls of one caller. All its calls belong to one lane.
type group struct {
	calls []*ledger.Call
	by    time.Time // deadline for the caller's answer
}

// laneOf returns the index of the tenant's lane. A tenant's operations are in one lane of this process, which saves
// lock waits. Correctness does not depend on it. On Citus all tenants of a shard group have one lane.
func (l *Ledger) laneOf(tenant string) int {
	if l.cluster != nil {
		return l.cluster.Groups.Of(tenant) % len(l.lanes)
	}
	return int(maphash.String(l.seed, tenant) % uint64(l.inUse.Load()))
}

// shareLanes divides the lanes among the instances. With twice as many lanes, each transaction has half as many
// debits. Most of a transaction's cost does not depend on the number of debits: see docs/decisions/debit-speed.md.
func (l *Ledger) shareLanes() {
	n := l.cfg.Lanes
	if l.share {
		n = max(1, n/max(1, l.cfg.Instances()))
	}
	l.inUse.Store(int32(n))
}

// enqueue puts a group of calls of one lane into the lane's queue, and waits for their answers. The answers come from
// the lane, or from the queue of parked calls. It returns within limits.answer, or at ctx's deadline if that is
// earlier. After an error the calls have no answer and must not be read: the lane may still be working on them.
func (l *Ledger) enqueue(ctx context.Context, ln int, calls []*ledger.Call) error {
	if cause := l.breaker.Cause(); cause != nil {
		return l.refuseCaller(reasonAway, cause, len(calls))
	}
	askedBy(auditlog.From(ctx), calls)
	now := time.Now()
	by := now.Add(l.limits.answer)
	// A request that has waited elsewhere has less time left. Its deadline then ends the whole batch, but a batch takes
	// that long only while PostgreSQL hangs.
	if end, ok := ctx.Deadline(); ok && end.Before(by) {
		by = end
	}
	wait, err := l.lanes[ln].DoWithin(ctx, now.Add(l.limits.queue), group{calls, by})
	switch {
	case err == nil && wait != nil:
		wait(ctx)
		return nil
	case err == nil:
		return nil
	case errors.Is(err, lane.ErrFull):
		return l.refuseCaller(reasonFull, err, len(calls))
	case errors.Is(err, lane.ErrUnfinished), errors.Is(err, lane.ErrPanicked), errors.Is(err, lane.ErrAnswers):
		return l.refuseCaller(reasonUnknown, err, len(calls))
	case errors.Is(err, lane.ErrStopped):
		return l.refuseCaller(reasonStopping, err, len(calls))
	case errors.Is(err, lane.ErrLate):
		return l.refuseCaller(reasonLate, err, len(calls))
	default:
		return l.refuseCaller(reasonCancelled, err, len(calls))
	}
}

// askedBy stores in calls who requested them. Audited calls of an administrator get a copy of the whole actor, for the
// audit log. It is a copy because the calls may outlive the request.
func askedBy(actor *auditlog.Actor, calls []*ledger.Call) {
	for _, c := range calls {
		if c.Actor = actor.KeyID; actor.Admin && audited(c.Kind) {
			c.Origin = new(*actor)
		}
	}
}

// refuseCaller returns the refusal of a caller's calls, and counts them.
func (l *Ledger) refuseCaller(r reason, cause error, calls int) error {
	l.metrics.refused.WithLabelValues(string(r)).Add(float64(calls))
	return refusal(r, cause)
}

// weigh returns the number of operations that a group adds to a batch.
func weigh(g group) int { return len(g.calls) }

// runQueued is a lane's worker: it runs the calls of groups as a batch. The batch ends at the earliest deadline of
// the groups. It returns a function for each group that has parked calls, which waits for their answers.
func (l *Ledger) runQueued(ctx context.Context, groups []group) []func(context.Context) {
	// The calls of all groups, and the earliest of their deadlines.
	calls := groups[0].calls
	by := groups[0].by
	if len(groups) > 1 {
		calls = make([]*ledger.Call, 0, len(groups))
		for _, g := range groups {
			calls = append(calls, g.calls...)
			if g.by.Before(by) {
				by = g.by
			}
		}
	}
	// While PostgreSQL is known to be away, no attempt is made.
	if cause := l.breaker.Cause(); cause != nil {
		l.refuseAll(calls, false, reasonAway, cause)
		return make([]func(context.Context), len(groups))
	}
	ctx, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	defer time.AfterFunc(slowAttempt, l.breaker.Suspect).Stop()
	// Calls whose balances are known to be locked are parked without an attempt.
	p := newPlan(calls)
	if l.lockWait.inUse.Load() {
		p = l.lockWait.filterRunnable(p)
	}
	l.runBatches(ctx, p)
	if len(p.parked) == 0 {
		return make([]func(context.Context), len(groups))
	}
	return l.lockWait.add(groups, p.parked)
}

// count counts an answered call.
func (l *Ledger) count(c *ledger.Call) {
	outcome := "ok"
	switch {
	case c.Err != nil:
		outcome = string(errcode.Of(c.Err))
	case c.Replayed:
		outcome = "replayed"
	}
	l.metrics.decided.WithLabelValues(string(c.Kind), outcome).Inc()
}

// countError counts a call that was not answered, and returns err.
func (l *Ledger) countError(kind ledger.Kind, err error) error {
	l.metrics.decided.WithLabelValues(string(kind), string(errcode.Of(err))).Inc()
	return err
}
