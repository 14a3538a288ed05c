package e2e

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// The API, PostgreSQL and Redis are used over TLS. Their certificates are verified.
func TestTLS_ClientsPostgresRedis_Verified(t *testing.T) {
	t.Parallel()
	authority, dir, ctx := testenv.NewAuthority(t), t.TempDir(), t.Context()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	authority.Issue(t, cert, key)

	postgres := testenv.PostgresPrivate(t)
	conn := testenv.Connect(t, postgres.URL)
	var data string
	require.NoError(t, conn.QueryRow(ctx, "SHOW data_directory").Scan(&data))
	authority.Issue(t, filepath.Join(data, "tls.pem"), filepath.Join(data, "tls.key"))
	owner, err := os.Stat(data)
	require.NoError(t, err)
	for _, name := range []string{"tls.pem", "tls.key"} { // PostgreSQL's user must own the key
		if of, ok := owner.Sys().(*syscall.Stat_t); ok && os.Getuid() == 0 {
			require.NoError(t, os.Chown(filepath.Join(data, name), int(of.Uid), int(of.Gid)))
		}
	}
	for _, sql := range []string{
		"ALTER SYSTEM SET ssl_cert_file = 'tls.pem'", "ALTER SYSTEM SET ssl_key_file = 'tls.key'", "ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()",
	} {
		testenv.Exec(t, conn, sql)
	}
	verified := postgres.URL + "&"
	if !strings.Contains(postgres.URL, "?") {
		verified = postgres.URL + "?"
	}
	verified = strings.Replace(verified, "sslmode=disable&", "", 1) + "sslmode=verify-full&sslrootcert="

	server := testenv.RedisPrivate(t)
	admin := testenv.CloseAtEnd(t, redis.NewClient(server.Options()))
	secure := freeAddress(t)
	_, port, _ := strings.Cut(secure, ":")
	for _, pair := range [][2]string{{"tls-cert-file", cert}, {"tls-key-file", key}, {"tls-ca-cert-file", authority.File}, {"tls-auth-clients", "no"}, {"tls-port", port}} {
		require.NoError(t, admin.ConfigSet(ctx, pair[0], pair[1]).Err(), pair[0])
	}
	cache := urlOf(t, server.URL)
	cache.Scheme, cache.Host = "rediss", secure

	env := []string{
		"QUOTASVC_DATABASE_URL=" + verified + authority.File, "QUOTASVC_REDIS_URL=" + cache.String(), "SSL_CERT_FILE=" + authority.File, "QUOTASVC_ADMIN_KEY=" + testKey,
		"QUOTASVC_TLS_CERT_FILE=" + cert, "QUOTASVC_TLS_KEY_FILE=" + key,
	}
	in := serve(t, env)
	assert.True(t, strings.HasPrefix(in.api, "https://"), "the printed address is %s", in.api)
	in.http = &http.Client{Timeout: testenv.Patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Pool, MinVersion: tls.VersionTLS12}}}
	t.Cleanup(in.http.CloseIdleConnections)
	in.setUp(t, 1000)
	in.do(t, 200, "POST", "/v1/debits", "k", debitOf("acme", "api_calls", 1))
	assert.Equal(t, 200, in.ask(t, "/readyz?strict=1").status)
	assert.Contains(t, in.metrics(t), "\nquotasvc_tls_certificate_expiry_timestamp_seconds 1.",
		"the end of the certificate is no metric")
	var plain, encrypted int
	err = conn.QueryRow(ctx, `SELECT count(*) FILTER (WHERE NOT ssl), count(*) FILTER (WHERE ssl) FROM pg_stat_ssl
		JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'quotasvc%'`).Scan(&plain, &encrypted)
	assert.True(t, err == nil && plain == 0 && encrypted >= 4,
		"%d connections in clear, %d encrypted, %v", plain, encrypted, err)
	plainly := &http.Client{Timeout: testenv.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	response := fetch(t, plainly, http.MethodGet, strings.Replace(in.api, "https:", "http:", 1)+"/v1/openapi.yaml", "")
	assert.Equal(t, http.StatusBadRequest, response.status, "plain HTTP")
	in.http.CloseIdleConnections()
	authority.Issue(t, cert, key)
	in.logged("TLS certificate reloaded", 1) // the instance reads the new files without a signal
	in.do(t, 200, "GET", "/v1/meters", "", nil)

	// The certificates of PostgreSQL and Redis are not from this authority.
	stranger := testenv.NewAuthority(t)
	env[0] = "QUOTASVC_DATABASE_URL=" + verified + stranger.File
	status, _, log := tool(t, env, serveFree...)
	assert.True(t, status == 1 && strings.Contains(log, "sslrootcert"), "with another authority: %d\n%s", status, log)
}
