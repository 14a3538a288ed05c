package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/lane"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

var (
	// errBackend marks everything that makes the rules' OnBackendError decide.
	errBackend = errors.New("ratelimit: redis did not decide")

	// errRefused says that the shard's breaker is open: nothing was sent.
	errRefused = fmt.Errorf("%w: the breaker is open", errBackend)

	// errMoving says that a request's slot is between two nodes of a cluster, errUnserved that no node has it. Nothing ran.
	// The node that says so is well: it does not count for its breaker.
	errMoving   = fmt.Errorf("%w: the slot is moving", errBackend)
	errUnserved = fmt.Errorf("%w: no node has the slot", errBackend)

	// errScript marks a refusal of the script's arguments or a reply that cannot be read: a bug, not an outage.
	errScript = errors.New("ratelimit: script")

	// errCorrupt says that a stored value is not a bucket. Redis itself is well: it does not count for the breaker.
	errCorrupt = fmt.Errorf("%w: a stored value is not a bucket", errBackend)

	// errStale says that Redis' clock was in another window than it was sent, twice in a row: it jumps.
	errStale = fmt.Errorf("%w: the window was another one twice", errBackend)
)

// degraded decides without Redis, by the rules' policies. Closed wins: if one enforced rule cannot be decided, nothing is
// charged anywhere.
func (l *Limiter) degraded(q *query) (Decision, error) {
	shared := query{op: q.op, tenant: q.tenant}
	for _, c := range q.charges {
		switch policy := c.rule.OnBackendError; {
		case policy == rule.BackendLocalShare:
			shared.charges = append(shared.charges, c)
		case policy == rule.BackendClosed && !c.rule.Shadow:
			l.metrics.decisions.WithLabelValues(c.rule.ID, c.rule.Kind.String(), "error", ModeLocal.String()).Inc()
			l.metrics.degradedRules.note(c.rule.ID, true, ModeLocal)
			return Decision{}, fmt.Errorf("%w: rule %s is closed without Redis", ErrUnavailable, c.rule.ID)
		}
	}
	replicas := l.cfg.Replicas()
	local := decision(&shared, l.levels.decide(&shared, l.ticker.micros(), replicas), replicas, ModeLocal)

	d := Decision{Allowed: local.Allowed, Mode: ModeLocal, Degraded: true, Verdicts: make([]Verdict, len(q.charges))}
	next := 0
	for i, c := range q.charges {
		if c.rule.OnBackendError == rule.BackendLocalShare {
			d.Verdicts[i] = local.Verdicts[next]
			next++
			continue
		}
		d.Verdicts[i] = Verdict{Rule: c.rule, Allowed: true, Unknown: true, Shadow: c.rule.Shadow, Mode: ModeLocal}
	}
	return d, nil
}

// decision turns an answer into a Decision. The rules were decided on this process' shares of them.
func decision(q *query, a answer, replicas *Replicas, mode Mode) Decision {
	d := Decision{Allowed: a.allowed, Mode: mode, Verdicts: make([]Verdict, len(q.charges)), Reads: a.reads}
	for i := range q.charges {
		c := &q.charges[i]
		own := int64(0)
		if q.op == rule.Consume && a.allowed && a.rows[i].code == rule.Pass {
			own = c.cost
		}
		d.Verdicts[i] = verdictOf(c, replicas.LimitOf(c.rule, c.key), a.rows[i], own)
		d.Verdicts[i].Mode = mode
	}
	return d
}

// verdictOf is what a row means. own is what the request itself has charged.
func verdictOf(c *charge, l rule.Limit, r row, own int64) Verdict {
	v := Verdict{Rule: c.rule, Shadow: c.rule.Shadow, Limit: l.Capacity(), at: r.st.Now + r.st.Ahead}
	if r.code == rule.Corrupt {
		v.Allowed, v.Unknown, v.Limit = true, true, 0
		return v
	}
	v.Remaining = l.Remaining(r.st)
	v.Reset = l.Wait(r.st, l.Capacity())
	if v.Remaining < l.Capacity() {
		v.Next = l.Wait(r.st, v.Remaining+1)
	}
	switch {
	case r.code == rule.Pass:
		v.Allowed, v.Delay = true, l.Delay(r.st, own)
	case r.code == rule.Never:
		v.Never = true
	case c.cost > l.Capacity(): // beyond this replica's share: only Redis can say
		v.RetryAfter = max(v.Reset, breakerOpen)
	default:
		v.RetryAfter = l.Wait(r.st, c.cost)
	}
	return v
}

// The causes of decisions that Redis did not make, as metrics name them.
const (
	causeRedis        = "redis"
	causeBreakerOpen  = "breaker_open"
	causeSlotMoving   = "slot_moving"
	causeSlotUnserved = "slot_unserved"
	causeStaleWindow  = "stale_window"
	causeQueueSlow    = "queue_slow"
	causeQueueFull    = "queue_full"
)

func failureCauses() []string {
	return []string{causeRedis, causeBreakerOpen, causeSlotMoving, causeSlotUnserved, causeStaleWindow, causeQueueSlow, causeQueueFull}
}

// translate turns an error of the lane or of its work into one that callers know.
func (l *Limiter) translate(ctx context.Context, err error) error {
	var cause string
	switch {
	case errors.Is(err, errRefused):
		cause = causeBreakerOpen
	case errors.Is(err, errMoving):
		cause = causeSlotMoving
	case errors.Is(err, errUnserved):
		cause = causeSlotUnserved
	case errors.Is(err, errStale):
		cause = causeStaleWindow
	case errors.Is(err, errBackend):
		cause = causeRedis
	case errors.Is(err, errScript):
		return err
	case ended(ctx) != nil:
		return ended(ctx)
	case errors.Is(err, lane.ErrLate):
		cause = causeQueueSlow
	case errors.Is(err, lane.ErrFull):
		cause = causeQueueFull
	case errors.Is(err, lane.ErrUnfinished):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case errors.Is(err, lane.ErrStopped):
		return ErrStopped
	default:
		return fmt.Errorf("ratelimit: %w", err)
	}
	l.metrics.failures.WithLabelValues(cause).Inc()
	if errors.Is(err, errBackend) {
		return err
	}
	return fmt.Errorf("%w: %w", errBackend, err)
}

// ended is why ctx is over, nil if it is not. Its deadline counts also before its timer has been served.
func ended(ctx context.Context) error {
	if own, ok := ctx.Deadline(); ok && ctx.Err() == nil && time.Until(own) <= 0 {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

func probeOutcome(err error) probe {
	switch {
	case err == nil, errors.Is(err, errScript), errors.Is(err, errCorrupt):
		return probePassed
	case blamesShard(err):
		return probeFailed
	case errors.Is(err, errBackend):
		return probePassed
	default:
		return probeUndecided
	}
}

// blamesShard reports whether err says that the shard itself does not decide, and not only one slot or bucket of it.
func blamesShard(err error) bool {
	return errors.Is(err, errBackend) && !errors.Is(err, errMoving) && !errors.Is(err, errUnserved) && !errors.Is(err, errStale) &&
		!errors.Is(err, errCorrupt)
}

// notDecided says why a script did not run, in terms that match errBackend.
func notDecided(err error) error {
	switch {
	case isMoving(err):
		return fmt.Errorf("%w: %w", errMoving, err)
	case isUnserved(err):
		return fmt.Errorf("%w: %w", errUnserved, err)
	case refusesWrites(err):
		return fmt.Errorf("%w: %w", errReadOnly, err)
	default:
		return fmt.Errorf("%w: %w", errBackend, err)
	}
}

// checkCorrupt returns errCorrupt if an enforced rule's stored value is not a bucket. It counts those of shadow rules too,
// and logs one once in a while.
func (l *Limiter) checkCorrupt(q *query, a answer) error {
	var err error
	for i, r := range a.rows {
		if r.code != rule.Corrupt {
			continue
		}
		l.metrics.corrupt.Inc()
		now, last := l.ticker.micros(), l.corruptLog.Load()
		if (last == 0 || now-last >= corruptLogEvery.Microseconds()) && l.corruptLog.CompareAndSwap(last, now) {
			l.cfg.Log.Error("a stored value is not a bucket: it is left alone, and the rule decides as if redis were away",
				"key", q.charges[i].key)
		}
		if !q.charges[i].rule.Shadow {
			err = errCorrupt
		}
	}
	return err
}

// isRefusal reports whether the script itself said no. It had written nothing.
func isRefusal(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && redis.HasErrorPrefix(reply, "ERR limits:")
}

// noteShard is called by a shard's breaker, once per change.
func (l *Limiter) noteShard(sh *shard, open bool, err error) {
	if open {
		l.metrics.shardAway.WithLabelValues(sh.name).Set(1)
		l.metrics.degraded.Set(1)
		l.away.Add(1)
		l.cfg.Log.Error("redis is away: limits are decided locally", "shard", sh.name, "error", err)
		return
	}
	l.metrics.shardAway.WithLabelValues(sh.name).Set(0)
	if l.away.Add(-1) == 0 {
		l.metrics.degraded.Set(0)
		l.metrics.degradedRules.recovered()
	}
	l.cfg.Log.Info("redis is back: limits are decided there", "shard", sh.name)
}
