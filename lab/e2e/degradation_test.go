package e2e

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

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// These constants are for the tests of docs/degradation.md. Each test runs four kinds of callers on an instance,
// causes one fault, and checks the answers to each kind. Only calls that were sent and answered during the fault
// count. The fault lasts until there are enough such calls.
const (
	// waitMax is ten times the contract's maximum of 5 s. By the contract, no caller waits longer for a refusal.
	waitMax = 50 * time.Second

	// atOnceMax is ten times the duration of a refusal when the instance knows that PostgreSQL is away.
	atOnceMax = time.Second

	// callersEach is the number of callers of a kind. answersEach is the number of answers that each caller gets
	// during a fault.
	callersEach, answersEach = 3, 5
)

// call is a request of a caller and its result.
type call struct {
	kind     string // check, consume, debit or admin
	caller   int
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

const everyKind = "check consume debit admin"

// trial is an instance, its callers, and a fault.
type trial struct {
	t     *testing.T
	in    *instance
	env   []string
	rates atomic.Int64

	mu    sync.Mutex
	calls []call // calls that have ended

	begun   time.Time // beginning of the fault
	known   time.Time // instant at which the effect of the fault was seen
	end     time.Time // instant just before the end of the fault
	untried float64   // operations that were refused without an attempt, between known and end

	answersEach    int
	degradedIsWell bool // whether degraded answers count as a recovery, so that through does not wait for Redis
}

// newTrial starts an instance on the two servers, with a tenant and a limit.
func newTrial(t *testing.T, databaseURL, redisURL string) *trial {
	t.Helper()
	env := using(testenv.AsService(databaseURL), redisURL, "QUOTASVC_LOG_LEVEL=warn", "QUOTASVC_VERIFY_EVERY=0s")
	return trialOf(t, serve(t, env), env)
}

// trialOf returns a trial of an instance, and makes a tenant and a limit.
func trialOf(t *testing.T, in *instance, env []string) *trial {
	t.Helper()
	tr := &trial{t: t, in: in, env: env, answersEach: answersEach}
	tr.in.setUp(t, 1_000_000)
	tr.in.do(t, http.StatusCreated, "PUT", "/v1/limits/api", "", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "100000/s", "burst": 100000})
	return tr
}

// through runs callers on the instance before, during and after a fault. The fault lasts until the function `known`
// returns true. It continues until each caller has got enough answers to new calls. through returns when every caller
// succeeds again.
func (tr *trial) through(begin, end func(), known func() bool) {
	tr.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	defer callers.Wait()
	defer stop()
	for kind := range strings.FieldsSeq(everyKind) {
		for n := range callersEach {
			callers.Go(func() { tr.keepCalling(ctx, kind, n) })
		}
	}
	await := func(what string, reached func() bool) {
		tr.t.Helper()
		testenv.Eventually(tr.t, reached, what)
	}
	await("a success of each caller before the fault", func() bool { return tr.newest(everyKind, time.Time{}, 1, succeeds) })
	begin()
	tr.begun = time.Now()
	await("the effect of the fault", known)
	before := tr.refusedUntried()
	tr.known = time.Now()
	await("answers of each caller in the fault", func() bool {
		return tr.newest(everyKind, tr.known, tr.answersEach, func(call) bool { return true })
	})
	tr.end = time.Now()
	tr.untried = tr.refusedUntried() - before
	end()
	await("a success of each caller after the fault", func() bool {
		return tr.newest(everyKind, tr.end, 1, func(c call) bool { return succeeds(c) && (tr.degradedIsWell || !c.degraded) })
	})
	stop()
	callers.Wait()
	tr.noticed()
}

func (tr *trial) keepCalling(ctx context.Context, kind string, n int) {
	for i := 0; pace(ctx, 30*time.Millisecond); i++ {
		c := tr.in.call(context.Background(), kind, fmt.Sprintf("%s-%d-%d", kind, n, i), tr.rates.Add(1))
		c.caller = n
		tr.mu.Lock()
		tr.calls = append(tr.calls, c)
		tr.mu.Unlock()
	}
}

// call sends one request of a kind. Each request of the kind admin stores a limit with another rate, because an
// unchanged limit is not written to the database.
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
	_ = json.Unmarshal(a.body, &facts) // an answer without these fields leaves them empty
	c.status, c.code, c.degraded, c.body = a.status, facts.Code, facts.Degraded || a.header.Get("X-RateLimit-Mode") == "local", string(a.body)
	return c
}

// newest reports whether each caller of the kinds has got this number of answers to calls that it sent after an
// instant. The function `ok` must also return true for the newest of these answers.
func (tr *trial) newest(kinds string, after time.Time, answers int, ok func(c call) bool) bool {
	type caller struct {
		kind string
		n    int
	}
	row := map[caller]int{} // number of consecutive good answers
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, c := range tr.calls {
		switch at := (caller{c.kind, c.caller}); {
		case !c.sent.After(after):
		case ok(c):
			row[at]++
		default:
			row[at] = 0
		}
	}
	for kind := range strings.FieldsSeq(kinds) {
		for n := range callersEach {
			if row[caller{kind, n}] < answers {
				return false
			}
		}
	}
	return true
}

// Tests pass always, postgresIsAway or the result of answers to through, as its argument `known`. The function always
// is for a fault whose effect callers need not see. postgresIsAway waits for the circuit breaker of PostgreSQL. The
// result of answers waits for answers to callers.

func always() bool { return true }

func (tr *trial) postgresIsAway() bool {
	tr.t.Helper()
	return metricOf(tr.in.metrics(tr.t), "quotasvc_ledger_breaker_open") == 1
}

func (tr *trial) answers(kinds string, ok func(c call) bool) func() bool {
	return func() bool { return tr.newest(kinds, tr.begun, 1, ok) }
}

// refusedUntried returns the number of operations that were refused without an attempt because PostgreSQL is known to
// be away.
func (tr *trial) refusedUntried() float64 {
	tr.t.Helper()
	return metricOf(tr.in.metrics(tr.t), `quotasvc_ledger_refusals_total{reason="away"}`)
}

// during returns the calls of a kind that were sent after an instant and answered during the fault.
func (tr *trial) during(kind string, from time.Time) []call {
	var out []call
	for _, c := range tr.calls {
		if c.kind == kind && c.sent.After(from) && c.sent.Add(c.took).Before(tr.end) {
			out = append(out, c)
		}
	}
	return out
}

// noticed checks the promises that hold in every fault. No caller waits longer than the contract allows. Every answer
// is a success or has the code unavailable. Calls that are sent after the fault succeed.
func (tr *trial) noticed() {
	tr.t.Helper()
	for kind := range strings.FieldsSeq(everyKind) {
		statuses := map[string]int{}
		for _, c := range tr.during(kind, tr.begun) {
			statuses[fmt.Sprintf("%d %s degraded=%t", c.status, c.code, c.degraded)]++
		}
		tr.t.Logf("%-8s %v; sent when it was known: %d", kind, statuses, len(tr.during(kind, tr.known)))
	}
	for _, c := range tr.calls {
		assert.True(tr.t, c.took <= waitMax, "waited too long: %s", c)
		assert.False(tr.t, c.status/100 != 2 && c.status != http.StatusServiceUnavailable,
			"neither done nor unavailable: %s", c)
	}
}

// each examines the calls of some kinds that were sent after an instant and answered during the fault. It fails the
// test unless the function `ok` returns true for every one of them.
func (tr *trial) each(kinds string, from time.Time, want string, ok func(c call) bool) {
	tr.t.Helper()
	for kind := range strings.FieldsSeq(kinds) {
		calls := tr.during(kind, from)
		assert.True(tr.t, len(calls) >= callersEach*tr.answersEach, "%d calls of %s in the fault", len(calls), kind)
		if i := slices.IndexFunc(calls, func(c call) bool { return !ok(c) }); i >= 0 {
			tr.t.Errorf("want %s, got, %s after the beginning: %s", want, calls[i].sent.Sub(tr.begun).Round(time.Millisecond), calls[i])
		}
	}
}

func succeeds(c call) bool { return c.status/100 == 2 }

func refused(c call) bool {
	return c.status == http.StatusServiceUnavailable && (c.code == "unavailable" || c.code == "outcome_unknown")
}

// refusedAtOnce checks that the instance refused all calls that need PostgreSQL and were sent after tr.known.
// Operations must have been refused without an attempt. Their number does not include changes of the catalogue. For
// changes, refusedAtOnce checks the quickest one, because every change with an attempt would have to wait.
func (tr *trial) refusedAtOnce() {
	tr.t.Helper()
	tr.each("consume debit admin", tr.known, "a refusal", refused)
	n := len(tr.during("consume", tr.known)) + len(tr.during("debit", tr.known))
	assert.True(tr.t, tr.untried >= float64(n), "%g operations were refused without an attempt, of %d", tr.untried, n)
	quick := func(c call) bool { return c.took < atOnceMax }
	assert.True(tr.t, slices.ContainsFunc(tr.during("admin", tr.known), quick), "no change was refused at once")
}

// exactlyWhatWasAcknowledged first sends the operations without a final answer again. Then it checks that each
// acknowledged operation is charged once and that verify finds no difference.
func (tr *trial) exactlyWhatWasAcknowledged() {
	tr.t.Helper()
	charged := int64(0)
	for _, c := range tr.calls {
		if c.kind != "debit" && c.kind != "consume" {
			continue
		}
		charged++
		again := tr.in.call(tr.t.Context(), c.kind, c.key, 0)
		assert.True(tr.t, again.status == http.StatusOK, "%s, sent again: %s", c, again)
	}
	assert.Equal(tr.t, charged, tr.in.balance(tr.t, "acme", "api_calls").Used, "used")
	must(tr.t, tr.env, "verify")
}
