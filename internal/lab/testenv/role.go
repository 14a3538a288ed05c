package testenv

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/deploy/postgres"
)

// serviceLogin is the role that the code under test logs in as. It has the rights of quotasvc_service and no others.
const serviceLogin = "quotasvc_test_service"

// PostgresService creates a database like Postgres, and returns its URL with the service's role. Only the code under
// test should use this URL.
func PostgresService(t testing.TB) string {
	t.Helper()
	return AsService(Postgres(t))
}

// AsService returns the URL of the same database with the service's role. Tests start all code of the service with
// this URL, so each test shows that the rights of the role are enough. A test that rewrites rows or changes tables
// uses the URL of Postgres. If databaseURL is not a URL, AsService returns it unchanged.
func AsService(databaseURL string) string {
	u, err := url.Parse(databaseURL)
	if err != nil || u.User == nil {
		return databaseURL
	}
	if password, set := u.User.Password(); set {
		u.User = url.UserPassword(serviceLogin, password)
	} else {
		u.User = url.User(serviceLogin)
	}
	return u.String()
}

// AsSuperuser returns the URL of the same database with the superuser's role. databaseURL is a URL of PostgresService.
func AsSuperuser(t testing.TB, databaseURL string) string {
	t.Helper()
	u := Must(t).Get(url.Parse(databaseURL))
	p, err := shared.postgres.get()
	require.NoError(t, err, "testenv: PostgreSQL")
	u.User = p.base.User
	return u.String()
}

// makeServiceLogin creates the role serviceLogin on the server of conn, with the password of conn. The role
// quotasvc_service must exist.
func makeServiceLogin(ctx context.Context, conn *pgx.Conn) error {
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", serviceLogin).Scan(&exists); err != nil {
		return fmt.Errorf("look for the service's role: %w", err)
	}
	create := "ALTER ROLE "
	if !exists {
		create = "CREATE ROLE "
	}
	password := "'" + strings.ReplaceAll(conn.Config().Password, "'", "''") + "'"
	_, err := conn.Exec(ctx, create+serviceLogin+" LOGIN PASSWORD "+password+"; GRANT "+postgres.ServiceRole+" TO "+serviceLogin)
	if err != nil {
		return fmt.Errorf("make the service's role: %w", err)
	}
	return nil
}

// makeServiceLoginAt calls makeServiceLogin with a new connection to databaseURL.
func makeServiceLoginAt(ctx context.Context, databaseURL string) error {
	return connected(ctx, databaseURL, func(conn *pgx.Conn) error { return makeServiceLogin(ctx, conn) })
}

// connected calls the function `do` with a new connection, and then closes the connection.
func connected(ctx context.Context, databaseURL string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(ctx)
	return do(conn)
}
