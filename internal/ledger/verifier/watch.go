package verifier

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger/audit"
)

// watchPause is the pause between chunks. It keeps the watch to a few percent of one core.
const watchPause = 500 * time.Millisecond

// watch verifies all balances in the background, one pass after another.
type watch struct {
	verifier *Verifier
	cancel   context.CancelFunc
	done     sync.WaitGroup
	full     time.Time // when the last full pass began
	found    int64     // differences of the newest complete pass, or of a later pass that found more
}

// fullEvery is how often the watch reads the whole journal. Only a full pass reads old entries, closed periods and
// ended grants.
const fullEvery = 24 * time.Hour

func (w *watch) start() {
	if w.verifier.cfg.Every <= 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.done.Go(func() { w.run(ctx) })
}

func (w *watch) stop() {
	w.cancel()
	w.done.Wait()
}

func (w *watch) run(ctx context.Context) {
	timer := time.NewTimer(w.verifier.cfg.Every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := w.pass(ctx); err != nil && ctx.Err() == nil {
			w.verifier.log.Warn("the continuous verification was not finished", "error", err)
		}
		timer.Reset(w.verifier.cfg.Every)
	}
}

func (w *watch) pass(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	v, seen, began := w.verifier, int64(0), time.Now()
	if err := w.noteSeals(ctx); err != nil {
		return err
	}
	full := began.Sub(w.full) >= fullEvery
	report, err := v.Verify(ctx, Options{Full: full, Copies: v.cfg.Copies, Pause: watchPause, Progress: func(r audit.Report) {
		v.metrics.verified.Add(float64(r.Balances - seen))
		seen = r.Balances
	}})
	if err != nil {
		return err
	}
	if full {
		w.full = began
	}
	// A balance that cannot be read keeps its earlier differences.
	if report.Unread == 0 || report.Count > w.found {
		w.found = report.Count
	}
	v.metrics.differences.Set(float64(w.found))
	v.metrics.unread.Set(float64(report.Unread))
	if report.Unread == 0 {
		v.metrics.verifiedAt.SetToCurrentTime()
	} else {
		v.log.Warn("balances could not be verified", "balances", report.Unread, "first", report.UnreadFirst[0].String())
	}
	for _, d := range report.Differences {
		v.log.Error("journal and state differ", "difference", d.String())
	}
	return v.EmitDrift(ctx, "", report)
}

// noteSeals sets the metric of the newest sealed day.
func (w *watch) noteSeals(ctx context.Context) error {
	newest, err := w.verifier.Seals(ctx, math.MaxInt64, 1)
	if err != nil {
		return err
	}
	if len(newest) > 0 {
		w.verifier.metrics.sealedUntil.Set(float64(newest[0].Day.AddDate(0, 0, 1).Unix()))
	}
	return nil
}
