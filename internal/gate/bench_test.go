package gate

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// checksOf returns an instance with three limits, and a check of each of its tenants.
func checksOf(b *testing.B, tenants int) (*instance, []Request) {
	b.Helper()
	in := newInstance(b, testenv.Postgres(b), patientClient(testenv.Redis(b)))
	var limits []catalog.Limit
	for i := range 3 {
		limits = append(limits, catalog.Limit{Rule: fmt.Sprint("rule", i), Per: []string{"tenant"}, Kind: "token_bucket", Rate: "1000000/s"})
	}
	in.catalogue(limits...)
	requests := make([]Request, tenants)
	for i := range requests {
		id := fmt.Sprint("tenant", i)
		in.putTenant(catalog.Tenant{ID: id, Plan: "basic"})
		requests[i] = Request{Tenant: id, Items: []ledger.Item{{Meter: "calls", Amount: 1}}}
	}
	return in, requests
}

// BenchmarkCheckBatch measures one batch of 64 checks. Each check is for a different tenant, and has one balance and
// three limits.
func BenchmarkCheckBatch(b *testing.B) {
	const size = 64
	in, requests := checksOf(b, size)
	for range 3 {
		in.CheckBatch(b.Context(), requests)
	}
	b.ReportAllocs()
	for b.Loop() {
		for i, o := range in.CheckBatch(b.Context(), requests) {
			if o.Err != nil || !o.Check.Allowed {
				b.Fatal(i, o)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/check")
}

// BenchmarkCheck measures checks of one balance from the cache and three limits, for one tenant or a thousand. It
// runs many callers per core, so that lanes have batches of several items.
func BenchmarkCheck(b *testing.B) {
	for _, tenants := range []int{1, 1000} {
		b.Run(fmt.Sprintf("tenants=%d", tenants), func(b *testing.B) {
			in, requests := checksOf(b, tenants)
			for _, req := range requests {
				_, err := in.Check(b.Context(), req)
				require.NoError(b, err)
			}
			var n, degraded, loaded atomic.Int64
			b.SetParallelism(128)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					got, err := in.Check(b.Context(), requests[int(n.Add(1))%tenants])
					switch {
					case err != nil || !got.Allowed:
						b.Errorf("%+v, %v", got, err)
					case got.Degraded:
						degraded.Add(1)
					case got.Source == SourceLedger:
						loaded.Add(1)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "checks/s")
			b.ReportMetric(float64(degraded.Load())/float64(b.N), "degraded/op")
			b.ReportMetric(float64(loaded.Load())/float64(b.N), "loaded/op")
		})
	}
}

// BenchmarkConsume_Refused measures consumes of more units than the balance has. They are refused from memory.
func BenchmarkConsume_Refused(b *testing.B) {
	for name, refused := range map[string]Request{"one balance": request("", "credits", 1), "overflow": wideRequest(0, "flowing", "", 1)} {
		b.Run(name, func(b *testing.B) {
			in := newInstance(b, testenv.Postgres(b), patientClient(testenv.Redis(b))).catalogue()
			in.putWide()
			for i := range 3 {
				in.putLimits(catalog.Limit{Rule: fmt.Sprint("rule", i), Per: []string{"tenant"}, Kind: "token_bucket", Rate: "1000000/s"})
			}
			keys := make([]string, 1024)
			for i := range keys {
				keys[i] = fmt.Sprint("key", i)
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				i++
				refused.Key = keys[i%len(keys)]
				if _, err := in.Consume(b.Context(), refused); errcode.Of(err) != errcode.CreditsExhausted {
					b.Fatal(err)
				}
			}
		})
	}
}
