package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
)

// benchUnits is a number of units that no benchmark uses up.
const benchUnits = 1 << 50

// BenchmarkLocalUnits measures decisions about single units: from memory, by holds, and by one debit for each unit.
// The debits are the baseline. ns/op is the time of one decision. docs/recipes/local-units.md contains results.
//
//	go test -run xxx -bench LocalUnits ./lab/e2e
func BenchmarkLocalUnits(b *testing.B) {
	in := serve(b, backends(b)).setUp(b, benchUnits)
	for _, size := range []int64{1 << 40, 500} {
		l := localUnits(b, in, func(o *client.LocalUnitsOptions) { o.Min, o.Max = size, size })
		name := fmt.Sprintf("take/hold=%d", size)
		if size > 1<<30 {
			name = "take/held" // no request is needed
		}
		require.NoError(b, l.TakeWait(b.Context(), 1))
		for _, parallel := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/parallel=%t", name, parallel), func(b *testing.B) { benchTakes(b, l, parallel) })
		}
		assert.NoError(b, l.Close(b.Context()))
	}
	var n atomic.Int64
	b.Run("debit", func(b *testing.B) {
		benchRequests(b, 1, func() error {
			return in.expect(b.Context(), http.StatusOK, "/v1/debits", fmt.Sprint("debit-", n.Add(1)), debitOf("acme", "api_calls", 1))
		})
		b.ReportMetric(1, "requests/op")
	})
	b.Run("requests-of-holds-of-500", func(b *testing.B) {
		benchRequests(b, 500, func() error {
			id := fmt.Sprint("bench-", n.Add(1))
			body := debitOf("acme", "api_calls", 500)
			body["hold_id"] = id
			if err := in.expect(b.Context(), http.StatusCreated, "/v1/holds", id, body); err != nil {
				return err
			}
			return in.expect(b.Context(), http.StatusOK, "/v1/holds/"+id+"/capture", id+"-1", object{"tenant": "acme", "final": true})
		})
		b.ReportMetric(2.0/500, "requests/op")
	})
}

// expect sends a request and returns an error unless the answer has this status.
func (in *instance) expect(ctx context.Context, status int, path, key string, body any) error {
	got, err := in.send(ctx, http.MethodPost, path, key, body)
	if err == nil && got.status != status {
		err = fmt.Errorf("%s: %s", path, got)
	}
	return err
}

func benchTakes(b *testing.B, l *client.LocalUnits, parallel bool) {
	before, cpu := l.Stats().Requests, cpuTime(b)
	b.ReportAllocs()
	b.ResetTimer()
	if parallel {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := l.TakeWait(b.Context(), 1); err != nil {
					b.Error(err)
					return
				}
			}
		})
	} else {
		for range b.N {
			if err := l.TakeWait(b.Context(), 1); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(l.Stats().Requests-before)/float64(b.N), "requests/op")
}

// benchRequests makes b.N decisions with 64 concurrent callers. Each call makes the given number of decisions.
func benchRequests(b *testing.B, decisions int64, call func() error) {
	var begun, made atomic.Int64
	var all sync.WaitGroup
	before := cpuTime(b)
	for range 64 {
		all.Go(func() {
			for begun.Add(decisions) < int64(b.N)+decisions {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
				made.Add(decisions)
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(made.Load())/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(float64(cpuTime(b)-before)/float64(max(made.Load(), 1)), "cpu-ns/op")
}

// cpuTime returns the CPU time that this process has used, without the service. On a busy machine this is a better
// measure than the elapsed time.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
