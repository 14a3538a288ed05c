package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// A full disk once wrote 724 equal lines in 15 s.
func TestFlood_PostgresDiskFull_LinesBounded(t *testing.T) {
	t.Parallel()
	pg, disk := testenv.PostgresOnSmallDisk(t)
	in := serve(t, []string{
		"QUOTASVC_DATABASE_URL=" + pg.URL, "QUOTASVC_REDIS_URL=" + testenv.RedisURL(t), "QUOTASVC_ADMIN_KEY=" + testKey,
		"QUOTASVC_LOG_LEVEL=warn", "QUOTASVC_VERIFY_EVERY=0s",
	})
	in.setUp(t, 1_000_000)
	disk.Fill()
	var callers sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	calling, endCalls := context.WithCancel(t.Context())
	for n := range 8 {
		callers.Go(func() {
			for i := 0; calling.Err() == nil; i++ {
				a, err := in.send(context.Background(), "POST", "/v1/debits", fmt.Sprintf("d-%d-%d", n, i), debitOf("acme", "api_calls", 1))
				if mu.Lock(); err == nil && a.status == http.StatusServiceUnavailable {
					refused++
				}
				mu.Unlock()
			}
		})
	}
	began := time.Now()
	testenv.Eventually(t, func() bool {
		return metricOf(in.metrics(t), `quotasvc_ledger_failed_attempts_total{verdict="retry"}`) > 10*floodFirst
	}, "failed batches")
	endCalls()
	callers.Wait()
	disk.Free()
	in.stop()
	lines, dropped := map[string]int{}, map[string]int{}
	for line := range strings.Lines(in.stderr.String()) {
		var l struct {
			Msg, Message string
			Dropped      int
		}
		if json.Unmarshal([]byte(line), &l) == nil {
			lines[l.Msg]++
			dropped[l.Message] += l.Dropped
		}
	}
	t.Logf("%d debits refused; lines %v; dropped %v", refused, lines, dropped)
	const failed = "ledger batch failed; running it again"
	if n := lines[failed] + dropped[failed]; n < 3*floodFirst {
		t.Errorf("only %d batches failed", n)
	}
	windows := int(time.Since(began)/floodWindow) + 2
	for message, n := range lines {
		if most := windows * (floodFirst + 1 + dropped[message]/floodOneIn); n > most && message != accessLine {
			t.Errorf("%d lines %q, want at most %d", n, message, most)
		}
	}
	if lines[accessLine] < refused {
		t.Errorf("%d access lines of %d refused debits: each must have its own", lines[accessLine], refused)
	}
}

// logInto returns a logger with the flood's bounds, and what it has written as message: lines.
func logInto() (*slog.Logger, *flood, func() map[string]int) {
	var out syncBuffer
	f := newFlood(slog.NewJSONHandler(&out, nil))
	return slog.New(f), f, func() map[string]int {
		lines := map[string]int{}
		for line := range strings.Lines(out.String()) {
			var l struct {
				Level, Msg, Message, Part string
				Dropped                   int
			}
			_ = json.Unmarshal([]byte(line), &l) // what is no line has no message
			lines[strings.TrimSpace(fmt.Sprint(l.Level, " ", l.Msg, " ", l.Message))] += max(l.Dropped, 1)
		}
		return lines
	}
}

// syncBuffer is a buffer for several goroutines.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestFlood_EqualLines_FirstTenThenOneInHundred(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, f, written := logInto()
		for range 1000 {
			log.Warn("down")
			log.With("part", "x").Error("down") // another level is another flood; a derived logger is not
			log.Info("well")
			log.Error(accessLine)
		}
		log.Warn("once")
		want := map[string]int{"WARN down": 19, "ERROR down": 19, "INFO well": 1000, "ERROR " + accessLine: 1000, "WARN once": 1}
		for line, n := range written() {
			if n != want[line] {
				t.Errorf("%s: %d, want %d", line, n, want[line])
			}
		}
		time.Sleep(floodWindow + time.Second)
		if got := written(); got["WARN log lines dropped down"] != 981 || got["ERROR log lines dropped down"] != 981 || len(got) != 7 {
			t.Errorf("%v", got)
		}
		log.Warn("down") // the flood is over
		time.Sleep(floodWindow + time.Second)
		if got := written(); got["WARN down"] != 20 || got["WARN log lines dropped down"] != 981 {
			t.Errorf("%v", got)
		}
		for range 12 {
			log.Warn("at the end")
		}
		f.endAll()
		if got := written(); got["WARN log lines dropped at the end"] != 2 || len(f.windows) != 0 {
			t.Errorf("%v", got)
		}
	})
}

func TestFlood_ManyMessages_MemoryBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, f, written := logInto()
		for i := range 3 * floodMessages {
			log.Warn(fmt.Sprint("message ", i)) //nolint:sloglint // each message is another one: what is tested
		}
		if n := len(f.windows); n > floodMessages+1 {
			t.Errorf("%d messages are counted", n)
		}
		f.endAll()
		if n := len(written()); n < floodMessages || n > floodMessages+floodFirst+2*floodMessages/floodOneIn+1 {
			t.Errorf("%d messages are written", n)
		}
	})
}
