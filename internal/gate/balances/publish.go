package balances

import (
	"context"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	// publishMax is the largest number of copies in one pipeline of four script calls.
	publishMax = 4 * redisCallMax

	// publishGap is the pause between two flushes. If no flush was made in this time, the cache publishes at once. A
	// busy cache makes at most 200 flushes per second, at any rate of debits. The pause delays the copies for other
	// instances by at most this time.
	publishGap = 5 * time.Millisecond

	// syncFor is the time in which a sync begins round trips for announcements. Then it has the same time for copies.
	// It is much less than blindAfter.
	syncFor = 100 * time.Millisecond

	// awayFor is the longest pause after a flush that failed. Each failure doubles the pause, which begins with
	// publishGap, because one late reply is no outage.
	awayFor = 500 * time.Millisecond

	// lastTries is the number of failures of Redis in a row after which a stopping cache gives up. A slow Redis still
	// receives all copies. A Redis that hangs delays a stop by about a second.
	lastTries = 10
)

// publishLoop runs in the publisher's goroutine. It ends after c.stop is closed.
func (c *Cache) publishLoop() {
	defer close(c.ended)
	pause := time.NewTimer(0)
	defer pause.Stop()
	learn := time.NewTicker(learnEvery)
	defer learn.Stop()
	gap := publishGap
	for {
		select {
		case <-c.stop:
			return
		case <-c.wake:
		case <-learn.C:
		}
		if err := c.sync(); err != nil {
			gap = min(2*gap, awayFor)
			c.wakePublisher() // some copies still wait
		} else {
			gap = publishGap
		}
		pause.Reset(gap)
		select {
		case <-c.stop:
			return
		case <-pause.C:
		}
	}
}

// sync exchanges announcements, if there are some or commits need them, and publishes the waiting copies. Both the
// exchange and the publication end after syncFor and continue at the next sync. So a long queue does not prevent this
// process from reading announcements. After a failed exchange, the next exchange waits for awayFor. Publication does
// not wait, because on a cluster another master may have the announcements.
func (c *Cache) sync() error {
	if now := time.Now(); !now.Before(c.exchangeDue) {
		if c.exchange() != nil {
			c.metrics.publishErrors.Inc()
			c.exchangeDue = now.Add(awayFor)
		}
	}
	if err := c.flush(context.Background(), time.Now().Add(syncFor)); err != nil {
		return err
	}
	c.flushParked(context.Background(), time.Now().Add(syncFor))
	return nil
}

// exchange announces the balances that checks of this process read, and reads the announcements of other instances. An
// instance that neither checks nor commits makes no call.
func (c *Cache) exchange() error {
	for until := time.Now().Add(syncFor); ; {
		now := time.Now()
		ids, cursor, due := c.interest.unsent(now)
		if !due {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), redisBudget)
		heard, cursor, err := c.redis.exchange(ctx, ids, cursor)
		cancel()
		now = time.Now()
		ledgerNow := now
		if c.cfg.Clock != nil {
			ledgerNow = c.cfg.Clock.Now()
		}
		c.interest.sent(ids, err == nil, now, ledgerNow)
		if err != nil {
			c.pending.add(c.interest.blind(now))
			return err
		}
		late := c.interest.learn(heard, cursor, len(heard) < noticesMax, now)
		c.pending.add(late)
		if now.After(until) {
			c.wakePublisher()
			return nil
		}
	}
}

// flush publishes the waiting copies. If until is not zero, it stops at that instant. If Redis does not take a batch,
// flush returns the error, and the copies of the batch wait again. A copy is dropped if a newer copy of the same
// balance already waits. On a cluster, flush parks only the copies that their master did not take, and continues with
// the other copies. In this case it returns the error only if until is zero.
func (c *Cache) flush(ctx context.Context, until time.Time) error {
	batch := make([]*ledger.BalanceCopy, 0, publishMax)
	for last := error(nil); ; {
		if !until.IsZero() && time.Now().After(until) {
			c.wakePublisher()
			return nil
		}
		batch = c.pending.take(publishMax, batch)
		if len(batch) == 0 {
			return last
		}
		if !until.IsZero() {
			batch = c.setAside(batch)
		}
		failed, err := c.put(ctx, batch)
		switch {
		case err == nil:
		case !c.redis.perTenant:
			c.pending.add(failed)
			return err
		default:
			c.park(failed)
			if until.IsZero() {
				last = err
			}
		}
	}
}

// flushLast publishes the waiting copies when the cache stops. It tries again while Redis fails.
func (c *Cache) flushLast(ctx context.Context) error {
	for tries := 1; ; tries++ {
		c.pending.add(c.parked.take(pendingMax, nil))
		waited := c.pending.len()
		err := c.flush(ctx, time.Time{})
		if err == nil || ctx.Err() != nil || tries == lastTries {
			return err
		}
		if c.pending.len()+c.parked.len() < waited {
			tries = 0
		}
		if !backoff.Sleep(ctx, publishGap) {
			return err
		}
	}
}

// setAside parks the copies for masters that are known to be down, and returns the other copies.
func (c *Cache) setAside(batch []*ledger.BalanceCopy) []*ledger.BalanceCopy {
	if !c.redis.perTenant || !c.redis.store.AnyAway() {
		return batch
	}
	var aside []*ledger.BalanceCopy
	rest := slices.DeleteFunc(batch, func(b *ledger.BalanceCopy) bool {
		away := c.redis.store.IsAway(redisKey(keyOf(b)))
		if away {
			aside = append(aside, b)
		}
		return away
	})
	c.park(aside)
	return rest
}

func (c *Cache) park(copies []*ledger.BalanceCopy) {
	if len(copies) == 0 {
		return
	}
	if c.parked.len() == 0 {
		c.parkedUntil = time.Now().Add(awayFor)
	}
	c.parked.add(copies)
}

// flushParked sends the parked copies again, at most once per awayFor. It sends them even if the circuit breaker of a
// master is open, because perhaps no other call tries that master.
func (c *Cache) flushParked(ctx context.Context, until time.Time) {
	if c.parked.len() == 0 || time.Now().Before(c.parkedUntil) {
		return
	}
	c.parkedUntil = time.Now().Add(awayFor)
	for c.parked.len() > 0 && time.Now().Before(until) {
		failed, err := c.put(ctx, c.parked.take(publishMax, nil))
		c.parked.add(failed)
		if err != nil {
			return
		}
	}
}

// put sends one batch. It returns the copies that were not written, and the error.
func (c *Cache) put(ctx context.Context, batch []*ledger.BalanceCopy) (failed []*ledger.BalanceCopy, err error) {
	if len(batch) == 0 {
		return nil, nil
	}
	within, cancel := context.WithTimeout(ctx, redisBudget)
	failed, refused, err := c.redis.put(within, batch)
	cancel()
	c.noteFlush(err, len(failed) < len(batch))
	c.metrics.published.Add(float64(len(batch) - len(failed) - refused))
	if refused > 0 {
		c.metrics.refused.Add(float64(refused))
		c.cfg.Log.Error("balance cache: the script refused copies", "copies", refused)
	}
	if err != nil {
		c.metrics.publishErrors.Inc()
	}
	return failed, err
}

// noteFlush records the outcome of a flush. It logs when Redis, or a part of Redis, stops answering or answers again.
func (c *Cache) noteFlush(err error, part bool) {
	c.mu.Lock()
	was := c.away
	c.away = err != nil || c.parked.len() > 0
	is := c.away
	c.mu.Unlock()
	switch {
	case err != nil && !was && part:
		c.cfg.Log.Warn("balance cache: a part of redis is away; its balances wait to be published", "error", err)
	case err != nil && !was:
		c.cfg.Log.Warn("balance cache: redis is away; balances wait to be published", "error", err)
	case !is && was:
		c.cfg.Log.Info("balance cache: redis is back")
	}
}
