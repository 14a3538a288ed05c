package pg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
)

// errStopping is the cause of refusals while the ledger is stopping.
var errStopping = errors.New("the ledger is stopping")

// reason is the reason why an operation was not decided, for the metric and for the text that callers get.
type reason string

// The reasons. The first group means that the database could not be reached or cannot be written to.
const (
	reasonAway        reason = "away" // the breaker is open: nothing was tried
	reasonUnreachable reason = "unreachable"
	reasonStarting    reason = "starting"
	reasonReadOnly    reason = "read_only"
	reasonNoSpace     reason = "no_space"
	reasonBusy        reason = "connections"
	reasonNoPartition reason = "no_partition"

	reasonTimeout   reason = "timeout"
	reasonLocked    reason = "locked"
	reasonConflict  reason = "conflict"
	reasonLate      reason = "late"
	reasonFull      reason = "queue_full"
	reasonStopping  reason = "stopping"
	reasonCancelled reason = "cancelled"
	reasonUnknown   reason = "outcome_unknown"
	reasonIntegrity reason = "integrity"
)

// reasons lists all reasons, so that each has a metric series from the start.
func reasons() []reason {
	return []reason{
		reasonAway, reasonUnreachable, reasonStarting, reasonReadOnly, reasonNoSpace, reasonBusy, reasonNoPartition, reasonTimeout, reasonLocked,
		reasonConflict, reasonLate, reasonFull, reasonStopping, reasonCancelled, reasonUnknown, reasonIntegrity,
	}
}

// text returns the text for callers.
func (r reason) text() string {
	switch r {
	case reasonAway, reasonUnreachable:
		return "the ledger cannot reach its database"
	case reasonStarting:
		return "the ledger's database is starting up or shutting down"
	case reasonReadOnly:
		return "the ledger's database accepts no writes: it is a standby, or was set to read-only"
	case reasonNoSpace:
		return "the ledger's database is out of disk space or memory"
	case reasonBusy:
		return "the ledger's database has no connection left"
	case reasonNoPartition:
		return "the journal has no partition for this month: an operator must run `quotasvc migrate partitions`"
	case reasonTimeout:
		return "the ledger's database did not answer in time"
	case reasonLocked:
		return "the balance is locked by another transaction"
	case reasonConflict:
		return "the operation kept colliding with other transactions"
	case reasonLate:
		return fmt.Sprintf("the operation waited %v for its turn", queueMax)
	case reasonFull:
		return "too many operations are waiting"
	case reasonStopping:
		return "the service is stopping"
	case reasonCancelled:
		return "the request was cancelled, or its deadline passed, while the operation was queued"
	case reasonUnknown:
		return "the database did not confirm the commit: the operation may have been carried out. Retry with the same Idempotency-Key to learn the outcome"
	default:
		return "the operation could not be stored"
	}
}

// code returns the code of an error for this reason.
func (r reason) code() errcode.Code {
	switch r {
	case reasonFull:
		return errcode.QueueFull
	case reasonUnknown:
		return errcode.OutcomeUnknown
	case reasonIntegrity:
		return errcode.Internal
	default:
		return errcode.Unavailable
	}
}

// refusal returns the error of an operation that was not decided. The error says nothing about earlier attempts with
// the same key. An earlier attempt may have ended as outcome_unknown, and only the stored keys show what that attempt
// did.
func refusal(r reason, cause error) *errcode.Error {
	e := &errcode.Error{Code: r.code(), Detail: r.text(), RetryAfter: time.Second, Cause: cause}
	if r != reasonUnknown {
		e.Detail += "; " + ledger.NothingDone
	}
	if r == reasonIntegrity {
		e.RetryAfter = 0
	}
	return e
}

// unavailable wraps the error of a failed read. what names the read. A read changes nothing.
func unavailable(what string, err error) *errcode.Error {
	r := reasonOf(err)
	e := &errcode.Error{Code: r.code(), Detail: r.text(), RetryAfter: time.Second, Cause: fmt.Errorf("%s: %w", what, err)}
	if r == reasonIntegrity {
		e.Detail, e.RetryAfter = "the ledger's database refused a statement", 0
	}
	return e
}

// reasonOf returns the reason for an error of the database. reasonOf and classify are the functions that translate
// the driver's errors.
func reasonOf(err error) reason {
	if _, missing := errors.AsType[*noPartitionError](err); missing {
		return reasonNoPartition
	}
	if _, made := journal.MissingMonth(err); made {
		return reasonConflict
	}
	switch {
	case errors.Is(err, errRolledBack):
		return reasonConflict
	case errors.Is(err, errStopping):
		return reasonStopping
	case errors.Is(err, context.Canceled):
		return reasonCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return reasonTimeout
	}
	pgErr, answered := errors.AsType[*pgconn.PgError](err)
	if !answered {
		return reasonUnreachable
	}
	switch pgErr.Code {
	case "57014":
		return reasonTimeout
	case "55P03":
		return reasonLocked
	case "40P01", "40001", "23505", "55006":
		return reasonConflict
	case "25006":
		return reasonReadOnly
	case "53100", "53200":
		return reasonNoSpace
	case "53300", "53400":
		return reasonBusy
	case "57P01", "57P02", "57P03":
		return reasonStarting
	}
	switch pgErr.Code[:2] {
	case "08", "28", "3D", "57", "53": // connection, authentication, no such database, operator intervention, resources
		return reasonUnreachable
	}
	return reasonIntegrity
}

// suggestsAway reports whether a failed attempt is a reason to find out whether the database can be reached.
func suggestsAway(err error) bool {
	switch reasonOf(err) {
	case reasonUnreachable, reasonTimeout, reasonStarting, reasonReadOnly:
		return true
	default:
		return false
	}
}

// isLockTimeout reports whether a statement waited for a lock until its limit.
func isLockTimeout(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "55P03"
}
