package ratelimit

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/quotasvc/quotasvc/internal/testenv"
	"github.com/quotasvc/quotasvc/lua"
)

func threeRules(b *testing.B) []Charge {
	b.Helper()
	return []Charge{
		{Rule: compile(b, Spec{ID: "second", Rate: "1000000/s", Burst: 9_000_000_000})},
		{Rule: compile(b, Spec{ID: "minute", Rate: "7000001/min", Burst: 100_000_000})},
		{Rule: compile(b, Spec{ID: "subject", Rate: "1000000/s", Burst: 9_000_000_000}), Dimension: Dimension("alice")},
	}
}

// BenchmarkScript compares, in one run, what a vector saves: requests of one tenant on three rules, decided by one call
// per request, by one call per request in a pipeline, and by vectors.
func BenchmarkScript(b *testing.B) {
	client := patientClient(b, testenv.Redis(b))
	script := NewScript("limits", lua.Limits, nil)
	q, err := Request{Tenant: "acme", Charges: threeRules(b)}.check(opConsume)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	batchOf := func(n int) []query {
		batch := make([]query, n)
		for i := range batch {
			batch[i] = q
		}
		return batch
	}
	run := func(name string, perBatch, perCall int) {
		b.Run(name, func(b *testing.B) {
			batch := batchOf(perBatch)
			for done := 0; done < b.N; done += perBatch {
				var vs []*vector
				for from := 0; from < perBatch; from += perCall {
					vs = append(vs, vectors(batch[:perCall], true, 0)...)
				}
				calls := make([]Call, len(vs))
				for i, v := range vs {
					calls[i] = v.call(0)
				}
				for i, reply := range script.RunPipelined(ctx, client, calls) {
					d, err := vs[i].read(batch[:perCall], reply)
					if err != nil || !d.answers[0].allowed {
						b.Fatalf("%+v, %v", d, err)
					}
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
	run("one_call_per_request", 1, 1)
	run("pipeline_of_64_calls", 64, 1)
	run("vector_of_16", 16, 16)
	run("vector_of_64", 64, 64)
}

// BenchmarkConsume is the whole limiter under many concurrent callers.
func BenchmarkConsume(b *testing.B) {
	for _, mode := range []string{"redis", "local"} {
		for _, tenants := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%s/tenants=%d", mode, tenants), func(b *testing.B) {
				l := patientLimiter(b, nil, Config{})
				if mode == "redis" {
					l = patientLimiter(b, patientClient(b, testenv.Redis(b)), Config{})
				}
				charges := threeRules(b)
				names := make([]string, tenants)
				for i := range names {
					names[i] = fmt.Sprintf("t%d", i)
				}
				var next atomic.Int64
				b.ReportAllocs()
				b.SetParallelism(128)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						tenant := names[next.Add(1)%int64(tenants)]
						d, err := l.Consume(context.Background(), Request{Tenant: tenant, Charges: charges})
						if err != nil || !d.Allowed || d.Degraded {
							b.Errorf("%+v, %v", d, err)
							return
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
			})
		}
	}
}

// BenchmarkDenied is a tenant that hammers at an empty bucket, with and without a memory of the denial.
func BenchmarkDenied(b *testing.B) {
	for _, forgetful := range []bool{true, false} {
		b.Run(fmt.Sprintf("memo=%v", !forgetful), func(b *testing.B) {
			l := patientLimiter(b, patientClient(b, testenv.Redis(b)), Config{forgetful: forgetful})
			req := Request{Tenant: "acme", Charges: append(threeRules(b), Charge{Rule: compile(b, Spec{ID: "empty", Rate: "1/day"})})}
			mustConsume(b, l, req)
			b.ReportAllocs()
			b.SetParallelism(128)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if d, err := l.Consume(context.Background(), req); err != nil || d.Allowed || d.Degraded {
						b.Errorf("%+v, %v", d, err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
}
