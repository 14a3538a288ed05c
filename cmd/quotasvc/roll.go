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

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// rollCmd works off what is due for idle balances. Nothing depends on it: every decision and every read does the same for
// its own balances first.
type rollCmd struct {
	databaseConfig
	AsOf  *time.Time    `name:"as-of" placeholder:"TIME" help:"Work off what was due until then, RFC 3339; default now. Must not lie in the future."`
	Every time.Duration `env:"QUOTASVC_ROLL_EVERY" placeholder:"DURATION" help:"Stay, and do it again this often: a cron container in one flag."`
}

// rollEveryMin keeps a slip of the unit from turning the cron container into load.
const rollEveryMin = time.Second

// Run rolls once, or until the end with --every.
func (c *rollCmd) Run(ctx context.Context, log *slog.Logger) error {
	var check checker
	c.databaseConfig.check(&check)
	check.require(c.Every == 0 || c.Every >= rollEveryMin, settingName("roll-every"), "is %s; at least %s", c.Every, rollEveryMin)
	check.require(c.Every == 0 || c.AsOf == nil, "--as-of", "makes no sense with --every")
	if err := check.err(); err != nil {
		return err
	}
	if err := checkSchema(ctx, string(c.DatabaseURL)); err != nil {
		return err
	}
	return withLedger(ctx, string(c.DatabaseURL), log, func(l *ledger.Ledger) error {
		if c.Every == 0 {
			return roll(ctx, l, c.AsOf, log)
		}
		ticker := time.NewTicker(c.Every)
		defer ticker.Stop()
		for {
			if err := roll(ctx, l, nil, log); err != nil && ctx.Err() == nil {
				log.Error("roll failed, the next one goes on where it stopped", "error", err)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
		}
	})
}

// roll runs one roll, with a progress bar on a terminal.
func roll(ctx context.Context, l *ledger.Ledger, asOf *time.Time, log *slog.Logger) error {
	var bar *progressbar.ProgressBar
	progress := func(r ledger.Roll) {
		if !term.IsTerminal(int(os.Stderr.Fd())) {
			return
		}
		if bar == nil {
			bar = progressbar.NewOptions64(max(r.Total, 1), progressbar.OptionSetWriter(os.Stderr),
				progressbar.OptionSetDescription("balances"), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())
		}
		bar.ChangeMax64(max(r.Total, r.Processed, 1))
		_ = bar.Set64(r.Processed) // only the bar suffers
	}
	r, err := l.RunRoll(ctx, asOf, progress)
	if bar != nil {
		_ = bar.Finish()
	}
	if err != nil {
		return err
	}
	log.Info("roll done", "roll_id", r.ID, "as_of", r.AsOf, "due", r.Total, "processed", r.Processed, "duration", r.FinishedAt.Sub(r.StartedAt))
	return nil
}

// toolLedgerStop bounds ending a tool's ledger.
const toolLedgerStop = 10 * time.Second

// withLedger gives do a ledger of its own, for tools that work beside the running service.
func withLedger(ctx context.Context, databaseURL string, log *slog.Logger, do func(*ledger.Ledger) error) (err error) {
	l, err := ledger.Open(ctx, ledger.Config{DatabaseURL: databaseURL, Log: log, Metrics: prometheus.NewRegistry()})
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
