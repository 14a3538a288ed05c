package listener

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
)

const (
	connectTimeout = 5 * time.Second // for connecting and the LISTEN statement

	// The pauses between attempts to reconnect double from firstPause to lastPause. PostgreSQL restarts in about a
	// second.
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Config configures a Listener. All fields are required.
type Config struct {
	Pool      *pgxpool.Pool // only its settings are used, because its own connections may go through a pooler
	Statement string        // the LISTEN statement
	Heartbeat time.Duration // how often the connection is checked
	Log       *slog.Logger

	Notified func(payload string)
	Heard    func() // called after each notification and each check, so all earlier notifications were received
	Lost     func() // called when the connection was lost
	Back     func() // called when there is a new connection
}

// Listener receives notifications.
type Listener struct {
	cfg       Config
	listening atomic.Bool
}

// New returns a listener that is not connected.
func New(cfg Config) *Listener { return &Listener{cfg: cfg} }

// Listening reports whether l has a connection that receives notifications.
func (l *Listener) Listening() bool { return l.listening.Load() }

// Connect opens a connection for Run.
func (l *Listener) Connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	cfg := l.cfg.Pool.Config()
	if cfg.BeforeConnect != nil { // the password may have changed
		if err := cfg.BeforeConnect(ctx, cfg.ConnConfig); err != nil {
			return nil, fmt.Errorf("connect the listener: %w", err)
		}
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("connect the listener: %w", err)
	}
	if _, err := conn.Exec(ctx, l.cfg.Statement); err != nil {
		Close(conn)
		return nil, fmt.Errorf("listen: %w", err)
	}
	return conn, nil
}

// Begin makes Listening return true: from now on, data that was read since Connect counts as up to date. Call Run
// next.
func (l *Listener) Begin() { l.listening.Store(true) }

// Run handles notifications until ctx ends. It begins with conn. After it loses a connection, it opens a new
// connection.
func (l *Listener) Run(ctx context.Context, conn *pgx.Conn) {
	for {
		err := l.receive(ctx, conn)
		l.listening.Store(false)
		Close(conn)
		if ctx.Err() != nil {
			return
		}
		l.cfg.Lost()
		l.cfg.Log.Warn("notifications of changes lost; reconnecting", "error", err)
		for retry := backoff.New(firstPause, lastPause); ; {
			if !retry.Wait(ctx) {
				return
			}
			if conn, err = l.Connect(ctx); err == nil {
				break
			}
			l.cfg.Log.Debug("the listener cannot connect", "error", err)
		}
		l.cfg.Back()
		l.listening.Store(true)
		l.cfg.Log.Info("notifications of changes are received again")
	}
}

// receive handles notifications on conn until the connection fails.
func (l *Listener) receive(ctx context.Context, conn *pgx.Conn) error {
	for {
		wait, cancel := context.WithTimeout(ctx, l.cfg.Heartbeat)
		n, err := conn.WaitForNotification(wait)
		cancel()
		switch {
		case err == nil:
			l.cfg.Notified(n.Payload)
			l.cfg.Heard()
		case ctx.Err() != nil || !pgconn.Timeout(err) || conn.IsClosed():
			return fmt.Errorf("wait for changes: %w", err)
		default: // no notification: check the connection
			ping, cancel := context.WithTimeout(ctx, l.cfg.Heartbeat)
			err := conn.Ping(ping)
			cancel()
			if err != nil {
				return fmt.Errorf("the listener's heartbeat: %w", err)
			}
			l.cfg.Heard()
		}
	}
}

// Close closes a connection and ignores errors.
func Close(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // the server notices the end of the connection even if this fails
}
