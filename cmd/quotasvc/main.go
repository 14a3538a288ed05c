// Command quotasvc is the quota and ledger service and its tools. `quotasvc --help` lists the commands; every flag has an
// environment variable.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // tenants' time zones must not depend on what the host has installed

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"
)

// exitUsage is the exit status for a wrong command line or configuration, as shells use it.
const exitUsage = 2

// cli is the command line. Its tags are the reference of the configuration: `--help` prints them.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Run the service."`
	Dev     devCmd     `cmd:"" help:"Run the service with a private PostgreSQL and Redis from local binaries, for trying it out."`
	Migrate migrateCmd `cmd:"" help:"Change the database's schema."`
	Apply   applyCmd   `cmd:"" help:"Make the catalogue what a file says."`
	Roll    rollCmd    `cmd:"" help:"Close the periods that are over and open the next ones, for balances nobody has touched."`
	Verify  verifyCmd  `cmd:"" help:"Prove that journal, balances, grants, periods and cached copies agree; exit status 1 if not."`
	Health  healthCmd  `cmd:"" help:"Ask a running service whether it is ready; exit status 1 if not. For container health checks."`
	Version versionCmd `cmd:"" help:"Print the version."`

	Log logConfig `embed:"" prefix:"log-" group:"Logging"`
}

func main() { os.Exit(execute(os.Args[1:])) }

// execute runs one command line and returns the exit status.
func execute(args []string) int {
	unsetEmpty()
	var c cli
	parser, err := kong.New(&c,
		kong.Name("quotasvc"),
		kong.Description("Quotas, prepaid credits and rate limits for product backends: one decision, durable and exactly once."),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 110}),
		kong.Vars{"ops_listen": defaultOpsListen},
	)
	if err != nil {
		panic(err) // the tags above are wrong: every test run finds that
	}
	command, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "quotasvc: %s\n", err)
		return exitUsage
	}
	ctx, stop := untilSignal()
	defer stop()
	command.BindTo(ctx, (*context.Context)(nil))
	log := c.Log.logger(os.Stderr)
	redis.SetLogger(&redisLog{log: log, now: time.Now})
	err = command.Run(log)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "quotasvc: interrupted")
		return exitInterrupted
	}
	if err != nil {
		return report(err)
	}
	return 0
}

// report prints why a command ended and returns its exit status.
func report(err error) int {
	if status, ok := errors.AsType[exitStatus](err); ok {
		return int(status)
	}
	fmt.Fprintf(os.Stderr, "quotasvc: %s\n", err)
	if _, ok := errors.AsType[*configError](err); ok {
		return exitUsage
	}
	return 1
}

// exitStatus ends a command that has printed its own result.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// untilSignal returns a context that ends at the first interrupt or termination signal. The second one ends the process at
// once: whoever sends it does not want to wait for an orderly stop.
func untilSignal() (context.Context, func()) {
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
			fmt.Fprintf(os.Stderr, "quotasvc: %s again: stopping at once\n", s)
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

// exitInterrupted is the status of a command that a signal kept from its end: 128 + SIGINT, as shells report it. For serve
// and dev a signal is the end; they need a second one for this.
const exitInterrupted = 130

// unsetEmpty makes a variable that is set to nothing one that is not set: compose files pass optional settings that way.
func unsetEmpty() {
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if value == "" && strings.HasPrefix(name, "QUOTASVC_") {
			_ = os.Unsetenv(name) // fails on a malformed name only, which cannot come from Environ
		}
	}
}
