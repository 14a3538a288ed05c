package drill

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/lab/localstack"
)

const (
	// stateTimeout is the time limit of each wait for a new state of the servers, for example a promotion, a new
	// standby or a restore.
	stateTimeout = 5 * time.Minute

	statePoll = 20 * time.Millisecond
)

// pair is a primary and its synchronous standby. It belongs to one goroutine.
type pair struct {
	root    string // directory that the run user of PostgreSQL may enter
	primary *localstack.Postgres
	standby *localstack.Postgres
	copies  int // number of copied clusters so far, for directory names
}

// serverSettings returns the settings of both servers. fsync may be off, because only processes are killed: the
// kernel keeps the data that a killed process has written.
func (p *pair) serverSettings() map[string]string {
	return map[string]string{
		"max_connections": "200", "full_page_writes": "on", "wal_keep_size": "512MB", "max_wal_size": "1GB",
		// The standby archives WAL as well. Otherwise WAL that a killed primary has not archived would be missing.
		"archive_mode": "always",
		"archive_command": fmt.Sprintf("test ! -e %[1]s/open || (cp %%p %[1]s/%%f.$$ && mv %[1]s/%%f.$$ %[1]s/%%f)",
			p.archive()),
		"wal_receiver_timeout": "5s", "wal_retrieve_retry_interval": "200ms",
	}
}

// archive returns the directory of archived WAL. The servers archive WAL while the directory contains the file
// "open".
func (p *pair) archive() string { return filepath.Join(p.root, "archive") }

// startPair starts a primary and its standby in root.
func startPair(ctx context.Context, root string) (_ *pair, err error) {
	p := &pair{root: root}
	if err := os.Mkdir(p.archive(), 0o755); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	if err := os.Chmod(p.archive(), 0o777); err != nil { // PostgreSQL's user writes here; other users cannot enter root
		return nil, fmt.Errorf("archive: %w", err)
	}
	p.primary, err = localstack.StartPostgres(ctx, localstack.PostgresConfig{Dir: filepath.Join(root, "first"), Extra: p.serverSettings()})
	if err != nil {
		return nil, err
	}
	if err := p.addStandby(ctx, 0); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// url returns a URL with the addresses of both servers. A client that uses it connects to the current primary.
func (p *pair) url() string {
	u, err := url.Parse(p.primary.URL())
	if err != nil { // the URL comes from url.URL
		return ""
	}
	u.Host += "," + net.JoinHostPort("127.0.0.1", strconv.Itoa(p.standby.Port()))
	u.RawQuery = url.Values{"sslmode": {"disable"}, "target_session_attrs": {"read-write"}, "connect_timeout": {"2"}}.Encode()
	return u.String()
}

// addStandby starts a synchronous standby of the primary on the given port. If port is 0, it uses any free port.
func (p *pair) addStandby(ctx context.Context, port int) error {
	p.copies++
	name := "copy-" + strconv.Itoa(p.copies)
	var err error
	p.standby, err = p.primary.AddStandby(ctx, name, localstack.PostgresConfig{
		Dir: filepath.Join(p.root, name), Port: port, Extra: p.serverSettings(),
	})
	return err
}

// failover kills the primary, promotes the standby and creates a new standby that replaces the old primary. Until the
// new standby follows, the new primary commits without waiting. In some kinds of failover, the standby is first
// paused or dead for the time `away`.
func (p *pair) failover(ctx context.Context, kind Action, away time.Duration) error {
	if err := p.prepareFailover(ctx, kind, away); err != nil {
		return err
	}
	old := p.primary
	if err := old.Kill(); err != nil {
		return err
	}
	switch kind {
	case FailoverPaused:
		if err := p.standby.Resume(); err != nil {
			return err
		}
	case FailoverDead:
		if err := p.standby.Start(ctx); err != nil {
			return err
		}
	default:
	}
	if err := p.standby.Promote(ctx); err != nil {
		return err
	}
	p.primary, p.standby = p.standby, nil
	if err := os.RemoveAll(old.Dir()); err != nil {
		return fmt.Errorf("remove the old primary: %w", err)
	}
	return p.addStandby(ctx, old.Port())
}

func (p *pair) prepareFailover(ctx context.Context, kind Action, away time.Duration) error {
	switch kind {
	case FailoverPaused:
		if err := p.standby.Pause(); err != nil {
			return err
		}
		return sleep(ctx, away)
	case FailoverDead:
		if err := p.standby.Kill(); err != nil {
			return err
		}
		return sleep(ctx, away)
	case FailoverPrimaryUp:
		if err := p.primary.Kill(); err != nil {
			return err
		}
		return p.primary.Start(ctx)
	default:
		return nil
	}
}

func (p *pair) stop() error {
	var errs error
	for _, s := range []*localstack.Postgres{p.primary, p.standby} {
		if s != nil {
			errs = errors.Join(errs, s.Kill())
		}
	}
	return errs
}

// read runs a query that returns one value, on a separate connection.
func read(ctx context.Context, url, sql string, value any) error {
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer db.Close(ctx)
	return db.QueryRow(ctx, sql).Scan(value)
}

// await repeats an action until it succeeds, for stateTimeout at most. The error names the state that `what` describes.
func await(ctx context.Context, what string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	for {
		err := do(ctx)
		if err == nil {
			return nil
		}
		if sleep(ctx, statePoll) != nil {
			return fmt.Errorf("%s: not within %s: %w", what, stateTimeout, err)
		}
	}
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if !backoff.Sleep(ctx, d) {
		return ctx.Err()
	}
	return nil
}
