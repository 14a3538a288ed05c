package gate

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

// largeSize returns the rules of the test of large catalogues: few in the suite, any number by QUOTASVC_TEST_LARGE.
func largeSize(t testing.TB) (rules int, full bool) {
	t.Helper()
	text := os.Getenv("QUOTASVC_TEST_LARGE")
	if text == "" {
		return 800, false
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n, true
}

func execute(t testing.TB, databaseURL string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// largeCatalogue stores rules by hand: of each four one that replaces api for a tenant, one that replaces slots for a tenant, and two
// for patterns that differ behind their star.
func largeCatalogue(t testing.TB, databaseURL string, rules int) {
	t.Helper()
	quarter := rules / 4
	execute(t, databaseURL,
		fmt.Sprintf(`INSERT INTO tenants (tenant_id, plan, anchor) SELECT 't' || n, 'basic', now() FROM generate_series(1, %d) n`, quarter),
		`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, initial) SELECT tenant_id, created_at, plan, anchor, timezone, true FROM tenants`,
		`INSERT INTO limits (rule, spec) VALUES ('api', '{"rule":"api","per":["tenant"],"kind":"token_bucket","rate":"100000/s"}'),
		 ('slots', '{"rule":"slots","per":["tenant"],"kind":"concurrency","burst":10000}')`,
		fmt.Sprintf(`INSERT INTO limits (rule, spec) SELECT 'api-t' || n, jsonb_build_object('rule', 'api-t' || n, 'per', jsonb_build_array('tenant'),
			'kind', 'token_bucket', 'rate', '200000/s', 'replaces', 'api', 'match', jsonb_build_object('tenant', 't' || n)) FROM generate_series(1, %d) n`, quarter),
		fmt.Sprintf(`INSERT INTO limits (rule, spec) SELECT 'slots-t' || n, jsonb_build_object('rule', 'slots-t' || n, 'per', jsonb_build_array('tenant'),
			'kind', 'concurrency', 'burst', 9000, 'replaces', 'slots', 'match', jsonb_build_object('tenant', 't' || n)) FROM generate_series(1, %d) n`, quarter),
		fmt.Sprintf(`INSERT INTO limits (rule, spec) SELECT 'route-' || n, jsonb_build_object('rule', 'route-' || n, 'per', jsonb_build_array('tenant'),
			'kind', 'token_bucket', 'rate', '100000/s', 'match', jsonb_build_object('route', '/v1/*/w' || n)) FROM generate_series(1, %d) n`, 2*quarter),
	)
}

// median returns the middle and the largest of times.
func median(times []time.Duration) (middle, most time.Duration) {
	slices.Sort(times)
	return times[len(times)/2].Round(10 * time.Microsecond), times[len(times)-1].Round(10 * time.Microsecond)
}

// TestLarge_Catalogue loads rules by hand and measures a PUT, the longest check beside changes and reloads, a lease, and memory. With
// QUOTASVC_TEST_LARGE=20000 it fails if they are worse than docs/limits.md says.
func TestLarge_Catalogue(t *testing.T) {
	rules, full := largeSize(t)
	url := testenv.Postgres(t)
	largeCatalogue(t, url, rules)
	in := newInstance(t, url, patientClient(testenv.Redis(t)))
	in.catalogue()
	in.putTenant(catalog.Tenant{ID: "t1", Plan: "basic"})
	check := func() time.Duration {
		req := request("", "calls", 1)
		req.Tenant, req.Route = "t1", "/v1/x/w7"
		began := time.Now()
		out, err := in.Check(t.Context(), req)
		took := time.Since(began)
		if err != nil || len(out.Limits) != 2 || out.Limits[0].Rule != "api-t1" {
			t.Errorf("%+v, %v", out.Limits, err)
		}
		return took
	}
	check()
	measure := func(beside func()) []time.Duration {
		var times []time.Duration
		var done atomic.Bool
		var checks sync.WaitGroup
		checks.Go(func() {
			for !done.Load() {
				times = append(times, check())
				time.Sleep(2 * time.Millisecond)
			}
		})
		beside()
		done.Store(true)
		checks.Wait()
		return times
	}
	quiet, quietMost := median(measure(func() { time.Sleep(time.Second) }))

	var puts []time.Duration
	changing, changingMost := median(measure(func() {
		for i := range 20 {
			l := limitNamed(fmt.Sprint("api-t", 1+i), "api", catalog.Match{Tenant: fmt.Sprint("t", 1+i)})
			l.Rate = fmt.Sprint(200_001+i, "/s")
			began := time.Now()
			if _, _, err := in.tenants.catalog.PutLimit(t.Context(), l); err != nil {
				t.Error(err)
			}
			puts = append(puts, time.Since(began))
		}
		time.Sleep(time.Second) // reloads go on
	}))
	put, putMost := median(puts)

	var leases []time.Duration
	for range 50 {
		began := time.Now()
		lease, err := in.Acquire(t.Context(), LeaseRequest{Tenant: "t1", Rule: "slots"})
		leases = append(leases, time.Since(began))
		if err != nil || lease.Rule != "slots-t1" {
			t.Fatalf("%+v, %v", lease, err)
		}
	}
	lease, leaseMost := median(leases)
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	t.Logf("%d rules: PUT %s, at most %s; check %s, at most %s; beside changes %s, at most %s; lease %s, at most %s; heap %d MB",
		rules, put, putMost, quiet, quietMost, changing, changingMost, lease, leaseMost, mem.HeapAlloc>>20)
	if full && (put > 50*time.Millisecond || changingMost > quietMost+5*time.Millisecond) {
		t.Errorf("a PUT takes %s, at most 50 ms are allowed; a check %s, at most 5 ms more than the %s without changes", put, changingMost, quietMost)
	}
}

// Requests go on with the rules so far while new ones are compiled.
func TestReload_WhileRulesAreCompiled_RequestsGoOn(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue()
	in.putLimits(limitNamed("old", "", catalog.Match{}))
	compiling, proceed := make(chan struct{}), make(chan struct{})
	first := true
	in.tenants.catalog.Compile(func(s, before *catalog.Snapshot) any {
		if !first {
			close(compiling)
			<-proceed
		}
		first = false
		return in.tenants.compile(s, before)
	})
	if _, _, err := in.tenants.catalog.PutLimit(t.Context(), limitNamed("new", "", catalog.Match{})); err != nil {
		t.Fatal(err)
	}
	<-compiling
	for range 3 {
		out, err := in.Check(t.Context(), request("", "calls", 1))
		if err != nil || len(out.Limits) != 1 {
			t.Errorf("%+v, %v", out.Limits, err)
		}
	}
	close(proceed)
	eventually(t, "the new limit applies", func() bool {
		out, err := in.Check(t.Context(), request("", "calls", 1))
		return err == nil && len(out.Limits) == 2
	})
}

// A rule that replaces another one for a tenant has the name of the tenant. It is no label in metrics.
func TestMetrics_RulesOfTenants_ShareTheLabelOfTheRuleTheyReplace(t *testing.T) {
	t.Parallel()
	const tenants = 300
	url := testenv.Postgres(t)
	largeCatalogue(t, url, 4*tenants)
	in := newInstance(t, url, nil)
	in.catalogue()
	for n := range tenants {
		req := request("", "calls", 1)
		req.Tenant = fmt.Sprint("t", 1+n)
		if _, err := in.Check(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		lease, err := in.Acquire(t.Context(), LeaseRequest{Tenant: req.Tenant, Rule: "slots"})
		if err != nil || lease.Rule != "slots-"+req.Tenant {
			t.Fatalf("%+v, %v", lease, err)
		}
		if n%2 == 0 {
			continue
		}
		in.release(lease.ID)
	}
	for name, want := range map[string]int{"quotasvc_limit_decisions_total": 2, "quotasvc_limit_leases_total": 2, "quotasvc_limit_leases_held": 1} {
		if got, err := testutil.GatherAndCount(in.measured, name); err != nil || got != want {
			t.Errorf("%s has %d series for %d tenants, want %d (%v)", name, got, tenants, want, err)
		}
	}
}

func (in *instance) release(lease string) {
	in.t.Helper()
	id, err := in.ParseLease(lease)
	if err == nil {
		err = in.Release(in.t.Context(), id)
	}
	if err != nil {
		in.t.Fatal(err)
	}
}
