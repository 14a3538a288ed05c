package balances

import (
	"context"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	// publishMax is the number of copies in one pipeline: four script calls.
	publishMax = 4 * redisCallMax

	// publishGap is the pause between two flushes. An idle cache publishes at once. A busy one sends at most 200 flushes per
	// second, whatever the rate of debits; other instances see a balance at most this much later.
	publishGap = 5 * time.Millisecond

	// awayFor is the pause after a flush that failed.
	awayFor = 500 * time.Millisecond
)

// publishLoop is the publisher's goroutine. It ends after close(c.stop).
func (c *Cache) publishLoop() {
	defer close(c.ended)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-c.wake:
		}
		gap := publishGap
		ctx, cancel := context.WithTimeout(context.Background(), redisBudget)
		if err := c.flush(ctx); err != nil {
			gap = awayFor
			c.wakePublisher() // some copies still wait
		}
		cancel()
		pause.Reset(gap)
		select {
		case <-c.stop:
			return
		case <-pause.C:
		}
	}
}

// wakePublisher makes the publisher flush soon. It does not wait.
func (c *Cache) wakePublisher() {
	select {
	case c.wake <- struct{}{}:
	default: // it is already awake
	}
}

// flush publishes all copies that wait. After an error the unpublished ones wait again, except where a newer copy of the same
// balance waits already.
func (c *Cache) flush(ctx context.Context) error {
	batch := make([]*ledger.BalanceCopy, 0, publishMax)
	for {
		batch = c.pending.take(publishMax, batch)
		if len(batch) == 0 {
			return nil
		}
		failed, refused, err := c.redis.put(ctx, batch)
		c.noteFlush(err)
		c.metrics.published.Add(float64(len(batch) - len(failed) - refused))
		if refused > 0 {
			c.metrics.refused.Add(float64(refused))
			c.cfg.Log.Error("balance cache: the script refused copies", "copies", refused)
		}
		if err != nil {
			c.metrics.publishErrors.Inc()
			c.pending.add(failed)
			return err
		}
	}
}

// noteFlush records the outcome of a flush, and logs when Redis goes away or comes back.
func (c *Cache) noteFlush(err error) {
	c.mu.Lock()
	was := c.away
	c.away = err != nil
	c.mu.Unlock()
	switch {
	case err != nil && !was:
		c.cfg.Log.Warn("balance cache: redis is away; balances wait to be published", "error", err)
	case err == nil && was:
		c.cfg.Log.Info("balance cache: redis is back")
	}
}
