package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/serve/ops"
)

const (
	// awaitConnect is the maximum time of one attempt to connect to PostgreSQL.
	awaitConnect = 2 * time.Second

	// awaitFirst is the first pause between two attempts. Each pause is twice the one before, up to awaitLast.
	// PostgreSQL restarts in about a second, and many instances may wait at the same time.
	awaitFirst = 100 * time.Millisecond
	awaitLast  = 2 * time.Second
)

// startWhenPossible starts the service as soon as PostgreSQL answers. It waits at most StartTimeout. Without this wait,
// an instance that restarts while PostgreSQL is down would end, and the orchestrator might start it again only minutes
// later. If waiting cannot help, as with a wrong password or a missing schema, the error is returned at once.
func startWhenPossible(ctx context.Context, secrets *rotation, endpoints *ops.Endpoints, log *slog.Logger, before func(context.Context) error) (*service, error) {
	cfg := secrets.cfg
	w := &wait{cfg: cfg, secrets: secrets, endpoints: endpoints, log: log, pause: awaitFirst}
	if cfg.StartTimeout > 0 {
		w.until = time.Now().Add(cfg.StartTimeout)
	}
	for {
		s, err := w.attempt(ctx, before)
		switch {
		case err == nil:
			return s, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !isAway(err):
			return nil, explainDatabase(err)
		}
		if err := w.next(ctx, err); err != nil {
			return nil, err
		}
	}
}

// wait is the progress of a start that waits until PostgreSQL answers.
type wait struct {
	cfg       *serviceConfig
	secrets   *rotation
	endpoints *ops.Endpoints
	log       *slog.Logger
	until     time.Time // zero: no time limit
	pause     time.Duration
	began     time.Time // zero: the start is not waiting
}

// attempt connects to PostgreSQL and then starts the service.
func (w *wait) attempt(ctx context.Context, before func(context.Context) error) (*service, error) {
	if err := w.connect(ctx); err != nil {
		return nil, err
	}
	if !w.began.IsZero() {
		w.log.Info("PostgreSQL answers; starting", "waited_seconds", time.Since(w.began).Seconds())
		w.began, w.pause = time.Time{}, awaitFirst
	}
	w.endpoints.Waiting("the service's parts")
	if err := before(ctx); err != nil {
		return nil, err
	}
	return start(ctx, w.secrets, w.log)
}

func (w *wait) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, awaitConnect)
	defer cancel()
	conn, err := pgx.Connect(ctx, string(w.cfg.DatabaseURL))
	if err != nil {
		return err
	}
	_ = conn.Close(ctx) // PostgreSQL has answered
	return nil
}

// next logs why PostgreSQL cannot be used, and pauses. If the time limit has passed, it returns an error.
func (w *wait) next(ctx context.Context, cause error) error {
	w.endpoints.Waiting("PostgreSQL: " + oneLine(cause))
	if w.began.IsZero() {
		w.began = time.Now()
		w.log.Warn("waiting for PostgreSQL; the API does not listen yet", "start_timeout", w.cfg.StartTimeout.String(), "error", oneLine(cause))
	}
	pause := w.pause/2 + rand.N(w.pause/2)
	w.pause = min(2*w.pause, awaitLast)
	left := time.Until(w.until)
	if !w.until.IsZero() && left <= 0 {
		return fmt.Errorf("PostgreSQL did not answer within %s: start it, correct %s, or wait longer with %s: %s",
			w.cfg.StartTimeout, settingName("database-url"), settingName("start-timeout"), oneLine(cause))
	}
	if !w.until.IsZero() {
		pause = min(pause, left)
	}
	if !backoff.Sleep(ctx, pause) {
		return context.Cause(ctx)
	}
	return nil
}

// oneLine returns the text of an error in one line. pgx returns a text with a line for each host.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// isAway reports whether the cause of an error may end while the service waits. It returns true if PostgreSQL cannot be
// reached, is starting, has no free connection, or is read-only during a failover.
func isAway(err error) bool {
	if needsOperator(err) {
		return false
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		for _, class := range []string{"08", "53", "57", "25006"} { // connection, resources, operator, read-only
			if strings.HasPrefix(e.Code, class) {
				return true
			}
		}
		return false
	}
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		return e.Code == errcode.Unavailable
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	return connecting || pgconn.SafeToRetry(err) || pgconn.Timeout(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, pgconn.ErrConnClosed)
}

// needsOperator reports whether a connection error lasts until an operator corrects the configuration.
func needsOperator(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(e.Code, "28") || e.Code == "3D000" || e.Code == "42501" || refusesParameter(e))
}

// refusesParameter reports whether the error is from a connection pooler that refuses a parameter of the URL.
func refusesParameter(e *pgconn.PgError) bool {
	return e.Code == "08P01" && strings.Contains(e.Message, "startup parameter")
}

// explainDatabase adds to a connection error what the operator must do.
func explainDatabase(err error) error {
	if !needsOperator(err) {
		return err
	}
	step := "correct user and password in "
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok {
		step = "correct sslrootcert or the host's name in "
	} else if e.Code == "3D000" {
		step = "create the database and run `quotasvc migrate up`, or correct its name in "
	} else if e.Code == "42501" {
		step = "grant the role what it lacks, or change the user in "
	} else if refusesParameter(e) {
		step = "have the pooler ignore that parameter (ignore_startup_parameters), or remove it from "
	}
	return fmt.Errorf("%s%s: %s", step, settingName("database-url"), oneLine(err))
}
