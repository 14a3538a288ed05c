package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// The file descriptors that /livez and PostgreSQL need must stay free, even if clients keep many connections open.
// Otherwise an orchestrator would kill the process.
func TestConnections_MoreThanFiles_OperatorsAndDebitsGoOn(t *testing.T) {
	t.Parallel()
	in := serveBy(t, withFiles(t, 200), backends(t))
	in.setUp(t, 1000) // over a single connection, which the client keeps open
	var held int
	for range 260 {
		conn := testenv.Must(t).Get(net.Dial("tcp", strings.TrimPrefix(in.api, "http://")))
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(testenv.Patience)))
		if _, err := io.WriteString(conn, "GET /v1/openapi.yaml HTTP/1.1\r\nHost: quota\r\nAuthorization: Bearer "+testKey+"\r\n\r\n"); err != nil {
			continue // the connection was refused
		}
		if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
			_ = response.Body.Close() // the connection stays open
			held++
		}
	}
	// Half of the files, minus the connection of the client.
	assert.True(t, held >= 90 && held <= 100, "%d connections are held", held)
	operators := &http.Client{Timeout: testenv.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for range 20 {
		for _, path := range []string{"/livez", "/readyz?strict=1", "/metrics"} {
			assert.Equal(t, http.StatusOK, fetch(t, operators, http.MethodGet, in.ops+path, "").status, "%s", path)
		}
	}
	in.do(t, 200, "POST", "/v1/debits", "k", debitOf("acme", "api_calls", 1))
	m := in.metrics(t)
	assert.Contains(t, m, `quotasvc_http_connections_max{listener="api"} 100`)
	assert.NotContains(t, m, `quotasvc_http_connections_refused_total{listener="api"} 0`)
	assert.NotContains(t, in.stderr.String(), "too many open files")
}

// withFiles returns the path of a program that runs quotasvc with at most this number of open files.
func withFiles(t *testing.T, most int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quotasvc")
	script := fmt.Sprintf("#!/bin/sh\nulimit -n %d && exec '%s' \"$@\"\n", most, quotasvc(t))
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return path
}
