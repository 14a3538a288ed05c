package jobs

import (
	"context"
	"errors"
	"log/slog"
	"testing"
)

const most = 4

func TestJobs_AreBounded_EndWithTheProcess(t *testing.T) {
	t.Parallel()
	j := New(most, slog.New(slog.DiscardHandler))
	begun, ended := make(chan struct{}, most), make(chan struct{}, most)
	wait := func() (func(context.Context), error) {
		return func(ctx context.Context) {
			begun <- struct{}{}
			<-ctx.Done()
			ended <- struct{}{}
		}, nil
	}
	failed := errors.New("failed")
	if err := j.Start(func() (func(context.Context), error) { return nil, failed }); !errors.Is(err, failed) {
		t.Errorf("a job that cannot be prepared: %v", err)
	}
	for range most {
		if err := j.Start(wait); err != nil {
			t.Fatal(err)
		}
		<-begun
	}
	if err := j.Start(wait); !errors.Is(err, ErrFull) {
		t.Errorf("one job more than there may be: %v", err)
	}
	if err := j.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(ended) != most {
		t.Errorf("%d of %d jobs have ended", len(ended), most)
	}
	if err := j.Start(wait); !errors.Is(err, ErrStopping) {
		t.Errorf("after the stop: %v", err)
	}
}

func TestJobs_Panic_EndsTheJobAlone(t *testing.T) {
	t.Parallel()
	j := New(most, slog.New(slog.DiscardHandler))
	if err := j.Start(func() (func(context.Context), error) { return func(context.Context) { panic("a fault") }, nil }); err != nil {
		t.Fatal(err)
	}
	if err := j.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if j.running != 0 {
		t.Errorf("%d jobs are running after one has panicked", j.running)
	}
}
