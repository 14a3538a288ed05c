package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// A tenant in use has been debited and checked. The instance has the tenant's catalogue data and a copy of the balance.
// It announces in Redis that it uses the balance, and watches the tenant's keys. Before this data was packed, a tenant
// took 1,570 bytes of the heap. See docs/decisions/memory.md.
func TestServe_ATenantInUse_TakesAtMost700Bytes(t *testing.T) {
	if raceDetector {
		t.Skip("the detector has memory of its own")
	}
	const tenants, batch, most = 10_000, 500, 700
	url := testenv.Postgres(t)
	env := using(url, testenv.RedisURL(t), "QUOTASVC_LOG_LEVEL=warn", "QUOTASVC_VERIFY_EVERY=0s", "QUOTASVC_PPROF=true")
	in := serve(t, env).setUp(t, 1_000_000)
	limitOf := func(per ...string) object { return object{"per": per, "kind": "token_bucket", "rate": "1000000/s"} }
	in.do(t, http.StatusCreated, "PUT", "/v1/limits/routes", "", limitOf("tenant", "route"))
	in.do(t, http.StatusCreated, "PUT", "/v1/limits/users", "", limitOf("tenant", "subject"))
	in.limit(t, "tenants", limitOf("tenant"))
	db := testenv.Connect(t, url)
	testenv.Exec(t, db, `INSERT INTO tenants (tenant_id, plan, anchor, metadata)
		SELECT 'tenant-' || lpad(i::text, 8, '0'), 'basic', clock_timestamp(), '{"name": "Example Incorporated", "country": "NP"}' FROM generate_series(0, 14999) AS i`)
	testenv.Exec(t, db, `INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, initial)
		SELECT tenant_id, created_at, plan, anchor, timezone, true FROM tenants WHERE tenant_id LIKE 'tenant-%'`)
	use := func(first, end int) {
		for _, path := range []string{"/v1/debits/batch", "/v1/check/batch", "/v1/check/batch"} {
			testenv.Together(8, func(caller int) {
				for at := first + caller*batch; at < end; at += 8 * batch {
					body := object{}
					for i := range batch {
						one := debitOf(fmt.Sprintf("tenant-%08d", at+i), "api_calls", 1)
						if path == "/v1/debits/batch" {
							one["idempotency_key"] = fmt.Sprint("d", at+i)
							body["debits"] = append(list(body["debits"]), one)
						} else {
							one["route"], one["subject"] = "/orders", "user"
							body["checks"] = append(list(body["checks"]), one)
						}
					}
					in.do(t, http.StatusOK, "POST", path, "", body)
				}
			})
		}
	}
	use(tenants, tenants+5000) // after this, buffers and connections exist, and queues have their full length
	before := in.heap(t)
	use(0, tenants)
	each := 0.0
	defer func() { t.Logf("%.0f bytes", each) }()
	testenv.Eventually(t, func() bool { // on a slow machine, temporary data is freed later
		each = (in.heap(t) - before) / tenants
		return each <= most
	}, "a tenant in use takes at most ", most, " bytes")
}

func list(v any) []object {
	all, _ := v.([]object)
	return all
}

var heapLine = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)

// heap returns the number of bytes in use in the heap, after temporary data was freed.
func (in *instance) heap(t testing.TB) (bytes float64) {
	t.Helper()
	time.Sleep(3 * time.Second) // copies are kept for 2 s in case a request needs them
	for range 2 {
		got := in.ask(t, "/debug/pprof/heap?gc=1&debug=1")
		line := heapLine.FindSubmatch(got.body)
		require.NotNil(t, line, "%d: %.200s", got.status, got.body)
		bytes = testenv.Must(t).Get(strconv.ParseFloat(string(line[1]), 64))
	}
	return bytes
}
