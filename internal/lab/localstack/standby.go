package localstack

import (
	"context"
	"fmt"
	"strings"
)

// AddStandby starts a synchronous standby of the running server from a base backup, and returns when every commit
// waits for the standby. cfg needs a Dir; AddStandby sets cfg.From. After its promotion, the standby commits without
// waiting, until it has a standby itself.
func (p *Postgres) AddStandby(ctx context.Context, name string, cfg PostgresConfig) (*Postgres, error) {
	ctx, cancel := withDefaultTimeout(ctx, defaultStartTimeout)
	defer cancel()
	backup, err := p.Backup(ctx, name)
	if err != nil {
		return nil, err
	}
	cfg.From = &Origin{
		Backup: backup, Password: p.password, Signal: SignalStandby,
		Settings: map[string]string{
			"primary_conninfo":          fmt.Sprintf("host=%s port=%d user=%s password=%s", loopback, p.port, Superuser, p.password),
			"synchronous_standby_names": "",
		},
	}
	standby, err := StartPostgres(ctx, cfg)
	if err != nil {
		return nil, err
	}
	var since string
	err = p.exec(ctx, "ALTER SYSTEM SET synchronous_standby_names = '*'")
	if err == nil {
		err = p.query(ctx, "SELECT pg_current_wal_lsn()::text FROM pg_reload_conf()", &since)
	}
	if err != nil {
		return standby, fmt.Errorf("make the standby synchronous: %w", err)
	}
	// Earlier commits did not wait for the standby, so the standby must receive them first.
	return standby, p.Await(ctx, `SELECT coalesce(current_setting('synchronous_standby_names') = '*' AND
		bool_or(sync_state = 'sync' AND flush_lsn >= '`+since+`'), false) FROM pg_stat_replication`)
}

// Promote makes a standby a primary and waits until it accepts writes.
func (p *Postgres) Promote(ctx context.Context) error {
	if err := p.exec(ctx, "SELECT pg_promote(false)"); err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	return p.AwaitPrimary(ctx)
}

// AwaitPrimary waits until the server has ended its recovery, that is, until it was promoted or restored.
func (p *Postgres) AwaitPrimary(ctx context.Context) error {
	return p.Await(ctx, "SELECT NOT pg_is_in_recovery()")
}

// Await repeats a query until the query returns true. If ctx has no deadline, the time limit is two minutes.
func (p *Postgres) Await(ctx context.Context, sql string) error {
	ctx, cancel := withDefaultTimeout(ctx, defaultStartTimeout)
	defer cancel()
	var last error
	err := poll(ctx, func() bool {
		var yes bool
		last = p.query(ctx, sql, &yes)
		return last == nil && yes
	})
	if err != nil {
		return fmt.Errorf("wait for PostgreSQL: %w (last: %w): %s", err, last, strings.Join(strings.Fields(sql), " "))
	}
	return nil
}

func (p *Postgres) exec(ctx context.Context, sql string) error { return p.execIn(ctx, "postgres", sql) }

// execIn runs a statement in a database.
func (p *Postgres) execIn(ctx context.Context, database, sql string, args ...any) error {
	conn, err := p.connectTo(ctx, database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql, args...)
	return err
}
