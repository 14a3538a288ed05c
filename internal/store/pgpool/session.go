package pgpool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// OldestMajor is the oldest major version of PostgreSQL that the schema and the writer support.
const OldestMajor = 14

const (
	// settingsTimeout bounds the statement that applies the settings of a new connection. A pooler without a free
	// server connection accepts a client, but the client's first statement waits.
	settingsTimeout = 2 * time.Second

	// sessionTimeout bounds CheckServer.
	sessionTimeout = 5 * time.Second

	// sessionTries is the number of times that CheckServer compares two connections. A pooler in transaction mode
	// usually gives the same server connection to clients that alternate. If the pooler has many idle server
	// connections, CheckServer may need several tries to see this.
	sessionTries = 5
)

// Set applies settings to every new connection of cfg. It uses statements, because PgBouncer refuses connections that
// pass settings as parameters. Settings belong to a session, so a pooler must be in session mode; see CheckServer.
func Set(cfg *pgx.ConnConfig, settings map[string]string) {
	var statements strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&statements, "SET %s = '%s';", name, strings.ReplaceAll(settings[name], "'", "''"))
	}
	cfg.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		ctx, cancel := context.WithTimeout(ctx, settingsTimeout)
		defer cancel()
		_, err := conn.Exec(ctx, statements.String()).ReadAll()
		return err //nolint:wrapcheck // pgconn wraps it
	}
}

// ErrSessionsShared is the error of CheckServer if a pooler gives one session of PostgreSQL to several connections.
var ErrSessionsShared = errors.New("PostgreSQL is reached through a pooler in transaction or statement mode (pool_mode). The service needs sessions of its " +
	"own: for settings such as lock_timeout, for prepared statements, for advisory locks and for LISTEN. Set pool_mode = session for this database, or connect to " +
	"PostgreSQL directly")

// CheckServer checks that the server at databaseURL is new enough, and that each connection has its own session. It
// returns ErrSessionsShared if connections share a session, and another error if the check failed. A direct connection
// needs only one query. Behind a pooler, CheckServer opens a second connection and compares the sessions of both
// connections.
func CheckServer(ctx context.Context, databaseURL string) error {
	cfg, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return fmt.Errorf("database URL: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // shared sessions mix up prepared statements
	cfg.RuntimeParams["application_name"] = "quotasvc-sessions"
	first, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err //nolint:wrapcheck // pgx says what it did
	}
	defer func() { _ = first.Close(ctx) }()
	if err := checkVersion(first.PgConn().ParameterStatus("server_version")); err != nil {
		return err
	}
	pid, err := sessionOf(ctx, first)
	if err != nil || pid == first.PgConn().PID() { // a direct connection; a pooler would report its own process numbers
		return err
	}
	second, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err //nolint:wrapcheck // the same
	}
	defer func() { _ = second.Close(ctx) }()
	for range sessionTries {
		if err := compareSessions(ctx, first, second, pid); err != nil {
			return err
		}
	}
	return nil
}

// checkVersion returns an error if a server with this version is older than OldestMajor. A pooler may hide the version.
func checkVersion(version string) error {
	number, _, _ := strings.Cut(version, " ")
	major, _, _ := strings.Cut(number, ".")
	if n, err := strconv.Atoi(major); err == nil && n < OldestMajor {
		return fmt.Errorf("PostgreSQL %s is too old: quotasvc needs PostgreSQL %d or newer", number, OldestMajor)
	}
	return nil
}

// compareSessions returns ErrSessionsShared if the second connection also gets the session pid of the first connection.
// It returns the same error if the first connection gets another session while the second is in a transaction.
func compareSessions(ctx context.Context, first, second *pgx.Conn, pid uint32) error {
	if _, err := second.Exec(ctx, "BEGIN"); err != nil {
		if strings.Contains(err.Error(), "statement pooling") {
			return ErrSessionsShared
		}
		if errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) {
			return fmt.Errorf("a pooler before PostgreSQL gives no second connection, so its pool_size or max_db_connections is too small: %w", err)
		}
		return err //nolint:wrapcheck // pgx says what it did
	}
	other, err := sessionOf(ctx, second)
	if err == nil && other == pid {
		return ErrSessionsShared
	}
	now, err := sessionOf(ctx, first)
	if err != nil {
		return err
	}
	if now != pid {
		return ErrSessionsShared
	}
	_, err = second.Exec(ctx, "ROLLBACK")
	return err //nolint:wrapcheck // pgx says what it did
}

// sessionOf returns the id of the server process that answers conn. Each session has its own process.
func sessionOf(ctx context.Context, conn *pgx.Conn) (pid uint32, err error) {
	err = conn.QueryRow(ctx, "SELECT pg_backend_pid()::oid").Scan(&pid)
	return pid, err //nolint:wrapcheck // pgx says what it did
}
