package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotasvc/quotasvc/internal/kit/body"
)

// Code names a way to fail. The words are those of the REST contract.
type Code string

// The codes of this package.
const (
	CodeInvalidArgument Code = "invalid_argument"
	CodeNotFound        Code = "not_found" // a meter, plan or limit
	CodeTenantNotFound  Code = "tenant_not_found"
	CodeConflict        Code = "precondition_failed" // the state does not allow it: the meter is in use
	CodeUnavailable     Code = "unavailable"         // PostgreSQL did not answer in time; the same request can be sent again
	CodeInternal        Code = "internal"
)

// Error is every failure of this package. Detail is for the caller. The cause is for the log only.
type Error struct {
	Code   Code
	Fields []body.Fault // on CodeInvalidArgument all faults; on CodeNotFound the field with the missing reference, if one has
	Detail string
	cause  error
}

// Errors to compare with errors.Is. An *Error matches the one with its code.
var (
	ErrInvalid     = &Error{Code: CodeInvalidArgument}
	ErrNoTenant    = &Error{Code: CodeTenantNotFound}
	errUnavailable = &Error{Code: CodeUnavailable}
)

// Error returns code, detail, fields and cause, for logs.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("catalog: " + string(e.Code))
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	for i, f := range e.Fields {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(sep + f.Field + " " + f.Message)
	}
	if e.cause != nil {
		b.WriteString(": " + e.cause.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is the error of e's code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Detail == "" && t.Fields == nil && t.cause == nil
}

// fieldError returns an *Error about one field.
func fieldError(code Code, field, format string, args ...any) *Error {
	return &Error{Code: code, Fields: []body.Fault{{Field: field, Message: fmt.Sprintf(format, args...)}}}
}

func errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// missingReference returns the error of a field that names an object that does not exist.
func missingReference(field, kind, id string) *Error {
	return fieldError(CodeNotFound, field, "names the %s %q, which does not exist", kind, id)
}

// translate turns an error of the driver during operation op into an *Error. It returns errors of this package unchanged.
func translate(op string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	cause := fmt.Errorf("%s: %w", op, err)
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case pgErr.Code == "42P01", pgErr.Code == "42703": // undefined table, undefined column
			return &Error{Code: CodeInternal, Detail: "the schema is not up to date; run `quotasvc migrate up`", cause: cause}
		case isTemporary(pgErr.Code):
			return &Error{Code: CodeUnavailable, Detail: unavailableDetail, cause: cause}
		}
		return &Error{Code: CodeInternal, cause: cause}
	}
	if isConnectionLost(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &Error{Code: CodeUnavailable, Detail: unavailableDetail, cause: cause}
	}
	return &Error{Code: CodeInternal, cause: cause}
}

// away returns the error of an operation that was not tried, because PostgreSQL is known to be away.
func away(op string, cause error) error {
	return &Error{Code: CodeUnavailable, Detail: awayDetail, cause: fmt.Errorf("%s: %w", op, cause)}
}

const awayDetail = "PostgreSQL cannot be reached; nothing was tried"

const unavailableDetail = "PostgreSQL did not answer in time; sending the same request again is safe"

// isTemporary reports whether a SQLSTATE is about the state of the server, not about the statement.
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
		"40", // deadlock, serialisation failure: those that outlive the retries
		"53", // out of connections, disk or memory
		"58": // the system that PostgreSQL runs on
		return true
	}
	return false
}

// isRetryable reports whether a failed transaction may succeed if it is run again from its start.
func isRetryable(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return errors.Is(err, errRace) || ok && (pgErr.Code == "40001" || pgErr.Code == "40P01" || pgErr.Code == "23505")
}

// isConnectionLost reports whether the connection could not be made or is gone. A commit that was sent on it may have
// succeeded. Other statements had no effect.
func isConnectionLost(err error) bool {
	if err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgErr.Code == "57P01" || pgErr.Code == "57P02" || strings.HasPrefix(pgErr.Code, "08")
	}
	var netErr net.Error
	var connectErr *pgconn.ConnectError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &netErr) || errors.As(err, &connectErr) || pgconn.SafeToRetry(err)
}
