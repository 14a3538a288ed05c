package testenv

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // goose needs a database/sql driver
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/deploy/postgres"
	"github.com/quotasvc/quotasvc/migrations"
)

// templateLock is the advisory lock for the creation of a template. The number is
// arbitrary ("quotatpl" in ASCII) and the same in all processes.
const templateLock int64 = 0x71756f746174706c

// templatePrefix begins the name of a template. A long-lived server keeps one
// template of some 8 MB for each tested state of the migrations.
const templatePrefix = "quotasvc_template_"

// ensureTemplate returns the name of a database with all migrations applied. It creates the database if it does not
// exist. A finished template allows no connections. This shows other processes that it is finished. It is also
// necessary, because CREATE DATABASE fails while a connection to the template is open.
func (p *postgresEnv) ensureTemplate(ctx context.Context) (string, error) {
	name, err := templateName(migrations.FS, postgres.RolesSQL, time.Now())
	if err != nil {
		return "", err
	}
	conn, err := pgx.Connect(ctx, p.base.String())
	if err != nil {
		return "", fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(ctx) // releases the lock
	if p.facts, err = readFacts(ctx, conn); err != nil {
		return "", err
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", templateLock); err != nil {
		return "", fmt.Errorf("wait for the template's lock: %w", err)
	}
	var unfinished bool
	err = conn.QueryRow(ctx, "SELECT datallowconn FROM pg_database WHERE datname = $1", name).Scan(&unfinished)
	switch {
	case err == nil && !unfinished:
		return name, makeServiceLogin(ctx, conn)
	case err == nil:
		if err := p.drop(ctx, name); err != nil {
			return "", err
		}
	case !errors.Is(err, pgx.ErrNoRows):
		return "", fmt.Errorf("look for the template: %w", err)
	}
	if err := p.create(ctx, name, ""); err != nil {
		return "", err
	}
	if p.citus != nil {
		if err := errors.Join(prepareCitus(ctx, p.urlOf(name)), easeUpdates(ctx, p.urlOf(name))); err != nil {
			return "", errors.Join(err, p.drop(ctx, name))
		}
		return name, p.citus.CloseTemplate(ctx, name)
	}
	if err := errors.Join(migrate(ctx, p.urlOf(name)), makeServiceLogin(ctx, conn)); err != nil {
		return "", errors.Join(err, p.drop(ctx, name))
	}
	if err := p.exec(ctx, "ALTER DATABASE "+ident(name)+" WITH ALLOW_CONNECTIONS false"); err != nil {
		return "", fmt.Errorf("close the template: %w", err)
	}
	return name, nil
}

// templateName returns a name with a hash of the migrations, the roles' rights and the month, because migrations create
// the current month's partitions.
func templateName(files fs.FS, roles string, now time.Time) (string, error) {
	paths, err := fs.Glob(files, "*.sql")
	if err != nil {
		return "", fmt.Errorf("list migrations: %w", err)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s", now.UTC().Format("2006-01"), roles)
	for _, path := range paths { // sorted by Glob
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return "", fmt.Errorf("read migration: %w", err)
		}
		fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text)
	}
	return templatePrefix + hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// Migrator returns a provider that moves the schema of a database up and down.
func Migrator(t testing.TB, databaseURL string) *goose.Provider {
	t.Helper()
	db, err := sql.Open("pgx", databaseURL)
	require.NoError(t, err, "open database")
	t.Cleanup(func() { _ = db.Close() })
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS)
	require.NoError(t, err, "read migrations")
	return provider
}

// migrate applies all migrations to a database and then grants the rights of the roles.
func migrate(ctx context.Context, databaseURL string) error {
	return migrateThen(ctx, databaseURL, func() error { return nil })
}

// migrateThen applies all migrations to a database, calls the function `then`, and grants the rights of the roles.
func migrateThen(ctx context.Context, databaseURL string, then func() error) (err error) {
	db, err := sql.Open("pgx", databaseURL)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("apply migrations: %w", err)
	}
	if err := then(); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, postgres.RolesSQL); err != nil {
		return fmt.Errorf("make the roles: %w", err)
	}
	return nil
}
