package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/diff"
	"github.com/quotasvc/quotasvc/internal/clock"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/pgpool"
	"github.com/quotasvc/quotasvc/internal/yamldoc"
)

// catalogConns is the size of the catalogue's connection pool. Writes are rare, and reads are batched.
const catalogConns = 4

// applyCmd stores a catalogue file.
type applyCmd struct {
	databaseConfig
	clockConfig
	File   string `short:"f" required:"" placeholder:"FILE" help:"Catalogue file (YAML) with meters, plans, limits and tenants. - reads standard input."`
	DryRun bool   `name:"dry-run" help:"Show the changes without making them."`
}

// Run prints the changes that it made, or with --dry-run would make. It stores the whole file or nothing.
func (c *applyCmd) Run(ctx context.Context, log *slog.Logger) error {
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
	diff, err := applyText(ctx, string(c.DatabaseURL), agreed, text, c.DryRun)
	if err != nil {
		return explainFile(c.File, err)
	}
	_, err = io.WriteString(os.Stdout, diff.String())
	return err
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
	text, err := io.ReadAll(io.LimitReader(in, catalog.MaxFile+1)) // one byte more, so that ParseFile rejects a file that is too long
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return text, nil
}

// applyText parses and applies a catalogue.
func applyText(ctx context.Context, databaseURL string, agreed *clock.Clock, text []byte, dryRun bool) (*diff.Report, error) {
	file, err := catalog.ParseFile(text)
	if err != nil {
		return nil, err
	}
	if err := pgpool.CheckSessions(ctx, databaseURL); err != nil {
		return nil, err
	}
	target, err := databaseTarget(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	pool, err := newCatalogPool(ctx, databaseURL, nil)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	store, err := catalog.NewStore(pool, catalog.StoreConfig{Target: target, CheckLimit: gate.CheckLimit, CheckRules: gate.CheckRules, Clock: agreed})
	if err != nil {
		return nil, err
	}
	return store.Apply(asCommand(ctx, "apply"), file, dryRun)
}

// explainFile returns an error with one line per problem of the file.
func explainFile(name string, err error) error {
	if problems, ok := errors.AsType[*yamldoc.Error](err); ok {
		return fmt.Errorf("%s is not valid:\n  %s", name, strings.ReplaceAll(problems.Error(), "\n", "\n  "))
	}
	if e, ok := errors.AsType[*catalog.Error](err); ok && len(e.Fields) > 0 {
		lines := make([]string, len(e.Fields))
		for i, f := range e.Fields {
			lines[i] = "\n  " + f.Field + " " + f.Message
		}
		return fmt.Errorf("%s cannot be applied; nothing was changed:%s", name, strings.Join(lines, ""))
	}
	return fmt.Errorf("apply %s: %w", name, err)
}

func newCatalogPool(ctx context.Context, databaseURL string, login *pgpool.Login) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", redactedParse(err))
	}
	cfg.MaxConns = catalogConns
	cfg.BeforeConnect = login.Apply
	cfg.ConnConfig.RuntimeParams["application_name"] = "quotasvc-catalog"
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the catalogue's pool: %w", err)
	}
	return pool, nil
}
