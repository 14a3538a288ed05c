package pg

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
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
	assert.ErrorIs(t, j.start(func() (func(context.Context), error) { return nil, failed }), failed,
		"a job that cannot be prepared")
	for range rollsMax {
		require.NoError(t, j.start(wait))
		<-begun
	}
	assert.ErrorIs(t, j.start(wait), errJobsFull, "one job more than there may be")
	require.NoError(t, j.stop(t.Context()))
	assert.Len(t, ended, rollsMax, "%d of %d jobs have ended", len(ended), rollsMax)
	assert.ErrorIs(t, j.start(wait), errStopping, "after the stop")
}

func TestJobs_Panic_EndsTheJobAlone(t *testing.T) {
	t.Parallel()
	j := newJobs(rollsMax, slog.New(slog.DiscardHandler))
	panics := func(context.Context) { panic("a fault") }
	require.NoError(t, j.start(func() (func(context.Context), error) { return panics, nil }))
	require.NoError(t, j.stop(t.Context()))
	assert.Zero(t, j.running, "jobs are running after one has panicked")
}
