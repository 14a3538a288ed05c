package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/quotasvc/quotasvc/internal/gate/balances"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/ledger/audit/seal"
	"github.com/quotasvc/quotasvc/internal/ledger/verifier"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// verifyCmd is the command that compares the journal with the balances, and with the copies of balances in Redis.
type verifyCmd struct {
	databaseConfig
	redisConfig
	Tenant  string `placeholder:"ID" help:"Verify only this tenant."`
	Full    bool   `help:"Read the whole journal. Without it, a journal with more than a million entries is read from the last clean verification on. If a full verification of all tenants is interrupted, the next one continues it."`
	JSON    bool   `name:"json" help:"Print the report as JSON, with the members of GET /v1/verifications/{verification_id}."`
	Archive string `type:"path" placeholder:"DIR" help:"Verify an archive instead: its files, and that the database continues where it ends. Exit status 1 if not."`
	Seal    string `type:"path" placeholder:"FILE" help:"Verify a seal instead: that the journal up to its day was not changed. Exit status 1 if not."`
	SealKey string `placeholder:"KEY" help:"Public key that must have signed the seal."`
}

// Run prints how many rows were compared, and the differences, up to a maximum number. It returns an error if there
// is a difference.
func (c *verifyCmd) Run(ctx context.Context, log *slog.Logger) error {
	var check checker
	c.databaseConfig.check(&check)
	c.redisConfig.check(&check)
	check.require(c.Archive == "" || c.Tenant == "", "--archive", "cannot be combined with --tenant")
	check.require(c.Seal == "" || c.Tenant == "" && c.Archive == "", "--seal", "cannot be combined with --tenant or --archive")
	check.require(!c.JSON || c.Archive == "" && c.Seal == "", "--json", "cannot be combined with --archive or --seal")
	check.require(c.SealKey == "" || c.Seal != "", "--seal-key", "needs --seal")
	if err := check.err(); err != nil {
		return err
	}
	var held *seal.Seal
	if c.Seal != "" {
		var err error
		if held, err = readSeal(c.Seal, c.SealKey); err != nil {
			return err
		}
	}
	if err := checkSchema(ctx, string(c.DatabaseURL)); err != nil {
		return err
	}
	if c.Archive != "" {
		return verifyArchive(ctx, string(c.DatabaseURL), c.Archive, log)
	}
	if held != nil {
		return verifySeal(ctx, string(c.DatabaseURL), held, log)
	}
	return withVerifier(ctx, string(c.DatabaseURL), log, func(v *verifier.Verifier) error {
		options := verifier.Options{Tenant: c.Tenant, Full: c.Full}
		if c.RedisURL != "" {
			store, err := redisstore.Open(string(c.RedisURL), redisstore.Config{})
			if err != nil {
				return err
			}
			defer func() { _ = errors.Join(store.Stop(ctx), store.Close()) }() // the store has written nothing
			options.Copies = balances.New(store, balances.Config{}).Stored
		}
		show, finish := countingBar("entries")
		options.Progress = func(r audit.Report) { show(r.Entries) }
		began := time.Now()
		report, err := v.Verify(ctx, options)
		finish()
		if err != nil {
			return err
		}
		if err := v.EmitDrift(ctx, c.Tenant, report); err != nil { // the report is printed even on a read-only database
			log.Warn("the events for the differences were not stored", "error", err)
		}
		if c.JSON {
			err = printJSON(os.Stdout, c.Tenant, report, began)
		} else {
			err = printReport(os.Stdout, report)
		}
		if err != nil {
			return err
		}
		if !report.Clean() {
			return exitStatus(1)
		}
		return nil
	})
}

// withVerifier calls the function `do` with a verifier that only this command uses, beside the verifier of a running
// service.
func withVerifier(ctx context.Context, databaseURL string, log *slog.Logger, do func(*verifier.Verifier) error) (err error) {
	target, err := databaseTarget(ctx, databaseURL)
	if err != nil {
		return err
	}
	v, err := verifier.Open(ctx, verifier.Config{Target: target, DatabaseURL: databaseURL, Log: log, Metrics: prometheus.NewRegistry()})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), toolLedgerStop)
		defer cancel()
		if stopErr := v.Stop(ctx); err == nil && stopErr != nil {
			err = fmt.Errorf("stop: %w", stopErr)
		}
	}()
	return do(v)
}

// countingBar returns a function that shows how many rows were read so far, such as entries, and a function that
// removes the bar. Both do nothing if the output is no terminal. The bar shows no total, because counting all rows
// would need a scan of the table.
func countingBar(rows string) (show func(int64), finish func()) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return func(int64) {}, func() {}
	}
	bar := progressbar.NewOptions64(-1, progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetDescription(rows), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())
	show = func(n int64) { _ = bar.Set64(n) } // an error affects only the display
	return show, func() { _ = bar.Finish() }
}

// printJSON prints the report in the JSON form of the API. Its verification_id is empty.
func printJSON(out io.Writer, tenant string, r *audit.Report, began time.Time) error {
	v := verifier.Verification{Tenant: tenant, Report: *r, StartedAt: began, FinishedAt: began.Add(r.Elapsed)}
	v.Status, v.Error = verifier.Outcome(r)
	text, err := json.MarshalIndent(answers.Verification(&v), "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	_, err = fmt.Fprintf(out, "%s\n", text)
	return err
}

// printDifferences prints the differences in list. The argument count is the number of all differences. If list does
// not contain all of them, printDifferences also prints how many are missing.
func printDifferences[D any](out io.Writer, list []D, count int64) {
	for _, d := range list {
		fmt.Fprintln(out, d)
	}
	if more := count - int64(len(list)); more > 0 {
		fmt.Fprintf(out, "... and %d more\n", more)
	}
}

func printReport(out io.Writer, r *audit.Report) error {
	printDifferences(out, r.Differences, r.Count)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "meter\tissued\tused\texpired\tremaining\theld\t")
	for _, meter := range slices.Sorted(maps.Keys(r.Totals)) {
		t := r.Totals[meter]
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t\n", meter, t.Issued, t.Used, t.Expired, t.Remaining, t.Held)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	compared := fmt.Sprintf("%d balances, %d entries, %d grants, %d closed periods", r.Balances, r.Entries, r.Grants, r.Periods)
	if r.CopiesCompared {
		compared += fmt.Sprintf(", %d cached copies (%d of them due for renewal)", r.Copies, r.StaleCopies)
	}
	if r.Incremental {
		compared += fmt.Sprintf(" since the last clean verification (%d balances unchanged)", r.Unchanged)
	}
	if !r.CopiesCompared {
		compared += "; cached copies were not compared (no Redis is configured)"
	}
	verdict := "all agree"
	switch {
	case r.Count > 0:
		verdict = fmt.Sprintf("%d DIFFERENCES", r.Count)
	case r.Unread > 0:
		verdict = "all others agree"
	}
	if r.Unread > 0 {
		verdict += fmt.Sprintf(", %d balances NOT READ (a time-out or a lock), the first: %v", r.Unread, r.UnreadFirst[0])
	}
	_, err := fmt.Fprintf(out, "%s: %s (%s)\n", compared, verdict, r.Elapsed.Round(1e6))
	return err
}
