package pg

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/lane"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
)

// Do makes the operation op, once per tenant and key, and returns its answer. A retry gets the stored answer with Replayed set.
// Errors are *ledger.Error; see ledger.Code for what each promises.
func Do[R any](ctx context.Context, l *Ledger, op ledger.Request[R]) (*R, error) {
	if err := op.Validate(); err != nil {
		return nil, err
	}
	c := ledger.NewCall(op)
	if err := l.submit(ctx, l.laneOf(c.ID.Tenant), []*ledger.Call{c}); err != nil {
		return nil, l.countError(c.Kind, err)
	}
	l.count(c)
	out, err := ledger.Answer[R](c)
	if err != nil {
		err = l.OrArchived(ctx, c.ID.Tenant, err)
	}
	return out, err
}

// DryRun returns what Do would answer now and records nothing. It does not look up the key.
func DryRun[R any](ctx context.Context, l *Ledger, op ledger.Request[R]) (*R, error) {
	return Foresee(ctx, l, op, time.Time{})
}

// foreseenMax bounds how far ahead an operation is foreseen: a year's period and some days.
const foreseenMax = 400 * 24 * time.Hour

// Foresee is DryRun at an instant at that is to come, at most 400 days ahead, if nothing changes until then but what is due: periods, grants, holds, terms. Zero means
// now.
func Foresee[R any](ctx context.Context, l *Ledger, op ledger.Request[R], at time.Time) (*R, error) {
	if err := op.Validate(); err != nil {
		return nil, err
	}
	c := ledger.NewCall(op)
	p := newPlan([]*ledger.Call{c})
	err := p.repeat(extraRounds, func() (ledger.Next, error) {
		b, err := l.view(ctx, p, time.Time{})
		if err != nil {
			return ledger.Next{}, err
		}
		if !at.IsZero() {
			if ahead := at.Sub(b.Now); ahead <= 0 || ahead > foreseenMax {
				return ledger.Next{}, ledger.Errorf(ledger.CodeInvalidArgument, "at", "must lie in the next 400 days; it is %s now", b.Now.Format(time.RFC3339))
			}
			b.Now = period.Micros(at)
			if err := b.AdvanceInMemory(ctx.Err); err != nil {
				return ledger.Next{}, err
			}
		}
		return b.Decide(p.calls), nil
	})
	if err != nil {
		return nil, uncomputable(err)
	}
	out, err := ledger.Answer[R](c)
	return out, l.OrArchived(ctx, c.ID.Tenant, err)
}

// DoOrDryRun is DryRun if dryRun is true, else Do.
func DoOrDryRun[R any](ctx context.Context, l *Ledger, op ledger.Request[R], dryRun bool) (*R, error) {
	if dryRun {
		return DryRun(ctx, l, op)
	}
	return Do(ctx, l, op)
}

// extraRounds bounds how often a decision on a view may ask for more balances: subject caps once, overflow meters once.
const extraRounds = 4

// DebitOutcome is the answer to one debit of a batch.
type DebitOutcome struct {
	Result *ledger.DebitResult
	Err    error
}

// DebitBatch makes independent debits, each with its own key, and answers each. At most ledger.BatchMax.
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
			err := l.submit(ctx, ln, group)
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

// writerLane is a lane for operations. It answers nil, or a function that waits for calls on the shelf.
type writerLane = lane.Lane[group, func(context.Context)]

// group is the calls of one caller, all of one lane.
type group struct {
	calls []*ledger.Call
	by    time.Time // when the caller has to be answered
}

// laneOf returns the index of the tenant's lane. A tenant's operations are in one lane of this process, which saves lock waits. Correctness
// does not depend on it. On Citus all tenants of a shard group have one lane.
func (l *Ledger) laneOf(tenant string) int {
	if l.cluster != nil {
		return l.cluster.Groups.Of(tenant) % len(l.lanes)
	}
	return int(maphash.String(l.seed, tenant) % uint64(l.inUse.Load()))
}

// shareLanes divides the lanes among the instances. With twice as many lanes each transaction has half as many debits, and most of its cost is
// its own: docs/decisions/debit-speed.md.
func (l *Ledger) shareLanes() {
	n := l.cfg.Lanes
	if l.share {
		n = max(1, n/max(1, l.cfg.Instances()))
	}
	l.inUse.Store(int32(n))
}

// submit sends a group of calls of one lane through it, and waits where their balances are locked. It returns within answerWithin, and when ctx's
// deadline comes, if that is earlier. After an
// error the calls carry no answer and must not be read: the lane may still be working on them.
func (l *Ledger) submit(ctx context.Context, ln int, calls []*ledger.Call) error {
	if cause := l.breaker.Cause(); cause != nil {
		return l.refuseCaller(reasonAway, cause, len(calls))
	}
	askedBy(auditlog.From(ctx), calls)
	now := time.Now()
	by := now.Add(l.answerWithin)
	// A request that has waited elsewhere has less time left. Its batch ends with it: this happens only while PostgreSQL hangs.
	if end, ok := ctx.Deadline(); ok && end.Before(by) {
		by = end
	}
	wait, err := l.lanes[ln].DoWithin(ctx, now.Add(queueMax), group{calls, by})
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

// askedBy notes who asks for calls. For the audit log those of administrators keep the whole actor: a copy, because they may outlive the request.
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

// weigh returns how many operations of a batch a group is.
func weigh(g group) int { return len(g.calls) }

// process is a lane's worker. It ends when the first of the groups has to be answered.
func (l *Ledger) process(ctx context.Context, groups []group) []func(context.Context) {
	calls, by := groups[0].calls, groups[0].by
	if len(groups) > 1 {
		calls = make([]*ledger.Call, 0, len(groups))
		for _, g := range groups {
			calls = append(calls, g.calls...)
			if g.by.Before(by) {
				by = g.by
			}
		}
	}
	if cause := l.breaker.Cause(); cause != nil {
		l.refuseAll(calls, false, reasonAway, cause)
		return make([]func(context.Context), len(groups))
	}
	ctx, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	defer time.AfterFunc(slowAttempt, l.breaker.Suspect).Stop()
	p := newPlan(calls)
	if l.shelf.inUse.Load() {
		p = l.shelf.sift(p)
	}
	l.runGroups(ctx, p)
	if len(p.held) == 0 {
		return make([]func(context.Context), len(groups))
	}
	return l.shelf.add(groups, p.held)
}

// count counts an answered call.
func (l *Ledger) count(c *ledger.Call) {
	outcome := "ok"
	switch {
	case c.Err != nil:
		outcome = string(ledger.CodeOf(c.Err))
	case c.Replayed:
		outcome = "replayed"
	}
	l.metrics.decided.WithLabelValues(string(c.Kind), outcome).Inc()
}

// countError counts a call that was not answered, and returns err.
func (l *Ledger) countError(kind ledger.Kind, err error) error {
	l.metrics.decided.WithLabelValues(string(kind), string(ledger.CodeOf(err))).Inc()
	return err
}
