package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/diff"
	commands "github.com/quotasvc/quotasvc/internal/cli"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/kit/clock"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/yamldoc"
	"github.com/quotasvc/quotasvc/internal/store/pgpool"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

// applyCmd is the command that stores a catalogue file.
type applyCmd struct {
	databaseConfig
	clockConfig
	commands.Connection

	File     string `short:"f" required:"" placeholder:"FILE" help:"Catalogue file (YAML) with meters, plans, limits and tenants. - reads standard input."`
	DryRun   bool   `name:"dry-run" help:"Show the changes without making them."`
	Prune    bool   `help:"Delete the meters, limits and blocks that the file does not name, each only if the file has the section. A meter in use stays."`
	ExitCode bool   `name:"exit-code" help:"End a dry run that would change something with status 3."`
}

// Run prints the changes that it has made, or with --dry-run the changes that it would make. It stores the whole
// file, or nothing if there is an error.
func (c *applyCmd) Run(ctx context.Context, log *slog.Logger, io *commands.IO) error {
	if c.ExitCode && !c.DryRun {
		return &configError{[]string{"--exit-code: is for --dry-run"}}
	}
	if c.Given() || c.DatabaseURL == "" && c.DatabaseURLFile == "" {
		if _, err := c.Dial(io); err != nil {
			return fmt.Errorf("%w; or set QUOTASVC_DATABASE_URL, to apply it on the database", err)
		}
		text, err := readFile(c.File)
		if err != nil {
			return err
		}
		return c.Connection.Apply(ctx, io, commands.Application{Name: c.File, Text: text, DryRun: c.DryRun, Prune: c.Prune, ExitCode: c.ExitCode})
	}
	var check checker
	c.databaseConfig.check(&check)
	c.clockConfig.check(&check)
	if err := check.err(); err != nil {
		return err
	}
	text, err := readFile(c.File)
	if err != nil {
		return err
	}
	if err := checkSchema(ctx, string(c.DatabaseURL)); err != nil {
		return err
	}
	agreed, err := c.clockOf(ctx, string(c.DatabaseURL), log)
	if err != nil {
		return err
	}
	report, err := applyText(ctx, string(c.DatabaseURL), agreed, text, c.DryRun, c.Prune)
	if err != nil {
		return explainFile(c.File, err)
	}
	changes, err := commands.DiffOf(report)
	if err != nil {
		return err
	}
	return commands.PrintDiff(io, changes, c.JSON, c.ExitCode)
}

func readFile(name string) ([]byte, error) {
	in := os.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("read the catalogue: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, catalog.MaxFile+1)) // +1: ParseFile refuses a longer file
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return text, nil
}

// applyText parses a catalogue and stores it in the database. With dryRun it stores nothing.
func applyText(ctx context.Context, databaseURL string, agreed *clock.Clock, text []byte, dryRun, prune bool) (*diff.Report, error) {
	file, err := catalog.ParseFile(text)
	if err != nil {
		return nil, err
	}
	if err := pgpool.CheckServer(ctx, databaseURL); err != nil {
		return nil, err
	}
	target, err := databaseTarget(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	pool, err := openPool(ctx, databaseURL, catalogPool, catalogConns, nil)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	db := pgstore.New(pool, pgstore.Config{Target: target, Clock: agreed})
	store := catalog.NewStore(db, catalog.StoreConfig{CheckLimit: gate.CheckLimit, CheckRules: gate.CheckRules})
	if prune {
		return store.ApplyPruning(asCommand(ctx, "apply"), file, dryRun)
	}
	return store.Apply(asCommand(ctx, "apply"), file, dryRun)
}

// explainFile returns an error with one line for each problem of the file.
func explainFile(name string, err error) error {
	if problems, ok := errors.AsType[*yamldoc.Error](err); ok {
		return fmt.Errorf("%s is not valid:\n  %s", name, strings.ReplaceAll(problems.Error(), "\n", "\n  "))
	}
	if e, ok := errors.AsType[*errcode.Error](err); ok && len(e.Fields) > 0 {
		lines := make([]string, len(e.Fields))
		for i, f := range e.Fields {
			lines[i] = "\n  " + f.Field + " " + f.Message
		}
		return fmt.Errorf("%s cannot be applied; nothing was changed:%s", name, strings.Join(lines, ""))
	}
	return fmt.Errorf("apply %s: %w", name, err)
}
