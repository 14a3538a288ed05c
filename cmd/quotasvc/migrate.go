package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the database driver that goose uses
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/quotasvc/quotasvc/deploy/postgres"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
	"github.com/quotasvc/quotasvc/internal/report/denial"
	"github.com/quotasvc/quotasvc/internal/store/pgpool"
	"github.com/quotasvc/quotasvc/migrations"
)

const (
	// migrateTimeout is the maximum time of a whole migration. Its steps are short. If a step waits this long for a
	// lock, an operator must find out why.
	migrateTimeout = 5 * time.Minute

	// A migration waits for the migration of another instance: lockTries times, each for lockEvery seconds. That is
	// one minute.
	lockEvery = 1 // in seconds
	lockTries = 60
)

// migrateCmd has the commands that change or list the steps of the database's schema.
type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Apply all missing steps."`
	Status migrateStatusCmd `cmd:"" help:"List the steps. Exit status 1 if a step is missing."`
	Down   migrateDownCmd   `cmd:"" help:"Undo the newest step. Data in tables and columns that it created is lost."`

	Partitions migratePartitionsCmd `cmd:"" help:"Create the journal's partitions for the next twelve months. Run this every month, as the role that owns the tables."`
	Roles      migrateRolesCmd      `cmd:"" help:"Create the roles quotasvc_owner, quotasvc_service and quotasvc_reader, and set their rights. The first time, run this as an administrator of the database."`
}

type migrateUpCmd struct {
	databaseConfig

	Citus       bool `help:"Distribute the tables over the nodes of a Citus cluster. Needed once; later runs place new tables by themselves."`
	CitusShards int  `default:"32" help:"With --citus: number of shard groups. Choose about eight for each node that the cluster may have one day, because the number is hard to change later."`
}

// Run applies all missing steps of the schema.
func (c *migrateUpCmd) Run(ctx context.Context, log *slog.Logger) error {
	if err := c.validate(); err != nil {
		return err
	}
	if c.CitusShards < 1 || c.CitusShards > citusShardsMax {
		return fmt.Errorf("--citus-shards is %d; must be between 1 and %d", c.CitusShards, citusShardsMax)
	}
	if !c.Citus {
		return migrateUp(ctx, string(c.DatabaseURL), log)
	}
	return migrateUpOn(ctx, string(c.DatabaseURL), log, c.CitusShards)
}

type migrateStatusCmd struct{ databaseConfig }

// Run prints one line for each step of the schema.
func (c *migrateStatusCmd) Run(ctx context.Context, _ *slog.Logger) error {
	if err := c.validate(); err != nil {
		return err
	}
	return withMigrations(ctx, string(c.DatabaseURL), func(ctx context.Context, p *goose.Provider) error {
		steps, err := p.Status(ctx)
		if err != nil {
			return fmt.Errorf("read the schema's state: %w", err)
		}
		missing := 0
		out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		for _, s := range steps {
			at := "missing"
			if s.State == goose.StateApplied {
				at = s.AppliedAt.UTC().Format(time.RFC3339)
			} else {
				missing++
			}
			fmt.Fprintf(out, "%s\t%s\n", s.Source.Path, at)
		}
		if err := out.Flush(); err != nil {
			return err
		}
		if missing > 0 {
			return exitStatus(1)
		}
		return nil
	})
}

type migrateDownCmd struct{ databaseConfig }

// Run undoes the newest step of the schema.
func (c *migrateDownCmd) Run(ctx context.Context, log *slog.Logger) error {
	if err := c.validate(); err != nil {
		return err
	}
	return withMigrations(ctx, string(c.DatabaseURL), func(ctx context.Context, p *goose.Provider) error {
		current, err := p.GetDBVersion(ctx)
		if err != nil {
			return fmt.Errorf("read the schema's version: %w", err)
		}
		if current == 0 {
			return errors.New("the schema is empty: there is nothing to undo")
		}
		result, err := p.Down(ctx)
		if err != nil {
			return fmt.Errorf("undo step %d: %w", current, err)
		}
		log.Info("schema step undone", "step", result.Source.Path, "duration", result.Duration)
		return nil
	})
}

// migrateUp applies all missing steps of the schema. Several instances may call it at the same time. If the database
// is distributed over a Citus cluster, it also distributes the new tables.
func migrateUp(ctx context.Context, databaseURL string, log *slog.Logger) error {
	return migrateUpOn(ctx, databaseURL, log, 0)
}

// migrateUpOn does the same as migrateUp. If shards is above 0, it also distributes the tables of a database that is
// not distributed yet.
func migrateUpOn(ctx context.Context, databaseURL string, log *slog.Logger, shards int) error {
	return withMigrations(ctx, databaseURL, func(ctx context.Context, p *goose.Provider) error {
		results, err := p.Up(ctx)
		for _, r := range results {
			log.Info("schema step applied", "step", r.Source.Path, "duration", r.Duration)
		}
		if err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		if len(results) == 0 {
			log.Info("schema is up to date")
		}
		if err := distribute(ctx, databaseURL, log, shards); err != nil {
			return err
		}
		if err := makePartitions(ctx, databaseURL, log); err != nil {
			log.Warn("journal partitions or indexes were not made; quotasvc migrate up tries again, and for partitions migrate partitions and the service", "error", err)
		}
		return setRights(ctx, databaseURL, log, ownedByRole)
	})
}

type migratePartitionsCmd struct{ databaseConfig }

// Run creates the partitions for the coming time, drops old partitions of the table of denials, and creates indexes
// that partitions lack.
func (c *migratePartitionsCmd) Run(ctx context.Context, log *slog.Logger) error {
	if err := c.validate(); err != nil {
		return err
	}
	if err := checkSchema(ctx, string(c.DatabaseURL)); err != nil {
		return err
	}
	return makePartitions(ctx, string(c.DatabaseURL), log)
}

type migrateRolesCmd struct{ databaseConfig }

// Run creates the database roles and sets their rights.
func (c *migrateRolesCmd) Run(ctx context.Context, log *slog.Logger) error {
	if err := c.validate(); err != nil {
		return err
	}
	return setRights(ctx, string(c.DatabaseURL), log, "SELECT true")
}

// ownedByRole is the query that returns whether the tables belong to quotasvc_owner, that is, whether the roles are
// in use.
const ownedByRole = `SELECT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('entries') AND pg_get_userbyid(relowner) = '` + postgres.OwnerRole + `')`

// setRights creates the database roles and sets their rights, if the query `when` returns true.
func setRights(ctx context.Context, databaseURL string, log *slog.Logger, when string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return redactedParse(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // there is nothing left to write
	var wanted bool
	if err := conn.QueryRow(ctx, when).Scan(&wanted); err != nil {
		return fmt.Errorf("look for the owner of the tables: %w", err)
	}
	if !wanted {
		return nil
	}
	if _, err := conn.Exec(ctx, postgres.RolesSQL); err != nil {
		return fmt.Errorf("set the roles' rights: %w", err)
	}
	log.Info("the rights of the roles are set", "owner", postgres.OwnerRole, "service", postgres.ServiceRole, "reader", postgres.ReaderRole)
	return nil
}

// makePartitions creates the journal's partitions for the coming months, and the partitions of denials for the coming
// weeks. It drops old partitions. It also creates indexes that partitions lack. If it cannot do one of these, it goes on
// with the others.
func makePartitions(ctx context.Context, databaseURL string, log *slog.Logger) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return redactedParse(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // there is nothing left to write
	j := journal.New(log)
	var now time.Time
	if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		return err
	}
	err = errors.Join(j.MakeAhead(ctx, conn, journal.MonthOf(now)), denial.Maintain(ctx, conn, now, log), j.BuildIndexes(ctx, conn))
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == "55P03" {
		return fmt.Errorf("%w\nAnother session uses these tables, such as a dump or a report. All other partitions were processed. "+
			"Run `quotasvc migrate partitions` again when that session has ended", err)
	}
	return err
}

// errSchemaBehind is the error for a schema that lacks steps. The service must not start on such a schema.
var errSchemaBehind = errors.New("the database's schema is behind this version of quotasvc: run `quotasvc migrate up` first, or start with --migrate")

// checkSchema returns errSchemaBehind if steps of the schema are missing. It accepts a newer schema, because after
// each step the previous version of the program still works.
func checkSchema(ctx context.Context, databaseURL string) error {
	return withMigrations(ctx, databaseURL, func(ctx context.Context, p *goose.Provider) error {
		current, wanted, err := p.GetVersions(ctx)
		if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == "42501" {
			return fmt.Errorf("%w (there are no tables, or this role may not read them: see `quotasvc migrate roles`)", errSchemaBehind)
		}
		if err != nil {
			return fmt.Errorf("read the schema's version: %w", err)
		}
		if current < wanted {
			return fmt.Errorf("%w (it is at step %d of %d)", errSchemaBehind, current, wanted)
		}
		return nil
	})
}

func withMigrations(ctx context.Context, databaseURL string, do func(context.Context, *goose.Provider) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	if err := pgpool.CheckServer(ctx, databaseURL); err != nil { // the migration lock belongs to a session
		return err
	}
	db, err := sql.Open("pgx", databaseURL)
	if err != nil {
		return fmt.Errorf("open database: %w", redactedParse(err))
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(2) // one connection is for the migration lock
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockEvery, lockTries))
	if err != nil {
		return fmt.Errorf("migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS,
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	return do(ctx, provider)
}
