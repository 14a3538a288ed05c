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
			wantEqual(t, "worth a retry", e.RetryAfter > 0, tc.code == errcode.Unavailable)
			assert.ErrorIs(t, e, tc.cause, "the cause is lost")
		})
	}
	for _, r := range reasons() {
		assert.NotContains(t, refusal(r, nil).Detail, "nothing was done", "%s promises too much", r)
		assert.NotEmpty(t, r.text(), "%s says nothing", r)
	}
}

// hangAtCommit makes every COMMIT with entries hang, until the returned function is called.
func (b *bundle) hangAtCommit() (goOn func()) {
	b.t.Helper()
	b.exec(`CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql
		AS $$ BEGIN PERFORM pg_sleep(3600); RETURN NULL; END $$`)
	b.exec(`CREATE CONSTRAINT TRIGGER hang AFTER INSERT ON entries DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION hang()`)
	return func() { b.exec("DROP TRIGGER hang ON entries") }
}

// awaitDebit repeats a debit of one unit until it succeeds.
func (b *bundle) awaitDebit(tenant, key string) {
	b.t.Helper()
	testenv.Eventually(b.t, func() bool {
		_, err := Do(b.t.Context(), b.Ledger, debitOf(tenant, key, 1))
		return err == nil
	})
}

// If a COMMIT is not answered, for example because a standby does not confirm it, callers get outcome_unknown within
// five seconds.
func TestBatch_CommitHangs_OutcomeUnknownWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 100)
	b.mustDebit(debitOf("acme", "first", 1))
	goOn := b.answersInTime().hangAtCommit()
	began := time.Now()
	_, err := Do(t.Context(), b.Ledger, debitOf("acme", "k", 1))
	assert.LessOrEqual(t, time.Since(began), 10*promised, "answered")
	wantCode(t, err, errcode.OutcomeUnknown)
	goOn()
	b.awaitDebit("acme", "k")
	wantEqual(t, "used", b.mustBalance("acme", "api_calls").Used, 2)
	b.mustVerify()
}

// A request that has waited before it reached the ledger has less time left than the ledger's own limit. It must be
// answered before its own deadline.
func TestBatch_CallersDeadlineIsNearer_AnsweredThen(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.simple("acme", 100)
	b.mustDebit(debitOf("acme", "first", 1))
	goOn := b.hangAtCommit()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	began := time.Now()
	_, err := Do(ctx, b.Ledger, debitOf("acme", "k", 1))
	assert.LessOrEqual(t, time.Since(began), 15*time.Second, "answered: without ctx the attempts would take longer")
	wantCode(t, err, errcode.OutcomeUnknown)
	goOn()
	b.awaitDebit("acme", "k")
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
