package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// These constants have the values of cmd/quotasvc/flood.go. They determine how many equal lines the log contains.
// accessLine is the message of access lines.
const (
	floodWindow = 10 * time.Second
	floodFirst  = 10
	floodOneIn  = 100
	accessLine  = "request"
)

// With a full disk, a process without this bound wrote 724 equal lines in 15 s.
func TestFlood_PostgresDiskFull_LinesBounded(t *testing.T) {
	t.Parallel()
	pg, disk := testenv.PostgresOnSmallDisk(t)
	env := using(pg.URL, testenv.RedisURL(t), "QUOTASVC_LOG_LEVEL=warn", "QUOTASVC_VERIFY_EVERY=0s")
	in := serve(t, env).setUp(t, 1_000_000)
	disk.Fill()
	var callers sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	calling, endCalls := context.WithCancel(t.Context())
	for n := range 8 {
		callers.Go(func() {
			for i := 0; calling.Err() == nil; i++ {
				key := fmt.Sprintf("d-%d-%d", n, i)
				a, err := in.send(context.Background(), "POST", "/v1/debits", key, debitOf("acme", "api_calls", 1))
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
	assert.GreaterOrEqual(t, lines[failed]+dropped[failed], 3*floodFirst, "batches that failed")
	windows := int(time.Since(began)/floodWindow) + 2
	for message, n := range lines {
		most := windows * (floodFirst + 1 + dropped[message]/floodOneIn)
		assert.False(t, n > most && message != accessLine, "%d lines %q, want at most %d", n, message, most)
	}
	assert.True(t, lines[accessLine] >= refused,
		"%d access lines of %d refused debits: each must have its own", lines[accessLine], refused)
}
