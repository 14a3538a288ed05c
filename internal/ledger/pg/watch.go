package pg

import (
	"context"
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger/audit"
)

// watchPause is the pause between chunks. It keeps the continuous verifier to a few percent of one core.
const watchPause = 500 * time.Millisecond

// watch verifies all balances in the background, one pass after another.
type watch struct {
	ledger *Ledger
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (w *watch) start() {
	if w.ledger.cfg.VerifyEvery <= 0 {
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
	timer := time.NewTimer(w.ledger.cfg.VerifyEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := w.pass(ctx); err != nil && ctx.Err() == nil {
			w.ledger.log.Warn("the continuous verification was not finished", "error", err)
		}
		timer.Reset(w.ledger.cfg.VerifyEvery)
	}
}

func (w *watch) pass(ctx context.Context) error {
	l, seen := w.ledger, int64(0)
	report, err := l.Verify(ctx, VerifyOptions{Copies: l.cfg.Copies, Pause: watchPause, Progress: func(r audit.Report) {
		l.metrics.verified.Add(float64(r.Balances - seen))
		seen = r.Balances
	}})
	if err != nil {
		return err
	}
	l.metrics.differences.Set(float64(report.Count))
	l.metrics.verifiedAt.SetToCurrentTime()
	for _, d := range report.Differences {
		l.log.Error("journal and state differ", "difference", d.String())
	}
	return nil
}
