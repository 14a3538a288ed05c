package catalog

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotasvc/quotasvc/internal/backoff"
)

const (
	// connectTimeout bounds connecting the listener and its LISTEN.
	connectTimeout = 5 * time.Second

	// Pauses between attempts to reconnect or reload double from firstPause to lastPause. PostgreSQL restarts in about a
	// second. After an outage the instances must not all return at the same moment.
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// connect opens a connection for the listener alone. A connection of the pool may go through a pooler, which drops LISTEN.
func (c *Catalog) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	cfg := c.pool.Config()
	if cfg.BeforeConnect != nil { // the password may have changed
		if err := cfg.BeforeConnect(ctx, cfg.ConnConfig); err != nil {
			return nil, translate("connect the listener", err)
		}
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return nil, translate("connect the listener", err)
	}
	if _, err := conn.Exec(ctx, c.queries["Listen"]); err != nil {
		closeQuietly(conn)
		return nil, translate("listen", err)
	}
	return conn, nil
}

// listen handles notifications until ctx ends, on conn first and on new connections after conn is lost.
func (c *Catalog) listen(ctx context.Context, conn *pgx.Conn) {
	for {
		err := c.receive(ctx, conn)
		c.listening.Store(false)
		closeQuietly(conn)
		if ctx.Err() != nil {
			return
		}
		c.metrics.lost.Inc()
		c.log.Warn("catalogue notifications lost; reconnecting", "error", err)
		for retry := backoff.New(firstPause, lastPause); ; {
			if !retry.Wait(ctx) {
				return
			}
			if conn, err = c.connect(ctx); err == nil {
				break
			}
			c.log.Debug("catalogue listener cannot connect", "error", err)
		}
		// Notifications in the meantime were lost: nothing read before counts as fresh.
		c.tenants.invalidateAll()
		c.triggerAll()
		c.listening.Store(true)
		c.log.Info("catalogue notifications are received again")
	}
}

// receive handles notifications on conn until it fails.
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
		default: // no notification: check the connection
			ping, cancel := context.WithTimeout(ctx, c.cfg.Heartbeat)
			err := conn.Ping(ping)
			cancel()
			if err != nil {
				return translate("listener's heartbeat", err)
			}
		}
	}
}
