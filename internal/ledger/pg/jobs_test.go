package pg

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJobs_AreBounded_EndWithTheProcess(t *testing.T) {
	t.Parallel()
	j := newJobs(rollsMax, slog.New(slog.DiscardHandler))
	begun, ended := make(chan struct{}, rollsMax), make(chan struct{}, rollsMax)
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
	for range rollsMax {
		require.NoError(t, j.start(wait))
		<-begun
	}
	if err := j.start(wait); !errors.Is(err, errJobsFull) {
		t.Errorf("one job more than there may be: %v", err)
	}
	require.NoError(t, j.stop(t.Context()))
	if len(ended) != rollsMax {
		t.Errorf("%d of %d jobs have ended", len(ended), rollsMax)
	}
	if err := j.start(wait); !errors.Is(err, errStopping) {
		t.Errorf("after the stop: %v", err)
	}
}

func TestJobs_Panic_EndsTheJobAlone(t *testing.T) {
	t.Parallel()
	j := newJobs(rollsMax, slog.New(slog.DiscardHandler))
	panics := func(context.Context) { panic("a fault") }
	require.NoError(t, j.start(func() (func(context.Context), error) { return panics, nil }))
	require.NoError(t, j.stop(t.Context()))
	if j.running != 0 {
		t.Errorf("%d jobs are running after one has panicked", j.running)
	}
}
