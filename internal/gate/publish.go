package gate

import (
	"context"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// publishLoop is the publisher's goroutine.
func (c *BalanceCache) publishLoop() {
	defer close(c.ended)
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-c.wake:
		}
		pause := publishGap
		ctx, cancel := context.WithTimeout(context.Background(), redisBudget)
		if err := c.flush(ctx); err != nil {
			pause = awayFor
			select { // come back for what is left
			case c.wake <- struct{}{}:
			default:
			}
		}
		cancel()
		rest.Reset(pause)
		select {
		case <-c.stop:
			return
		case <-rest.C:
		}
	}
}

// flush publishes everything that waits. After an error what could not be published waits again, unless a newer copy of the
// same balance has taken its place.
func (c *BalanceCache) flush(ctx context.Context) error {
	batch := make([]*ledger.BalanceCopy, 0, publishMax)
	for {
		batch = c.pending.take(publishMax, batch)
		if len(batch) == 0 {
			return nil
		}
		failed, refused, err := c.redis.put(ctx, batch)
		c.noteRedis(err)
		c.metrics.published.Add(float64(len(batch) - len(failed) - refused))
		if refused > 0 {
			c.metrics.refused.Add(float64(refused))
			c.cfg.Log.Error("balance cache: redis refused copies", "copies", refused)
		}
		if err != nil {
			c.metrics.publishErrors.Inc()
			c.pending.add(failed)
			return err
		}
	}
}
