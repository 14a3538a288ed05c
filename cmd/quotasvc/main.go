// Command quotasvc runs the quota and ledger service, and has the tools for it. `quotasvc --help` lists the commands.
// Every flag has an environment variable.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	_ "time/tzdata" // the host may have no time zone database

	"github.com/alecthomas/kong"

	commands "github.com/quotasvc/quotasvc/internal/cli"
	"github.com/quotasvc/quotasvc/internal/kit/clock"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// exitUsage is the exit status after an error in the command line or the configuration, as in shells.
const exitUsage = 2

// exitWouldChange is the exit status of a dry run with --exit-code if the run without --dry-run would change data.
const exitWouldChange = 3

// cli is the command line. `--help` prints the texts of its tags, which describe all settings.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Run the service."`
	Dev     devCmd     `cmd:"" help:"Run the service for a trial, with a private PostgreSQL and Redis from local binaries."`
	Migrate migrateCmd `cmd:"" help:"Change the database's schema."`
	Apply   applyCmd   `cmd:"" help:"Apply a catalogue file: create and update meters, plans, limits and tenants. Over the API if --url is set, else on the database."`
	Roll    rollCmd    `cmd:"" help:"Close ended periods and open the next ones, for idle balances."`
	Verify  verifyCmd  `cmd:"" help:"Check that journal, balances, grants, periods and cached copies agree. Exit status 1 if they do not."`
	Archive archiveCmd `cmd:"" help:"Export old months of the journal to Parquet files, and take them out of the database."`
	Keys    keysCmd    `cmd:"" help:"Create, list, rotate and revoke the keys of callers."`
	Seal    sealCmd    `cmd:"" help:"Seal a day of the journal, so that somebody else can prove later that it was not changed."`
	Health  healthCmd  `cmd:"" help:"Check whether a running service is ready. Exit status 1 if it is not. For container health checks."`
	Version versionCmd `cmd:"" help:"Print the version."`

	commands.Commands `embed:""`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`

	Log logConfig `embed:"" prefix:"log-" group:"Logging"`
}

func main() { os.Exit(execute(os.Args[1:])) }

// execute runs one command line, and returns the exit status of the process.
func execute(args []string) int {
	unsetEmpty()
	var c cli
	parser, err := kong.New(&c,
		kong.Name("quotasvc"),
		kong.Description("Quotas, prepaid credits and rate limits for product backends: one decision, durable and exactly once."),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 110}),
		kong.Vars{"listen": defaultListen, "ops_listen": defaultOpsListen, "clock_skew_max": clock.SkewMaxDefault.String(), "version": versionLine()},
	)
	if err != nil {
		panic(err) // a tag of cli is invalid; every test run would find this
	}
	command, err := parser.Parse(args)
	level := &slog.LevelVar{}
	lines := c.Log.handler(os.Stderr, level)
	defer lines.queue.end()
	defer lines.endAll()
	if err != nil { // perhaps of serve, with a wrong environment
		neverWait(lines.queue)
		lines.queue.print(fmt.Sprintf("quotasvc: %s\n", err))
		return exitUsage
	}
	if name := command.Command(); name == "serve" || name == "dev" {
		neverWait(lines.queue)
	}
	ctx, stop := untilSignal(lines.queue)
	defer stop()
	command.BindTo(ctx, (*context.Context)(nil))
	log := slog.New(lines)
	slog.SetDefault(log) //nolint:forbidigo // for libraries that write to package log: they must not wait for its reader
	command.Bind(level, lines, commands.Terminal(), parser)
	command.Bind(hangups())
	warnCommandLine(command, log)
	redisstore.SetLogger(redisLog{log})
	err = command.Run(log)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		lines.queue.print("quotasvc: interrupted\n")
		return exitInterrupted
	}
	if err != nil {
		return report(err, lines.queue)
	}
	return 0
}

// neverWait makes the service independent of the readers of its output. Lines of the log wait in memory, and a write to
// a pipe whose reader is gone fails. Otherwise SIGPIPE would end the process. The signal is received and not ignored,
// because child processes would inherit that. Other commands wait and end, as programs in a terminal do.
func neverWait(queue *logQueue) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	queue.start()
}

// report prints the error with which a command has ended, and returns the exit status.
func report(err error, out *logQueue) int {
	if status, ok := errors.AsType[exitStatus](err); ok {
		return int(status)
	}
	if errors.Is(err, commands.ErrWouldChange) {
		return exitWouldChange
	}
	out.print("quotasvc: " + strings.TrimPrefix(err.Error(), "quotasvc: ") + "\n")
	if _, ok := errors.AsType[*configError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*commands.UsageError](err); ok {
		return exitUsage
	}
	return 1
}

// exitStatus is the error of a command that has already printed its result. The process prints nothing more, and exits
// with this status.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// hangups returns a channel that receives each SIGHUP. Because the program receives the signal, the signal does not end
// the process. After a SIGHUP, serve reads its secrets again. Other commands ignore the signal.
func hangups() chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c
}

// untilSignal returns a context that ends at the first interrupt or termination signal. The second signal ends the
// process at once, without stopping its parts in order. Before that, a line is written to out.
func untilSignal(out *logQueue) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
			cancel()
		case <-done:
			return
		}
		select {
		case s := <-signals:
			out.print(fmt.Sprintf("quotasvc: second signal (%s): stopping at once\n", s))
			out.end()
			os.Exit(exitInterrupted)
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

// exitInterrupted is the exit status of a command that a signal interrupted: 128 + SIGINT, as in shells. serve and
// dev stop in order after the first signal. They have this status only after a second signal.
const exitInterrupted = 130

// unsetEmpty unsets environment variables with an empty value. In a Compose file, an optional setting that is not set
// becomes an empty variable.
func unsetEmpty() {
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if value == "" && strings.HasPrefix(name, "QUOTASVC_") {
			_ = os.Unsetenv(name) // it fails only for a malformed name, which Environ does not return
		}
	}
}
