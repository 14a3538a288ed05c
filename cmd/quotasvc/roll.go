package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/quotasvc/quotasvc/internal/kit/clock"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// rollCmd is the command that closes and opens periods of balances that nobody uses. Correctness does not depend on
// it, because every decision and every read first closes and opens the periods of its own balances.
type rollCmd struct {
	databaseConfig
	clockConfig
	AsOf  *time.Time    `name:"as-of" placeholder:"TIME" help:"Process events that were due by this time (RFC 3339). Default: now. A time in the future is refused."`
	Every time.Duration `env:"QUOTASVC_ROLL_EVERY" placeholder:"DURATION" help:"Keep running and repeat at this interval, as a replacement for cron."`
}

// rollEveryMin is the minimum of --every. It protects the database from an operator's mistake such as 1ms for 1m.
const rollEveryMin = time.Second

// Run rolls once. With --every it rolls repeatedly until ctx ends.
func (c *rollCmd) Run(ctx context.Context, log *slog.Logger) error {
	var check checker
	c.databaseConfig.check(&check)
	c.clockConfig.check(&check)
	check.require(c.Every == 0 || c.Every >= rollEveryMin, settingName("roll-every"), "is %s; at least %s", c.Every, rollEveryMin)
	check.require(c.Every == 0 || c.AsOf == nil, "--as-of", "cannot be combined with --every")
	if err := check.err(); err != nil {
		return err
	}
	if err := checkSchema(ctx, string(c.DatabaseURL)); err != nil {
		return err
	}
	agreed, err := c.clockOf(ctx, string(c.DatabaseURL), log)
	if err != nil {
		return err
	}
	return withLedger(ctx, string(c.DatabaseURL), agreed, log, func(l *pg.Ledger) error {
		if c.Every == 0 {
			return roll(ctx, l, c.AsOf, log)
		}
		ticker := time.NewTicker(c.Every)
		defer ticker.Stop()
		for {
			if err := roll(ctx, l, nil, log); err != nil && ctx.Err() == nil {
				log.Error("roll failed, or left balances out; the next one tries them again", "error", err)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
		}
	})
}

// roll runs one roll. On a terminal it shows a progress bar.
func roll(ctx context.Context, l *pg.Ledger, asOf *time.Time, log *slog.Logger) error {
	var bar *progressbar.ProgressBar
	progress := func(r pg.Roll) {
		if !term.IsTerminal(int(os.Stderr.Fd())) {
			return
		}
		if bar == nil {
			bar = progressbar.NewOptions64(max(r.Total, 1), progressbar.OptionSetWriter(os.Stderr),
				progressbar.OptionSetDescription("balances"), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())
		}
		bar.ChangeMax64(max(r.Total, r.Processed, 1))
		_ = bar.Set64(r.Processed) // an error affects only the display
	}
	r, err := l.RunRoll(ctx, asOf, progress)
	if bar != nil {
		_ = bar.Finish()
	}
	if err != nil {
		return err
	}
	log.Info("roll done", "roll_id", r.ID, "as_of", r.AsOf, "due", r.Total, "processed", r.Processed, "set_aside", r.SetAside,
		"duration", r.FinishedAt.Sub(r.StartedAt))
	if r.SetAside > 0 {
		return fmt.Errorf("%d balances could not be written and were set aside: the log names each; all others are done", r.SetAside)
	}
	return nil
}

// toolLedgerStop is the maximum time in which the ledger of a command stops.
const toolLedgerStop = 10 * time.Second

// withLedger calls the function `do` with a ledger that only this command uses, beside the ledger of a running
// service.
func withLedger(ctx context.Context, databaseURL string, agreed *clock.Clock, log *slog.Logger, do func(*pg.Ledger) error) (err error) {
	l, err := pg.Open(ctx, pg.Config{DatabaseURL: databaseURL, Clock: agreed, Log: log, Metrics: prometheus.NewRegistry()})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), toolLedgerStop)
		defer cancel()
		if stopErr := l.Stop(ctx); err == nil && stopErr != nil {
			err = fmt.Errorf("stop: %w", stopErr)
		}
	}()
	if err := l.Start(ctx); err != nil {
		return err
	}
	return do(l)
}
