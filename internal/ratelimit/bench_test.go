package ratelimit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

func threeRules(b *testing.B) []Charge {
	b.Helper()
	return []Charge{
		{Rule: compile(b, rule.Spec{ID: "second", Rate: "1000000/s", Burst: 9_000_000_000})},
		{Rule: compile(b, rule.Spec{ID: "minute", Rate: "7000001/min", Burst: 100_000_000})},
		{Rule: compile(b, rule.Spec{ID: "subject", Rate: "1000000/s", Burst: 9_000_000_000}), Dimension: rule.Dimension("alice")},
	}
}

// threeOf returns charges of three rules of the given kind, which never deny: two of the tenant and one of a subject.
func threeOf(b *testing.B, kind rule.Kind) []Charge {
	b.Helper()
	if kind == rule.KindTokenBucket {
		return threeRules(b)
	}
	rates := map[rule.Kind][3]string{
		rule.KindLeakyBucket:   {"9000000000/s", "90000000000/min", "9000000000/s"},
		rule.KindFixedWindow:   {"9000000000/s", "9000000000000/day", "9000000000000/month"},
		rule.KindSlidingWindow: {"9000000000/s", "90000000000/min", "100000000/day"},
		rule.KindSlidingLog:    {"1000/ms", "1000/ms", "1000/ms"}, // some hundreds of tokens are in the log at a time
	}[kind]
	charges := make([]Charge, 3)
	for i := range charges {
		charges[i].Rule = compile(b, rule.Spec{ID: fmt.Sprintf("%s-%d", kind, i), Kind: kind.String(), Rate: rates[i]})
	}
	charges[2].Dimension = rule.Dimension("alice")
	return charges
}

// BenchmarkScript measures, for each kind of rule, how much time vectors save. Each request charges three rules of
// one tenant. The requests are sent one call at a time, one call per request in a pipeline, and as vectors.
func BenchmarkScript(b *testing.B) {
	all := make(map[string][]Charge)
	for _, kind := range kinds() {
		all[kind.String()] = threeOf(b, kind)
	}
	all["mixed"] = []Charge{all["token_bucket"][0], all["fixed_window"][1], all["sliding_window"][2]}
	client := patientClient(b, testenv.Redis(b))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		q := testenv.Must(b).Get(Request{Tenant: "acme", Charges: all[name]}.check(rule.Consume))
		for _, way := range []struct {
			name              string
			perBatch, perCall int
		}{{"one_call_per_request", 1, 1}, {"pipeline_of_64_calls", 64, 1}, {"vector_of_16", 16, 16}, {"vector_of_64", 64, 64}} {
			b.Run(name+"/"+way.name, func(b *testing.B) { benchScript(b, client, q, way.perBatch, way.perCall) })
		}
	}
}

// BenchmarkTenants measures requests as in the queue of a busy service. They come from many tenants, and each request
// charges three rules. They are sent with one call per request in a pipeline, and as vectors.
func BenchmarkTenants(b *testing.B) {
	client := patientClient(b, testenv.Redis(b))
	charges := threeRules(b)
	for o, name := range map[rule.Op]string{rule.Consume: "consume", rule.Peek: "peek"} {
		batch := make([]query, MaxVector)
		for i := range batch {
			tenant := fmt.Sprintf("tenant-%05d", i)
			batch[i] = testenv.Must(b).Get(Request{Tenant: tenant, Charges: charges}.check(o))
		}
		for _, perCall := range []int{1, 16, 42} {
			b.Run(fmt.Sprintf("%s/vector_of_%d", name, perCall), func(b *testing.B) { benchBatch(b, client, batch[:42], perCall) })
		}
	}
}

func benchScript(b *testing.B, client redis.UniversalClient, q query, perBatch, perCall int) {
	benchBatch(b, client, slices.Repeat([]query{q}, perBatch), perCall)
}

func benchBatch(b *testing.B, client redis.UniversalClient, batch []query, perCall int) {
	script := limitsScript(b, client)
	now := time.Now().UnixMicro()
	parts := slices.Collect(slices.Chunk(batch, perCall))
	benches := make([]*workbench, len(parts)) // one for each part, so that each call has only the requests of its part
	for i := range benches {
		benches[i] = newWorkbench(false)
	}
	b.ReportAllocs()
	cpu := redisCPU(b, client)
	for done := 0; done < b.N; done += len(batch) {
		calls := make([]redisstore.Call, len(parts))
		for i, part := range parts {
			benches[i].vectors(part, now)
			calls[i] = benches[i].calls(benches[i].used, 0)[0]
		}
		for i, reply := range script.Run(context.Background(), calls...) {
			answers := make([]redisstore.Result[answer], len(parts[i]))
			if _, err := benches[i].used[0].read(parts[i], reply, answers); err != nil || !answers[0].Answer.allowed {
				b.Fatalf("%+v, %v", answers[0], err)
			}
			benches[i].clear()
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	each := (redisCPU(b, client) - cpu) / float64(max(b.N, len(batch)))
	b.ReportMetric(each*1e6, "redis-us/decision")
	b.ReportMetric(1/each, "decisions/s-of-a-core") // the most that a Redis with no other work could decide
}

// redisCPU returns the CPU time that the server has used, in seconds.
func redisCPU(b *testing.B, client redis.UniversalClient) (seconds float64) {
	b.Helper()
	info := client.InfoMap(context.Background(), "cpu")
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds += testenv.Must(b).Get(strconv.ParseFloat(info.Item("CPU", name), 64))
	}
	return seconds
}

// BenchmarkConsume measures the whole limiter with many concurrent callers.
func BenchmarkConsume(b *testing.B) {
	for _, mode := range []string{"redis", "local"} {
		for _, tenants := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%s/tenants=%d", mode, tenants), func(b *testing.B) {
				l := patientLimiter(b, nil, settings{})
				if mode == "redis" {
					l = patientLimiter(b, patientClient(b, testenv.Redis(b)), settings{})
				}
				charges := threeRules(b)
				names := make([]string, tenants)
				for i := range names {
					names[i] = fmt.Sprintf("t%d", i)
				}
				var next atomic.Int64
				benchConsumes(b, l, true, func() Request {
					return Request{Tenant: names[next.Add(1)%int64(tenants)], Charges: charges}
				})
			})
		}
	}
}

// BenchmarkDenied measures a tenant that sends requests to an empty bucket without a pause, with and without
// remembered denials.
func BenchmarkDenied(b *testing.B) {
	for _, forgetful := range []bool{true, false} {
		b.Run(fmt.Sprintf("memo=%v", !forgetful), func(b *testing.B) {
			l := patientLimiter(b, patientClient(b, testenv.Redis(b)), settings{forgetful: forgetful})
			req := Request{Tenant: "acme", Charges: append(threeRules(b), Charge{Rule: compile(b, rule.Spec{ID: "empty", Rate: "1/day"})})}
			mustConsume(b, l, req)
			benchConsumes(b, l, false, func() Request { return req })
		})
	}
}

// benchConsumes runs consumes of many concurrent callers. Each consume must have the outcome `allowed`.
func benchConsumes(b *testing.B, l *Limiter, allowed bool, request func() Request) {
	b.ReportAllocs()
	b.SetParallelism(128)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if d, err := l.Consume(context.Background(), request()); err != nil || d.Allowed != allowed || d.Degraded {
				b.Errorf("%+v, %v", d, err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}
