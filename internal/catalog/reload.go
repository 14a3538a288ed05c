package catalog

import (
	"context"
	"time"
)

// Reading takes at most one part in reloadRest of the time, and rests at most reloadRestMax: a flood of changes must not
// become one of reads, and nobody waits for a change longer than a second.
const (
	reloadRest    = 5
	reloadRestMax = 500 * time.Millisecond
)

// reloader keeps one of a Catalog's copies up to date.
type reloader struct {
	what string
	read func(context.Context) error
	kick chan struct{} // capacity 1: a reload is wanted
}

func newReloader(what string, read func(context.Context) error) *reloader {
	return &reloader{what: what, read: read, kick: make(chan struct{}, 1)}
}

// want has the copy read anew.
func (r *reloader) want() {
	select {
	case r.kick <- struct{}{}:
	default: // one is wanted already, and has not begun to read
	}
}

// reload runs r whenever a reload is wanted, and periodically.
func (c *Catalog) reload(ctx context.Context, r *reloader) {
	ticker := time.NewTicker(c.cfg.ReloadEvery)
	defer ticker.Stop()
	failing := false
	for retry := newBackoff(); ; {
		select {
		case <-ctx.Done():
			return
		case <-r.kick:
		case <-ticker.C:
		}
		began := c.cfg.Now()
		err := r.read(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.metrics.reloads.WithLabelValues("failed").Inc()
			if !failing {
				c.log.Warn("catalogue cannot be reloaded; the last one stays in use", "what", r.what, "error", err)
			}
			failing = true
			if !retry.wait(ctx) {
				return
			}
			r.want()
		default:
			c.metrics.reloads.WithLabelValues("done").Inc()
			if failing {
				c.log.Info("catalogue reloaded again", "what", r.what)
			}
			failing = false
			retry.reset()
			if !rest(ctx, c.cfg.Now().Sub(began)) {
				return
			}
		}
	}
}

// rest waits for as long as a read that took this long asks for. It reports false if ctx ended.
func rest(ctx context.Context, took time.Duration) bool {
	timer := time.NewTimer(min((reloadRest-1)*took, reloadRestMax))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
