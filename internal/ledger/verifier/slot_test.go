package verifier

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
)

// waitingCopies returns a CopyReader that waits until end is closed, so that a verification keeps running.
func waitingCopies(begun chan<- struct{}, end <-chan struct{}) CopyReader {
	return func(ctx context.Context, keys []ledger.BalanceKey) ([]*ledger.BalanceCopy, error) {
		begun <- struct{}{}
		select {
		case <-end:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return make([]*ledger.BalanceCopy, len(keys)), nil
	}
}

func TestStartVerification_OneRuns_SecondStartGetsIt(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	mustDo(b, debitOf("acme", "k1", 3))
	begun, end := make(chan struct{}, 1), make(chan struct{})
	v := b.open(func(c *Config) { c.Copies = waitingCopies(begun, end) })
	first, err := v.StartVerification(t.Context(), "")
	b.must(err)
	<-begun
	for range 5 {
		again, err := v.StartVerification(t.Context(), "")
		b.must(err)
		assert.True(t, again.ID == first.ID && again.Status == VerificationRunning &&
			again.StartedAt.Equal(first.StartedAt), "the second start got %+v, want %+v", again, first)
	}
	_, err = v.StartVerification(t.Context(), "acme")
	assert.True(t, errcode.Of(err) == errcode.QueueFull, "another verification: %v", err)
	assert.Equal(t, 1, one[int](b, "SELECT count(*) FROM verifications"), "verifications were recorded")
	// A roll can start while a verification runs, because rolls have their own slots.
	_, err = b.ledger.StartRoll(t.Context(), nil)
	assert.NoError(t, err, "a roll beside a verification")
	close(end)
	testenv.Eventually(t, func() bool {
		got, err := v.VerificationStatus(t.Context(), first.ID)
		return err == nil && got.Status == VerificationClean
	})
	next, err := v.StartVerification(t.Context(), "acme")
	assert.True(t, err == nil && next.ID != first.ID, "after the end: %+v, %v", next, err)
}

func TestStartVerification_VerifierStops_RunningOneEnds(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	mustDo(b, debitOf("acme", "k1", 3))
	begun := make(chan struct{}, 1)
	v := b.open(func(c *Config) { c.Copies = waitingCopies(begun, nil) })
	started, err := v.StartVerification(t.Context(), "acme")
	b.must(err)
	<-begun
	b.must(v.Stop(t.Context()))
	_, err = v.StartVerification(t.Context(), "acme")
	assert.True(t, errcode.Of(err) == errcode.Unavailable, "after the stop: %v", err)
	got, err := b.VerificationStatus(t.Context(), started.ID)
	assert.True(t, err == nil && got.Status == VerificationFailed, "the interrupted verification: %+v, %v", got, err)
}

func TestStartVerification_Administrator_OneLine(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 100)
	started := map[string]string{}
	for _, actor := range []*auditlog.Actor{{KeyID: "key_a", Admin: true}, {KeyID: "key_u"}} {
		v, err := b.open(nil).StartVerification(auditlog.With(t.Context(), actor), "acme")
		b.must(err)
		started[actor.KeyID] = v.ID
	}
	got := one[string](b, "SELECT concat_ws(' ', action, actor_key, object_kind, tenant_id, after, object_id) FROM audit")
	want := `verification.start key_a verification acme {"status": "running"} ` + started["key_a"]
	assert.Equal(t, want, got, "line of the audit log")
	assert.Equal(t, 1, one[int](b, "SELECT count(*) FROM audit"), "lines")
}
