package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

const (
	// rollingRequests is the environment variable with the number of requests of the long form. `make rolling` sets
	// it.
	rollingRequests = "QUOTASVC_TEST_ROLLING"

	// rollingFew is the number of requests of the short form. rollingDrain is the drain delay of the instances.
	// HAProxy checks the instances every 100 ms.
	rollingFew   = 1500
	rollingDrain = 2 * time.Second

	rollingInstances, rollingClients = 3, 8
)

// fleet contains three instances. Each instance keeps its addresses after a restart.
type fleet struct {
	env       []string
	api, ops  [rollingInstances]string
	instances [rollingInstances]*instance
}

func newFleet(t testing.TB) *fleet {
	t.Helper()
	f := &fleet{env: append(backends(t), "QUOTASVC_DRAIN_DELAY="+rollingDrain.String())}
	for i := range f.instances {
		f.api[i], f.ops[i] = freeAddress(t), freeAddress(t)
		f.start(t, i)
	}
	f.instances[0].setUp(t, 1_000_000)
	return f
}

func (f *fleet) start(t testing.TB, i int) {
	t.Helper()
	f.instances[i] = serveAt(t, f.env, f.api[i], f.ops[i])
	f.instances[i].line("API ")
}

// roll restarts one instance after the other until the function `enough` returns true.
func (f *fleet) roll(t testing.TB, enough func() bool) (restarts int) {
	t.Helper()
	for i := 0; restarts < rollingInstances || !enough(); i = (i + 1) % rollingInstances {
		f.instances[i].signal(syscall.SIGTERM)
		status := f.instances[i].wait()
		require.Zero(t, status, "instance %d ended with %d:\n%s", i, status, f.instances[i].stderr.tail())
		f.start(t, i)
		restarts++
		testenv.Eventually(t, func() bool {
			return strings.Contains(f.instances[i].metrics(t), `quotasvc_http_requests_total{`)
		}, "the load balancer finds it")
	}
	return restarts
}

// TestRolling_HAProxyWithoutRetries_NothingFails: no request fails while the instances restart one after the other.
// There is the same test with nginx.
func TestRolling_HAProxyWithoutRetries_NothingFails(t *testing.T) {
	t.Parallel()
	binary := gatewayProgram(t, "haproxy")
	f := newFleet(t)
	servers := ""
	for i := range f.api {
		_, port, _ := strings.Cut(f.ops[i], ":")
		servers += fmt.Sprintf("  server s%d %s check port %s inter 100ms fall 2 rise 1\n", i, f.api[i], port)
	}
	address := onFreePort(t, func(address string) *exec.Cmd {
		return exec.Command(binary, "-db", "-f", write(t, "haproxy.cfg", `defaults
  mode http
  timeout connect 2s
  timeout client 30s
  timeout server 30s
  timeout check 2s
  retries 0
listen quotasvc
  bind `+address+`
  balance roundrobin
  option httpchk GET /readyz
`+servers))
	})
	f.rollUnderLoad(t, "http://"+address)
}

func TestRolling_Nginx_NothingFails(t *testing.T) {
	t.Parallel()
	binary := gatewayProgram(t, "nginx")
	f := newFleet(t)
	servers := ""
	for _, address := range f.api {
		servers += "    server " + address + " max_fails=0;\n"
	}
	var log string
	address := onFreePort(t, func(address string) *exec.Cmd {
		user := ""
		if os.Getuid() == 0 {
			user = "user root;\n"
		}
		conf := write(t, "nginx.conf", user+`daemon off;
worker_processes 1;
error_log error.log warn;
pid nginx.pid;
events { worker_connections 256; }
http {
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  access_log off;
  upstream quotasvc {
`+servers+`    keepalive 16;
  }
  server {
    listen `+address+`;
    location / { proxy_pass http://quotasvc; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`)
		log = filepath.Join(filepath.Dir(conf), "error.log")
		return exec.Command(binary, "-p", filepath.Dir(conf), "-c", conf, "-e", "stderr")
	})
	f.rollUnderLoad(t, "http://"+address)
	if text, err := os.ReadFile(log); t.Failed() && err == nil {
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, "connect() failed") { // these requests go to the next instance
				t.Log(line)
			}
		}
	}
}

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// rollUnderLoad restarts the instances while clients send debits and checks to url.
func (f *fleet) rollUnderLoad(t *testing.T, url string) {
	t.Helper()
	enough := int64(rollingFew)
	if n, err := strconv.ParseInt(os.Getenv(rollingRequests), 10, 64); err == nil {
		enough = n
	}
	var sent, failed atomic.Int64
	loading, stop := context.WithCancel(t.Context())
	defer stop()
	var clients sync.WaitGroup
	for c := range rollingClients {
		clients.Go(func() {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			through := &instance{api: url, http: &http.Client{Transport: transport, Timeout: testenv.Patience}}
			for i := 0; pace(loading, 10*time.Millisecond); i++ {
				path, key := "/v1/debits", fmt.Sprintf("c%d-%d", c, i)
				if i%4 == 3 {
					path, key = "/v1/check", ""
				}
				got, err := through.send(t.Context(), "POST", path, key, debitOf("acme", "api_calls", 1))
				sent.Add(1)
				assert.False(t, (err != nil || got.status != 200) && failed.Add(1) <= 10,
					"client %d, %s: %s, %v", c, path, got, err)
			}
		})
	}
	restarts := f.roll(t, func() bool { return sent.Load() >= enough })
	stop()
	clients.Wait()
	t.Logf("%d restarts, %d requests, %d failed", restarts, sent.Load(), failed.Load())
}
