package localstack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// connectTimeout is the time limit of one attempt to connect to a starting server.
	connectTimeout = 2 * time.Second

	// strangerGrace is the time in which the child must find that its port is in use, and exit. It begins when
	// another server refuses a connection on that port.
	strangerGrace = time.Second

	// These are PostgreSQL's error codes, from appendix A of its manual.
	codeInvalidPassword    = "28P01"
	codeCannotConnectNow   = "57P03" // starting, stopping or in recovery
	codeTooManyConnections = "53300"
	codeDuplicateDatabase  = "42P04"
	codeObjectInUse        = "55006"
)

// ensureData creates the cluster if it does not exist. The cluster has another name until it is complete. So an
// interrupted first start leaves no incomplete cluster.
func (p *Postgres) ensureData(ctx context.Context) error {
	passwordFile := filepath.Join(p.dir, "password")
	if _, err := os.Stat(p.dataDir()); err == nil {
		text, err := os.ReadFile(passwordFile)
		if err != nil {
			return fmt.Errorf("the data exists but its password does not: %w (move %s away to start from scratch)", err, p.dir)
		}
		setIfChanged(&p.password, strings.TrimSpace(string(text)))
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("data directory: %w", explainPermission(p.dir, err))
	}
	fresh := p.dataDir() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove an unfinished data directory: %w", err)
	}
	var err error
	switch {
	case p.cfg.From != nil:
		err = p.adopt(fresh, passwordFile)
	case p.cfg.Cache == "":
		p.log.Info("creating the PostgreSQL data directory; this happens once and takes a few seconds",
			"dir", p.dir, "version", p.bin.Version)
		p.password = rand.Text()
		err = p.initdb(ctx, fresh, passwordFile)
	default:
		p.password, err = p.copyCached(ctx, fresh, passwordFile)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(fresh))
	}
	if err := os.Rename(fresh, p.dataDir()); err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	return nil
}

// initdb creates a cluster in dir with p.password.
func (p *Postgres) initdb(ctx context.Context, dir, passwordFile string) error {
	if err := writeSecret(passwordFile, p.password, p.as); err != nil {
		return err
	}
	args := append(initdbArgs(p.cfg.Durable), "--pgdata="+dir, "--pwfile="+passwordFile)
	_, err := runTool(ctx, command{path: filepath.Join(p.bin.Dir, "initdb"), args: args, dir: p.dir, as: p.as})
	if err != nil {
		return fmt.Errorf("create PostgreSQL data: %w", err)
	}
	return nil
}

// initdbArgs returns the options of initdb for a new cluster. The options set the collation C and UTF-8, so that text
// is ordered by byte on every machine, and require a password for every connection.
func initdbArgs(durable bool) []string {
	args := []string{
		"--username=" + Superuser, "--encoding=UTF8", "--locale=C",
		"--auth=scram-sha-256", "--no-instructions",
	}
	if !durable {
		args = append(args, "--no-sync")
	}
	return args
}

// writeSecret writes a file that only u and root can read.
func writeSecret(path, secret string, u runUser) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("write password: %w", err)
	}
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		return fmt.Errorf("write password: %w", err)
	}
	if u.zero() {
		return nil
	}
	return own(path, u)
}

// awaitReady waits until the server answers. It compares the data directory in the answer with the directory of this
// server, because another server may have taken the port.
func (p *Postgres) awaitReady(ctx context.Context) error {
	var last error
	err := poll(ctx, func() bool {
		if p.proc.exited() {
			return true
		}
		last = p.probe(ctx)
		return last == nil || refused(last)
	})
	switch {
	case p.proc.exited():
		return fmt.Errorf("it exited: %w", p.proc.err)
	case err != nil:
		return fmt.Errorf("it did not answer in time: %w (last: %w)", err, last)
	case last == nil:
		return nil
	}
	grace, cancel := context.WithTimeout(ctx, strangerGrace)
	defer cancel()
	if p.proc.wait(grace) == nil {
		return fmt.Errorf("it exited: %w", p.proc.err)
	}
	if hasCode(last, codeInvalidPassword) {
		return fmt.Errorf("the password in %s is not the data's: %w", filepath.Join(p.dir, "password"), last)
	}
	return fmt.Errorf("it refuses to answer: %w", last)
}

// refused reports whether the server has returned an error that will not end by itself.
func refused(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && !hasCode(err, codeCannotConnectNow, codeTooManyConnections)
}

func (p *Postgres) probe(ctx context.Context) error {
	var dir string
	if err := p.query(ctx, "SELECT current_setting('data_directory')", &dir); err != nil {
		return err
	}
	if dir != p.dataDir() {
		return fmt.Errorf("a server on port %d answers that is not ours (its data is in %s)", p.port, dir)
	}
	return nil
}

// query runs sql on the maintenance database and scans its single value.
func (p *Postgres) query(ctx context.Context, sql string, dest any) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.QueryRow(ctx, sql).Scan(dest)
}

// connect opens a connection to the maintenance database, which always exists.
func (p *Postgres) connect(ctx context.Context) (*pgx.Conn, error) {
	return p.connectTo(ctx, "postgres")
}

func (p *Postgres) connectTo(ctx context.Context, database string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(p.URL())
	if err != nil {
		return nil, fmt.Errorf("own database URL: %w", err)
	}
	cfg.Database = database
	cfg.RuntimeParams = nil // ignores the PGOPTIONS of the caller's environment
	return pgx.ConnectConfig(ctx, cfg)
}

// ensureDatabase creates the database that URL names. A copied cluster already contains this database.
func (p *Postgres) ensureDatabase(ctx context.Context) error {
	if p.cfg.From != nil {
		return nil
	}
	conn, err := p.connect(ctx)
	if err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{Superuser}.Sanitize())
	if err != nil && !hasCode(err, codeDuplicateDatabase) {
		return fmt.Errorf("create database: %w", err)
	}
	return nil
}

func hasCode(err error, codes ...string) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && slices.Contains(codes, pgErr.Code)
}
