package pgstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// Errors that the function of a write returns to roll back its transaction.
var (
	// ErrRollback rolls back a transaction without an error: Write returns nil.
	ErrRollback = errors.New("rolled back on request")

	// ErrRace says that another transaction inserted the row first. Write runs the function again.
	ErrRace = errors.New("made by another transaction in the meantime")
)

// Translate turns an error of the driver during operation op into an *errcode.Error. It returns an *errcode.Error
// unchanged.
func Translate(op string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		return e
	}
	cause := fmt.Errorf("%s: %w", op, err)
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case pgErr.Code == "42P01", pgErr.Code == "42703": // undefined table, undefined column
			return &errcode.Error{
				Code: errcode.Internal, Detail: "the schema is not up to date; run `quotasvc migrate up`", Cause: cause,
			}
		case isTemporary(pgErr.Code):
			return DidNotAnswer(cause)
		}
		return &errcode.Error{Code: errcode.Internal, Cause: cause}
	}
	if isConnectionLost(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return DidNotAnswer(cause)
	}
	return &errcode.Error{Code: errcode.Internal, Cause: cause}
}

// away returns the error of an operation that was not started, because PostgreSQL is known to be away.
func away(op string, cause error) error {
	detail := "PostgreSQL cannot be reached; nothing was tried"
	return &errcode.Error{Code: errcode.Unavailable, Detail: detail, Cause: fmt.Errorf("%s: %w", op, cause)}
}

// translateEntry returns the error of an operation that got no slot of its room. Nothing was sent, so a retry is safe.
func translateEntry(op string, err error) error {
	detail := "too many requests wait for PostgreSQL; nothing was tried"
	return &errcode.Error{Code: errcode.Unavailable, Detail: detail, Cause: fmt.Errorf("%s: %w", op, err)}
}

// DidNotAnswer returns the error of an operation that PostgreSQL did not answer.
func DidNotAnswer(cause error) *errcode.Error {
	detail := "PostgreSQL did not answer in time; sending the same request again is safe"
	return &errcode.Error{Code: errcode.Unavailable, Detail: detail, Cause: cause}
}

// isTemporary reports whether a SQLSTATE is caused by the condition of the server, and not by the statement.
func isTemporary(code string) bool {
	switch code {
	case "25006", // read-only transaction: a failover is under way
		"55P03",                            // lock timeout
		"57014",                            // statement timeout
		"57P01", "57P02", "57P03", "57P05": // shutting down, crashed, starting up, idle for too long
		return true
	}
	switch code[:min(2, len(code))] {
	case "08", // connection
		"40", // deadlock, serialization failure: the retries did not help
		"53", // out of connections, disk or memory
		"58": // an error of the operating system
		return true
	}
	return false
}

// isRetryable reports whether a failed transaction may succeed if it is run again from its start.
func isRetryable(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return errors.Is(err, ErrRace) || ok && (pgErr.Code == "40001" || pgErr.Code == "40P01" || pgErr.Code == "23505")
}

// isConnectionLost reports whether the connection could not be opened or was lost. If a commit was sent on the lost
// connection, it may have succeeded. Other statements had no effect.
func isConnectionLost(err error) bool {
	if err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgErr.Code == "57P01" || pgErr.Code == "57P02" || strings.HasPrefix(pgErr.Code, "08")
	}
	var netErr net.Error
	var connectErr *pgconn.ConnectError
	for _, gone := range []error{io.ErrUnexpectedEOF, io.EOF, net.ErrClosed, pgconn.ErrConnClosed} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return errors.As(err, &netErr) || errors.As(err, &connectErr) || pgconn.SafeToRetry(err)
}
