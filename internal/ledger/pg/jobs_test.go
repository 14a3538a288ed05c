package pg

import (
	"context"
	"errors"
	"testing"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

func TestJobs_AreBounded_EndWithLedger(t *testing.T) {
	t.Parallel()
	j := newJobs()
	begun, ended := make(chan struct{}, jobsMax), make(chan struct{}, jobsMax)
	wait := func() (func(context.Context), error) {
		return func(ctx context.Context) {
			begun <- struct{}{}
			<-ctx.Done()
			ended <- struct{}{}
		}, nil
	}
	failed := errors.New("failed")
	if err := j.start(func() (func(context.Context), error) { return nil, failed }); !errors.Is(err, failed) {
		t.Errorf("a job that cannot be prepared: %v", err)
	}
	for range jobsMax {
		if err := j.start(wait); err != nil {
			t.Fatal(err)
		}
		<-begun
	}
	if err := j.start(wait); ledger.CodeOf(err) != ledger.CodeQueueFull {
		t.Errorf("one job more than there may be: %v", err)
	}
	if err := j.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(ended) != jobsMax {
		t.Errorf("%d of %d jobs have ended", len(ended), jobsMax)
	}
	if err := j.start(wait); ledger.CodeOf(err) != ledger.CodeUnavailable {
		t.Errorf("after the stop: %v", err)
	}
}
