package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/quotasvc/quotasvc/internal/ledger/archive"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
	"github.com/quotasvc/quotasvc/internal/ledger/verifier"
)

// archiveCmd is the command that moves old months of the journal from the database into files.
type archiveCmd struct {
	databaseConfig
	Before string `required:"" placeholder:"YYYY-MM" help:"Archive the months before this one. It can be at most the month of 32 days ago, because keys are remembered for 31 days."`
	To     string `required:"" type:"path" placeholder:"DIR" help:"Directory for the archive. It must be new or empty, or have files of an interrupted run of the same archive: then this run continues it."`
	DryRun bool   `help:"Print the months that would be archived, with rows and bytes, and change nothing."`
}

// Run archives old months and prints what it has done. With --dry-run it prints only what it would do.
func (c *archiveCmd) Run(ctx context.Context, log *slog.Logger) error {
	var check checker
	c.databaseConfig.check(&check)
	before, err := journal.ParseMonth(c.Before)
	check.require(err == nil, "--before", "%v", err)
	if err := check.err(); err != nil {
		return err
	}
	if err := checkSchema(ctx, string(c.DatabaseURL)); err != nil {
		return err
	}
	progress, finish := archiveProgress()
	out, err := c.archive(ctx, before, log, progress)
	finish()
	if refusal, ok := errors.AsType[*archive.Refusal](err); ok {
		check.require(false, refusal.Option, "%s", refusal.Reason)
		return check.err()
	}
	if err != nil {
		return err
	}
	return printArchive(os.Stdout, out, c.To, c.DryRun)
}

func (c *archiveCmd) archive(ctx context.Context, before journal.Month, log *slog.Logger, progress func(archive.Progress)) (out *archive.Result, err error) {
	target, err := databaseTarget(ctx, string(c.DatabaseURL))
	if err != nil {
		return nil, err
	}
	sums, err := history.OpenRollups(ctx, history.RollupConfig{Target: target, DatabaseURL: string(c.DatabaseURL), Log: log, Metrics: prometheus.NewRegistry()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sums.Stop(ctx)) }()
	err = withVerifier(ctx, string(c.DatabaseURL), log, func(v *verifier.Verifier) error {
		var err error
		out, err = archive.Run(asCommand(ctx, "archive"), archive.Options{
			DatabaseURL: string(c.DatabaseURL), Before: before, Dir: c.To, DryRun: c.DryRun, Log: log, Progress: progress,
			Verify:     func(ctx context.Context) error { return verifyClean(v.Verify(ctx, verifier.Options{Full: true})) },
			Checkpoint: func(ctx context.Context, border time.Time) error { return verifyClean(v.Pin(ctx, border, nil)) },
			Rollup:     sums.RollupTo,
		})
		return err
	})
	return out, err
}

// verifyClean returns an error if a verification has failed, has found differences, or has not read all balances. It
// prints the differences.
func verifyClean(report *audit.Report, err error) error {
	if err != nil || report.Clean() {
		return err
	}
	if err := printReport(os.Stderr, report); err != nil {
		return err
	}
	return fmt.Errorf("verify has found %d differences, and could not read %d balances: nothing was archived", report.Count, report.Unread)
}

// archiveProgress shows the present step of the archive and the number of its rows, if the output is a terminal.
func archiveProgress() (progress func(archive.Progress), finish func()) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return func(archive.Progress) {}, func() {}
	}
	bar := progressbar.NewOptions64(-1, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())
	return func(p archive.Progress) {
		bar.Describe(p.Step)
		_ = bar.Set64(p.Rows) // an error affects only the display
	}, func() { _ = bar.Finish() }
}

func printArchive(out io.Writer, r *archive.Result, dir string, dryRun bool) error {
	if r.Nothing {
		_, err := fmt.Fprintln(out, "no month can be archived")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "month\tentries\tbytes in the database\t")
	for _, m := range r.Months {
		fmt.Fprintf(table, "%s\t%d\t%d\t\n", m.Month, m.Rows, m.Bytes)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if dryRun {
		_, err := fmt.Fprintf(out, "%d months would be archived to %s; the oldest instant for queries would be %s\n",
			len(r.Months), dir, r.Oldest.Format(time.RFC3339))
		return err
	}
	_, err := fmt.Fprintf(out, "%s: %d files, %d rows, %d bytes. The oldest instant for queries is %s\n",
		dir, len(r.Manifest.Files), r.Manifest.Rows(), r.Manifest.Bytes(), r.Oldest.Format(time.RFC3339))
	return err
}

// verifyArchive compares the files of an archive with its manifest, and the archive with the database. It prints the
// result.
func verifyArchive(ctx context.Context, databaseURL, dir string, log *slog.Logger) error {
	progress, finish := archiveProgress()
	report, err := archive.Check(ctx, archive.CheckOptions{DatabaseURL: databaseURL, Dir: dir, Log: log, Progress: progress})
	finish()
	if err != nil {
		return err
	}
	printDifferences(os.Stdout, report.Differences, report.Count)
	verdict := "all agree"
	if !report.Clean() {
		verdict = fmt.Sprintf("%d DIFFERENCES", report.Count)
	}
	m := report.Manifest
	fmt.Fprintf(os.Stdout, "archive of %d months before %s: %d files, %d entries of %d balances: %s\n",
		len(m.Months), m.Before, len(m.Files), report.Entries, report.Balances, verdict)
	if !report.Clean() {
		return exitStatus(1)
	}
	return nil
}
