package catalog

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// connectTimeout bounds connecting the listener and its LISTEN.
	connectTimeout = 5 * time.Second

	// Pauses between attempts to reconnect or reload double from the first to the last: a restart of PostgreSQL takes about a
	// second, and after an outage not all instances shall come back at the same moment.
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// connect opens the listener's own connection: one of the pool's could be a pooler's, which forgets a LISTEN.
func (c *Catalog) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, c.pool.Config().ConnConfig)
	if err != nil {
		return nil, translate("connect the listener", err)
	}
	if _, err := conn.Exec(ctx, c.queries["Listen"]); err != nil {
		closeQuietly(conn)
		return nil, translate("listen", err)
	}
	return conn, nil
}

// listen hears announcements until ctx ends, on conn first and on new connections when it is lost.
func (c *Catalog) listen(ctx context.Context, conn *pgx.Conn) {
	for {
		err := c.receive(ctx, conn)
		c.listening.Store(false)
		closeQuietly(conn)
		if ctx.Err() != nil {
			return
		}
		c.metrics.lost.Inc()
		c.log.Warn("catalogue changes cannot be heard; reconnecting", "error", err)
		for retry := newBackoff(); ; {
			if !retry.wait(ctx) {
				return
			}
			if conn, err = c.connect(ctx); err == nil {
				break
			}
			c.log.Debug("listener cannot connect", "error", err)
		}
		// Changes of the meantime were not heard: nothing read before counts as fresh.
		c.tenants.invalidateAll()
		c.triggerAll()
		c.listening.Store(true)
		c.log.Info("catalogue changes are heard again")
	}
}

// hearOn takes in announcements on conn until it fails.
func (c *Catalog) receive(ctx context.Context, conn *pgx.Conn) error {
	for {
		wait, cancel := context.WithTimeout(ctx, c.cfg.Heartbeat)
		n, err := conn.WaitForNotification(wait)
		cancel()
		switch {
		case err == nil:
			c.onNotify([]string{n.Payload})
		case ctx.Err() != nil || !pgconn.Timeout(err) || conn.IsClosed():
			return translate("wait for changes", err)
		default: // silence: is anybody there?
			ping, cancel := context.WithTimeout(ctx, c.cfg.Heartbeat)
			err := conn.Ping(ping)
			cancel()
			if err != nil {
				return translate("listener's heartbeat", err)
			}
		}
	}
}

// backoff is a pause that doubles.
type backoff struct{ next time.Duration }

func newBackoff() *backoff { return &backoff{next: firstPause} }

func (b *backoff) reset() { b.next = firstPause }

// wait pauses for a random half to whole of the next pause. It reports false if ctx ended.
func (b *backoff) wait(ctx context.Context) bool {
	timer := time.NewTimer(b.next/2 + rand.N(b.next/2))
	defer timer.Stop()
	b.next = min(2*b.next, lastPause)
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
