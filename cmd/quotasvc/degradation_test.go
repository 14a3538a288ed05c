package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/testenv"
)

// The tests of docs/degradation.md. Each puts callers of four kinds on an instance, brings one fault about, and says what every kind sees.
const (
	// waitMax is the bound of the contract: no caller waits longer for a refusal.
	waitMax = 5 * time.Second

	// knownAfter is when PostgreSQL is known to be away, and atOnce is how long a refusal takes from then on.
	knownAfter = 4 * time.Second
	atOnce     = 100 * time.Millisecond

	// endsSoon is how long before the end of a fault no call is judged any more: the end may have answered it.
	endsSoon = 800 * time.Millisecond

	// callersEach is the number of callers of a kind.
	callersEach = 3
)

// busy is added to every bound: the machine runs other tests beside these. With the race detector no core is left.
var busy = map[bool]time.Duration{false: 700 * time.Millisecond, true: 3 * time.Second}[raceDetector]

// call is one request and what became of it.
type call struct {
	kind     string // check, consume, debit, admin
	sent     time.Time
	took     time.Duration
	status   int // 0: no answer
	code     string
	degraded bool
	body     string
	key      string
}

func (c call) String() string {
	return fmt.Sprintf("%s: %d %s after %s, degraded %t: %s", c.kind, c.status, c.code, c.took.Round(time.Millisecond), c.degraded, c.body)
}

var callKinds = []string{"check", "consume", "debit", "admin"}

// trial is an instance, its callers, and a fault.
type trial struct {
	t          *testing.T
	in         *instance
	env        []string
	mu         sync.Mutex
	calls      []call
	begun, end time.Time // of the fault
	rates      atomic.Int64

	degradedIsWell bool // recovery does not wait for Redis
}

// newTrial starts an instance on the URLs, with a tenant and a limit.
func newTrial(t *testing.T, databaseURL, redisURL string) *trial {
	t.Helper()
	env := []string{
		"QUOTASVC_DATABASE_URL=" + testenv.AsService(databaseURL), "QUOTASVC_REDIS_URL=" + redisURL, "QUOTASVC_ADMIN_KEY=" + testKey,
		"QUOTASVC_LOG_LEVEL=warn", "QUOTASVC_VERIFY_EVERY=0s",
	}
	tr := &trial{t: t, in: serve(t, env), env: env}
	tr.in.setUp(t, 1_000_000)
	tr.in.do(t, http.StatusCreated, "PUT", "/v1/limits/api", "", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "100000/s", "burst": 100000})
	return tr
}

// through has callers on the instance before, during and after a fault, which lasts for d. It returns when every kind of call succeeds again.
func (tr *trial) through(d time.Duration, begin, end func()) {
	tr.t.Helper()
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for _, kind := range callKinds {
		for n := range callersEach {
			callers.Go(func() { tr.keepCalling(kind, n, stop) })
		}
	}
	time.Sleep(500 * time.Millisecond) // calls before the fault
	tr.begun = time.Now()
	begin()
	time.Sleep(d)
	tr.end = time.Now()
	end()
	tr.awaitRecovery()
	close(stop)
	callers.Wait()
	tr.noticed()
}

func (tr *trial) keepCalling(kind string, n int, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(30 * time.Millisecond): // the pace
		}
		c := tr.in.call(context.Background(), kind, fmt.Sprintf("%s-%d-%d", kind, n, i), tr.rates.Add(1))
		tr.mu.Lock()
		tr.calls = append(tr.calls, c)
		tr.mu.Unlock()
	}
}

// call makes one request of a kind. One of kind admin stores a limit with another rate each time, because an equal one is not written.
func (in *instance) call(ctx context.Context, kind, key string, rate int64) call {
	c := call{kind: kind, sent: time.Now(), key: key}
	method, path, body := "POST", "/v1/"+kind, debitOf("acme", "api_calls", 1)
	switch kind {
	case "debit":
		path = "/v1/debits"
	case "admin":
		method, path, body = "PUT", "/v1/limits/admin", object{"per": []string{"ip"}, "kind": "token_bucket", "rate": fmt.Sprintf("%d/h", 1000+rate)}
	}
	a, err := in.send(ctx, method, path, key, body)
	c.took = time.Since(c.sent)
	if err != nil {
		c.body = err.Error()
		return c
	}
	var facts struct {
		Code     string
		Degraded bool
	}
	_ = json.Unmarshal(a.body, &facts) // an answer without these has none of them
	c.status, c.code, c.degraded, c.body = a.status, facts.Code, facts.Degraded || a.header.Get("X-RateLimit-Mode") == "local", string(a.body)
	return c
}

// awaitRecovery waits until the newest calls of every kind are successful, and not degraded unless that is well.
func (tr *trial) awaitRecovery() {
	tr.t.Helper()
	testenv.Eventually(tr.t, func() bool {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		well := map[string]bool{}
		for _, c := range tr.calls {
			if c.sent.After(tr.end) {
				well[c.kind] = c.status/100 == 2 && (tr.degradedIsWell || !c.degraded)
			}
		}
		return well["check"] && well["consume"] && well["debit"] && well["admin"]
	})
}

// during returns the calls of a kind that were sent in the fault, from a while after its beginning, and not so late that its end may have
// answered them.
func (tr *trial) during(kind string, from time.Duration) []call {
	var out []call
	for _, c := range tr.calls {
		if c.kind == kind && c.sent.After(tr.begun.Add(from)) && c.sent.Before(tr.end.Add(-endsSoon)) {
			out = append(out, c)
		}
	}
	return out
}

// noticed checks what holds in every fault: nobody waited longer than the contract says, every answer is a success or says unavailable, and
// calls that were sent when all was well again succeed.
func (tr *trial) noticed() {
	tr.t.Helper()
	for _, kind := range callKinds {
		n := tr.during(kind, 0)
		statuses := map[string]int{}
		var longest time.Duration
		for _, c := range n {
			statuses[fmt.Sprintf("%d %s degraded=%t", c.status, c.code, c.degraded)]++
			longest = max(longest, c.took)
		}
		tr.t.Logf("%-8s %v, longest %s; sent after 4 s: %d, longest %s", kind, statuses, longest.Round(time.Millisecond),
			len(tr.during(kind, knownAfter)), slowest(tr.during(kind, knownAfter)).Round(time.Millisecond))
	}
	for _, c := range tr.calls {
		if c.took > waitMax+busy {
			tr.t.Errorf("waited too long: %s", c)
		}
		if c.status/100 != 2 && c.status != http.StatusServiceUnavailable {
			tr.t.Errorf("neither done nor unavailable: %s", c)
		}
	}
}

func slowest(calls []call) (d time.Duration) {
	for _, c := range calls {
		d = max(d, c.took)
	}
	return d
}

// each fails the test unless every call of the kinds that was sent in the fault, from a while after its beginning, is as wanted.
func (tr *trial) each(kinds string, from time.Duration, want string, ok func(c call) bool) {
	tr.t.Helper()
	for kind := range strings.FieldsSeq(kinds) {
		calls := tr.during(kind, from)
		if len(calls) == 0 {
			tr.t.Errorf("no %s was sent in the fault", kind)
		}
		if i := slices.IndexFunc(calls, func(c call) bool { return !ok(c) }); i >= 0 {
			tr.t.Errorf("want %s, got, %s after the beginning: %s", want, calls[i].sent.Sub(tr.begun).Round(time.Millisecond), calls[i])
		}
	}
}

func succeeds(c call) bool { return c.status/100 == 2 }

func refused(c call) bool {
	return c.status == http.StatusServiceUnavailable && (c.code == "unavailable" || c.code == "outcome_unknown")
}

func refusedAtOnce(c call) bool { return refused(c) && c.took < atOnce+busy }

// exactlyWhatWasAcknowledged checks that each acknowledged operation is charged once, and that verify is clean. Operations without a final
// answer are sent again first.
func (tr *trial) exactlyWhatWasAcknowledged() {
	tr.t.Helper()
	charged := int64(0)
	for _, c := range tr.calls {
		if c.kind != "debit" && c.kind != "consume" {
			continue
		}
		charged++
		again := tr.in.call(tr.t.Context(), c.kind, c.key, 0)
		if again.status != http.StatusOK {
			tr.t.Errorf("%s, sent again: %s", c, again)
		}
	}
	if used := tr.in.balance(tr.t, "acme", "api_calls").Used; used != charged {
		tr.t.Errorf("used %d, want %d", used, charged)
	}
	if status, stdout, stderr := tool(tr.t, tr.env, "verify"); status != 0 {
		tr.t.Errorf("verify ended with %d\n%s\n%s", status, stdout, stderr)
	}
}
