package pg

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func TestRefusal_Reasons_SayWhatWas(t *testing.T) {
	t.Parallel()
	state := func(code string) error { return fmt.Errorf("commit: %w", &pgconn.PgError{Code: code}) }
	for name, tc := range map[string]struct {
		cause error
		code  errcode.Code
		says  string
	}{
		"connection lost":   {errors.New("unexpected EOF"), errcode.Unavailable, "cannot reach"},
		"no answer":         {context.DeadlineExceeded, errcode.Unavailable, "did not answer in time"},
		"statement timeout": {state("57014"), errcode.Unavailable, "did not answer in time"},
		"lock timeout":      {state("55P03"), errcode.Unavailable, "locked by another transaction"},
		"deadlock":          {state("40P01"), errcode.Unavailable, "colliding"},
		"standby":           {state("25006"), errcode.Unavailable, "standby"},
		"disk full":         {state("53100"), errcode.Unavailable, "out of disk space"},
		"no connection":     {state("53300"), errcode.Unavailable, "no connection left"},
		"starting up":       {state("57P03"), errcode.Unavailable, "starting up"},
		"broken rule":       {state("23514"), errcode.Internal, "could not be stored"},
		"overflow":          {state("22003"), errcode.Internal, "could not be stored"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := refusal(reasonOf(tc.cause), tc.cause)
			assert.True(t, e.Code == tc.code && strings.Contains(e.Detail, tc.says) &&
				strings.HasSuffix(e.Detail, ledger.NothingDone), "got %s: %s", e.Code, e.Detail)
			again := e.RetryAfter > 0
			assert.True(t, again == (tc.code == errcode.Unavailable), "retry after %v", e.RetryAfter)
			assert.ErrorIs(t, e, tc.cause, "the cause is lost")
		})
	}
	for _, r := range reasons() {
		if e := refusal(r, nil); strings.Contains(e.Detail, "nothing was done") || r.text() == "" {
			t.Errorf("%s promises too much, or says nothing: %q", r, e.Detail)
		}
	}
}

// If a COMMIT is not answered, for example because a standby does not confirm it, callers get outcome_unknown within
// five seconds.
func TestBatch_CommitHangs_OutcomeUnknownWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 100)
	b.mustDebit(debitOf("acme", "first", 1))
	// The trigger runs at COMMIT.
	b.exec(`CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3600); RETURN NULL; END $$`)
	b.exec(`CREATE CONSTRAINT TRIGGER hang AFTER INSERT ON entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hang()`)
	began := time.Now()
	_, err := Do(t.Context(), b.Ledger, debitOf("acme", "k", 1))
	took := time.Since(began)
	assert.True(t, took <= 10*promised, "answered after %v", took)
	wantCode(t, err, errcode.OutcomeUnknown)
	b.exec("DROP TRIGGER hang ON entries")
	testenv.Eventually(t, func() bool {
		_, err := Do(t.Context(), b.Ledger, debitOf("acme", "k", 1))
		return err == nil
	})
	used := b.mustBalance("acme", "api_calls").Used
	assert.True(t, used == 2, "used %d, want 2", used)
	b.mustVerify()
}

// A request that has waited before it reached the ledger has less time left than the ledger's own limit. It must be
// answered before its own deadline.
func TestBatch_CallersDeadlineIsNearer_AnsweredThen(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.answerWithin = testenv.Patience
	b.simple("acme", 100)
	b.mustDebit(debitOf("acme", "first", 1))
	b.exec(`CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3600); RETURN NULL; END $$`)
	b.exec(`CREATE CONSTRAINT TRIGGER hang AFTER INSERT ON entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hang()`)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	began := time.Now()
	_, err := Do(ctx, b.Ledger, debitOf("acme", "k", 1))
	if took := time.Since(began); took > 15*time.Second { // without ctx the attempts would take longer
		t.Errorf("answered after %v", took)
	}
	wantCode(t, err, errcode.OutcomeUnknown)
	b.exec("DROP TRIGGER hang ON entries")
	testenv.Eventually(t, func() bool {
		_, err := Do(t.Context(), b.Ledger, debitOf("acme", "k", 1))
		return err == nil
	})
}

// The answer to the COMMIT of the first attempt was lost, and the database refuses the second attempt. The error must
// not say that nothing was changed, because the first attempt may have been committed.
func TestBatch_UnknownThenDataError_StaysUnknown(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 100)
	first := ledger.NewCall(debitOf("acme", "k", 1))
	b.refuse("22P02", "k")
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	p := newPlan([]*ledger.Call{first})
	p.mayBeStored = true
	b.runBatch(ctx, p)
	require.Empty(t, p.parked, "calls are parked")
	wantCode(t, first.Err, errcode.OutcomeUnknown)
	again := ledger.NewCall(debitOf("acme", "k", 1))
	b.runBatch(ctx, newPlan([]*ledger.Call{again}))
	wantCode(t, again.Err, errcode.Internal)
}
