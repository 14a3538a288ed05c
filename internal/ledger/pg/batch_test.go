package pg

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
)

// The verdict on a failed attempt depends on the state of the database, on the error, and on the statements that the
// attempt had reached. doc.go has the table.
func TestPlan_VerdictOf_FollowsTheTable(t *testing.T) {
	t.Parallel()
	answered := func(code, table string) error {
		return fmt.Errorf("pipelined batch: %w", &pgconn.PgError{Code: code, TableName: table})
	}
	lockTimeout := answered("55P03", "")
	rowExists := answered("23505", "balances")
	keyExists := answered("23505", "entries_2026_11")
	writing := progress{committing: true}
	creating := progress{creating: true, committing: true}
	for _, tc := range []struct {
		what    string
		state   state
		err     error
		reached progress
		want    verdict
	}{
		{"committed", stateUsual, nil, writing, verdictDone},
		{"no end of decisions", stateUsual, errNoEnd, progress{}, verdictBug},
		{"a decision lacks what was read", stateWaitLong, errNotEnough, progress{}, verdictBug},
		{"another transaction has created the row", stateUsual, rowExists, creating, verdictRowTaken},
		{"another transaction is creating the row", stateUsual, lockTimeout, creating, verdictRowTaken},
		{"a balance is locked", stateUsual, lockTimeout, progress{}, verdictLocked},
		{"a balance is locked, rows first", stateRowsFirst, lockTimeout, progress{}, verdictLocked},
		{"a balance is locked for long", stateWaitLong, lockTimeout, progress{}, verdictLocked},
		{"a table is locked", stateSkipLocked, lockTimeout, progress{}, verdictRetry},
		{"a lock was waited for by what is written", stateUsual, lockTimeout, writing, verdictRetry},
		{"the key is stored", stateUsual, keyExists, writing, verdictRetry},
		{"deadlock", stateUsual, answered("40P01", ""), writing, verdictRetry},
		{"connection lost before COMMIT", stateUsual, errors.New("unexpected EOF"), progress{}, verdictRetry},
		{"connection lost after COMMIT", stateUsual, errors.New("unexpected EOF"), writing, verdictUnknown},
		{"no answer to COMMIT", stateSkipLocked, context.DeadlineExceeded, writing, verdictUnknown},
		{"COMMIT was answered with ROLLBACK", stateUsual, errRolledBack, writing, verdictRetry},
		{"a constraint", stateUsual, answered("23514", "balances"), creating, verdictData},
	} {
		p := &plan{state: tc.state}
		assert.Equal(t, tc.want, p.verdictOf(tc.err, tc.reached), tc.what)
	}
}
