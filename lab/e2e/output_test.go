package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// outputPipe is a pipe for the output of a process. Its reader reads only while the test says so.
type outputPipe struct {
	t      testing.TB
	reader *os.File
	writer *os.File
	read   testenv.Log
}

func newOutputPipe(t testing.TB) *outputPipe {
	t.Helper()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = reader.Close() // a test may have closed it
		_ = writer.Close()
	})
	return &outputPipe{t: t, reader: reader, writer: writer}
}

// follow reads the pipe until the returned function is called.
func (p *outputPipe) follow() (stop func()) {
	p.t.Helper()
	require.NoError(p.t, p.reader.SetReadDeadline(time.Time{}))
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(&p.read, p.reader) }) // until the deadline, or the end of the process
	return func() {
		_ = p.reader.SetReadDeadline(time.Now()) // it fails only after the reader was closed
		reading.Wait()
	}
}

// fill writes to the pipe until it is full.
func (p *outputPipe) fill() {
	p.t.Helper()
	require.NoError(p.t, p.writer.SetWriteDeadline(time.Now().Add(time.Second)))
	for {
		if _, err := p.writer.Write([]byte(strings.Repeat(" ", 1023) + "\n")); err != nil {
			require.ErrorIs(p.t, err, os.ErrDeadlineExceeded)
			return
		}
	}
}

// logState returns the field log of /readyz, which must say that the instance is ready.
func (in *instance) logState(t testing.TB) string {
	t.Helper()
	got := in.ask(t, "/readyz")
	require.Equal(t, http.StatusOK, got.status, "/readyz: %s", got)
	return decoded[struct{ Log string }](t, got).Log
}

// answers waits until a path of the ops listener answers with a status.
func (in *instance) answers(t testing.TB, path string, status int) {
	t.Helper()
	testenv.Eventually(t, func() bool { return in.ask(t, path).status == status }, path, " answers ", status)
}

// manyLines makes requests until the condition is true. Each of them has a long line in the access log.
func (in *instance) manyLines(t testing.TB, until func() bool) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for ctx.Err() == nil {
				_, err := exchange(ctx, in.http, "GET", in.api+"/v1/tenants/acme", "",
					"Authorization", "Bearer "+testKey, "X-Request-Id", strings.Repeat("x", 128))
				assert.False(t, err != nil && ctx.Err() == nil, "no answer: %v", err)
			}
		})
	}
	defer callers.Wait()
	defer stop()
	testenv.Eventually(t, until, "enough lines")
}

func droppedLines(level string) string {
	return fmt.Sprintf(`quotasvc_log_lines_dropped_total{level=%q,reason="queue"}`, level)
}

// A reader of the log that does not read must not delay any caller. What is dropped is counted, and reported in the log
// when it is read again. Lines of WARN and above are dropped last.
func TestDegradation_LogNotRead_CallersDoNotNotice(t *testing.T) {
	t.Parallel()
	pipe := newOutputPipe(t)
	env := append(backends(t), "QUOTASVC_LOG_LEVEL=info", "QUOTASVC_VERIFY_EVERY=0s")
	in := serveInto(t, pipe.writer, env, freeAddress(t), freeAddress(t))
	in.answers(t, "/readyz", http.StatusOK)
	tr := trialOf(t, in, env)
	pause := pipe.follow()
	tr.through(pause, func() { pause = pipe.follow() }, func() bool {
		in.manyLines(t, func() bool { return metricOf(in.metrics(t), droppedLines("info")) > 0 })
		return in.logState(t) == "stalled"
	})
	tr.each(everyKind, tr.begun, "a success", succeeds)
	tr.exactlyWhatWasAcknowledged()
	for _, level := range []string{"warn", "error"} {
		assert.Zero(t, metricOf(in.metrics(t), droppedLines(level)), "dropped lines of level %s", level)
	}
	testenv.Eventually(t, func() bool {
		return in.logState(t) == "ok" &&
			strings.Contains(pipe.read.String(), `"msg":"log lines dropped","reason":"queue","debug":0,"info":`)
	}, "the log goes on, and says that lines are missing")

	pause()
	in.manyLines(t, func() bool { return in.logState(t) == "stalled" })
	assert.Equal(t, 1.0, metricOf(in.metrics(t), "quotasvc_log_stalled"))
	in.stop()
}

// A supervisor may give a new process the pipe of the one before: full, or without a reader.
func TestServe_OutputFullOrClosed_StartsServesAndStops(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*outputPipe){
		"full":   (*outputPipe).fill,
		"closed": func(p *outputPipe) { require.NoError(p.t, p.reader.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pipe := newOutputPipe(t)
			prepare(pipe)
			env := append(backends(t), "QUOTASVC_LOG_LEVEL=info")
			in := serveInto(t, pipe.writer, env, freeAddress(t), freeAddress(t))
			in.answers(t, "/readyz", http.StatusOK)
			in.setUp(t, 10)
			testenv.Eventually(t, func() bool { return in.logState(t) == "stalled" }, "the log stalls")
			in.do(t, http.StatusOK, "POST", "/v1/debits", "d", debitOf("acme", "api_calls", 1))
			in.stop()
		})
	}
}

// The end of a process does not wait for a reader of its last words, but they are written if somebody reads.
func TestServe_OutputFull_EndsWithItsStatus(t *testing.T) {
	t.Parallel()
	pipe := newOutputPipe(t)
	pipe.fill()
	for setting, value := range map[string]string{"QUOTASVC_LOG_LEVEL": "loud", "QUOTASVC_LISTEN": "no address"} {
		wrong := launchInto(t, pipe.writer, quotasvc(t), []string{setting + "=" + value}, "serve")
		assert.Equal(t, exitUsage, wrong.wait(), "status after a wrong %s", setting)
	}
	nobody := using("postgres://q@"+freeAddress(t)+"/q", "", "QUOTASVC_START_TIMEOUT=1s")
	wrong := launchInto(t, pipe.writer, quotasvc(t), nobody, serveFree...)
	assert.Equal(t, 1, wrong.wait(), "status after an error at the start")

	env := using(testenv.PostgresService(t), "", "QUOTASVC_DRAIN_DELAY=1m")
	in := serveInto(t, pipe.writer, env, freeAddress(t), freeAddress(t))
	in.answers(t, "/readyz", http.StatusOK)
	in.signal(syscall.SIGTERM)
	in.answers(t, "/readyz", http.StatusServiceUnavailable)
	in.signal(syscall.SIGTERM)
	assert.Equal(t, exitInterrupted, in.wait(), "status after a second signal")
}

// A collector of traces, a webhook's receiver, a scrape or a client of the API that does not read neither makes a stop
// fail nor takes the time that the parts need.
func TestStop_OutputNotRead_EndsWell(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]func(t *testing.T, in *instance, asked chan string, url string){
		"traces": func(t *testing.T, in *instance, asked chan string, _ string) {
			in.call(t.Context(), "check", "", 0)
			testenv.Receive(t, asked)
		},
		"webhook": func(t *testing.T, in *instance, asked chan string, url string) {
			in.newWebhook(t, object{"url": url, "types": []string{"balance.exhausted"}})
			in.setUp(t, 1).do(t, http.StatusOK, "POST", "/v1/debits", "d", debitOf("acme", "api_calls", 1))
			for path := ""; path != "/"; {
				path, _ = testenv.Receive(t, asked)
			}
		},
		"scrape": func(t *testing.T, in *instance, _ chan string, _ string) { requestUnread(t, in.ops, "/metrics") },
		"answer": func(t *testing.T, in *instance, _ chan string, _ string) {
			requestUnread(t, in.api, "/v1/openapi.json")
			const route, others = `quotasvc_http_requests_total{method="GET",route="/v1/openapi.json",status="200"}`, 20
			testenv.Eventually(t, func() bool {
				before := metricOf(in.metrics(t), route)
				for range others {
					in.do(t, http.StatusOK, "GET", "/v1/openapi.json", "", nil)
				}
				return metricOf(in.metrics(t), route) == before+others
			}, "others get answers, and the client that does not read gets none")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, release := make(chan string, 1000), make(chan struct{})
			silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				asked <- r.URL.Path
				<-release
			}))
			t.Cleanup(silent.Close)
			t.Cleanup(func() { close(release) }) // first
			in := serve(t, append(backends(t), "QUOTASVC_LOG_LEVEL=info", "QUOTASVC_WEBHOOK_ALLOW_PRIVATE=true",
				"OTEL_EXPORTER_OTLP_ENDPOINT="+silent.URL, "OTEL_BSP_SCHEDULE_DELAY=50"))
			hang(t, in, asked, silent.URL+"/")
			in.stop()
			assert.Contains(t, in.stderr.String(), `"msg":"stopped"`)
			assert.Equal(t, name == "answer", strings.Contains(in.stderr.String(), "answers were cut off"))
		})
	}
}

// requestUnread sends requests and reads no answer, until the instance waits for it and takes no further request.
func requestUnread(t *testing.T, url, path string) {
	t.Helper()
	address := strings.TrimPrefix(url, "http://")
	conn := testenv.CloseAtEnd(t, testenv.Must(t).Get((&net.Dialer{}).DialContext(t.Context(), "tcp", address)))
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096))
	requests := strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+testKey+"\r\n\r\n", 100)
	for {
		require.NoError(t, conn.SetWriteDeadline(time.Now().Add(2*time.Second)))
		if _, err := conn.Write([]byte(requests)); err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			return
		}
	}
}
