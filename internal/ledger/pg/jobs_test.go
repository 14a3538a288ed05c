package pg

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

func TestJobs_AreBounded_EndWithLedger(t *testing.T) {
	t.Parallel()
	j := newJobs(slog.New(slog.DiscardHandler))
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

func TestJobs_Panic_EndsTheJobAlone(t *testing.T) {
	t.Parallel()
	j := newJobs(slog.New(slog.DiscardHandler))
	if err := j.start(func() (func(context.Context), error) { return func(context.Context) { panic("a fault") }, nil }); err != nil {
		t.Fatal(err)
	}
	if err := j.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if j.running != 0 {
		t.Errorf("%d jobs are running after one has panicked", j.running)
	}
}
