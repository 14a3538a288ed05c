package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// All clients together request more units than there are. They send every request twice at the same time.
const (
	crowdUnits   = 1000
	crowdClients = 200
	crowdEach    = 6 // 1,200 operations for 1,000 units
)

// crowd sends every client's operations twice. It returns the two final answers of each operation, by its key. The
// function `pick` chooses the instance for each sending of a request. If a sender gets no answer or a 503, it sends the
// request again.
func crowd(t *testing.T, pick func(client, sending int) *instance, progress func(succeeded int64)) map[string][2]answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	var mu sync.Mutex
	answers := map[string][2]answer{}
	var succeeded atomic.Int64
	testenv.Together(crowdClients, func(client int) {
		for n := range crowdEach {
			key := fmt.Sprintf("client-%d-%d", client, n)
			var pair [2]answer
			var both sync.WaitGroup
			for sending := range pair {
				both.Go(func() {
					pair[sending] = untilAnswered(ctx, func(try int) *instance { return pick(client, sending+try) }, key)
				})
			}
			both.Wait()
			if pair[0].status == http.StatusOK {
				progress(succeeded.Add(1))
			}
			mu.Lock()
			answers[key] = pair
			mu.Unlock()
		}
	})
	require.True(t, ctx.Err() == nil, "the crowd was not served")
	return answers
}

// untilAnswered sends a debit of one unit until it gets a final answer. The key makes the retries safe.
func untilAnswered(ctx context.Context, pick func(try int) *instance, key string) answer {
	for try := 0; ctx.Err() == nil; try++ {
		got, err := pick(try).send(ctx, "POST", "/v1/debits", key, debitOf("acme", "api_calls", 1))
		if err == nil && got.status != http.StatusServiceUnavailable {
			return got
		}
		pace(ctx, 10*time.Millisecond) // a client should wait between two attempts
	}
	return answer{}
}

// expectExact checks that the two answers of each operation agree, and compares the answers with the stored balance.
func expectExact(t *testing.T, in *instance, env []string, answers map[string][2]answer) {
	t.Helper()
	var succeeded, denied int
	for key, pair := range answers {
		for _, a := range pair {
			assert.True(t, a.status == pair[0].status, "%s: one sender got %s, the other %s", key, pair[0], pair[1])
			assert.True(t, a.status != http.StatusTooManyRequests || strings.Contains(string(a.body), "quota_exceeded"),
				"%s: denied with %s", key, a)
		}
		switch pair[0].status {
		case http.StatusOK:
			succeeded++
			assert.True(t, replayed(pair[0])+replayed(pair[1]) >= 1,
				"%s: neither of two equal requests was a replay", key)
		case http.StatusTooManyRequests:
			denied++
		default:
			t.Errorf("%s: answered %s", key, pair[0])
		}
	}
	assert.True(t, succeeded == crowdUnits && denied == crowdClients*crowdEach-crowdUnits,
		"%d debits succeeded and %d were denied, want %d and %d", succeeded, denied, crowdUnits, crowdClients*crowdEach-crowdUnits)
	b := in.balance(t, "acme", "api_calls")
	assert.True(t, b.Used == crowdUnits && b.Remaining == 0,
		"used %d, remaining %d; want %d, 0", b.Used, b.Remaining, crowdUnits)
	assert.Contains(t, must(t, env, "verify"), "all agree")
}

func replayed(a answer) int {
	if a.header.Get("Idempotent-Replayed") == "true" {
		return 1
	}
	return 0
}

func TestServe_ThousandUnits_UsedExactlyOnce(t *testing.T) {
	in, env := parallelService(t, crowdUnits)
	answers := crowd(t, func(int, int) *instance { return in }, func(int64) {})
	expectExact(t, in, env, answers)
	in.stop()
}

func TestServe_TwoInstances_Agree(t *testing.T) {
	t.Parallel()
	env := backends(t)
	both := [2]*instance{serve(t, env), serve(t, env)}
	both[0].setUp(t, crowdUnits)
	// The two sendings of a request go to different instances.
	answers := crowd(t, func(client, sending int) *instance { return both[(client+sending)%2] }, func(int64) {})
	expectExact(t, both[0], env, answers)
	a, b := both[0].balance(t, "acme", "api_calls"), both[1].balance(t, "acme", "api_calls")
	assert.True(t, a.Used == b.Used && a.Remaining == b.Remaining, "one instance returns %+v, the other %+v", a, b)
}

func TestServe_KilledAndRestarted_SameResult(t *testing.T) {
	t.Parallel()
	env := backends(t)
	first := serve(t, env).setUp(t, crowdUnits)
	var current atomic.Pointer[instance]
	current.Store(first)
	var once sync.Once
	restarted := make(chan struct{})
	answers := crowd(t, func(int, int) *instance { return current.Load() }, func(succeeded int64) {
		if succeeded < crowdUnits/3 {
			return
		}
		once.Do(func() {
			first.signal(syscall.SIGKILL)
			go func() {
				defer close(restarted)
				<-first.ended
				current.Store(serve(t, env)) //nolint:testifylint // if serve fails, restarted is closed and the test ends
			}()
		})
	})
	<-restarted
	require.True(t, current.Load() != first, "the service was not killed")
	expectExact(t, current.Load(), env, answers)
}

// TestServe_KilledWhileGrantsAreExtended_EachOnceAndNothingMissing: if a client gets no answer, it sends the
// extension again with its key. At no time is a unit missing. Each grant has exactly one entry about its later end.
func TestServe_KilledWhileGrantsAreExtended_EachOnceAndNothingMissing(t *testing.T) {
	t.Parallel()
	const grants, each = 24, 10
	env := backends(t)
	first := serve(t, env).setUp(t, crowdUnits)
	id := func(n int) string { return fmt.Sprint("pack-", n) }
	for n := range grants {
		first.do(t, 201, "POST", "/v1/tenants/acme/grants", id(n), object{
			"meter": "api_calls", "amount": each, "source": "topup", "grant_id": id(n), "expires_at": "2090-01-01T00:00:00Z",
		})
	}
	want := first.balance(t, "acme", "api_calls").Remaining
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	var current atomic.Pointer[instance]
	current.Store(first)
	var extended atomic.Int64
	watched, endWatch := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for pace(watched, time.Millisecond) {
			var b balance
			got, err := current.Load().send(ctx, "GET", "/v1/tenants/acme/balances/api_calls", "", nil)
			if err == nil && got.status == http.StatusOK {
				err = json.Unmarshal(got.body, &b)
				assert.True(t, err == nil && b.Remaining == want,
					"%d units remain meanwhile, want %d (%v)", b.Remaining, want, err)
			}
		}
	})
	var all sync.WaitGroup
	for n := range grants {
		all.Go(func() {
			for ctx.Err() == nil {
				got, err := current.Load().send(ctx, "POST", "/v1/tenants/acme/grants/"+id(n)+"/extend", "extend-"+id(n), object{"expires_at": "2095-01-01T00:00:00Z", "reason": "paid late"})
				if err == nil && got.status == http.StatusOK {
					if extended.Add(1) == grants/4 {
						first.signal(syscall.SIGKILL) // other extensions are in progress
					}
					return
				}
				if err == nil && got.status != http.StatusServiceUnavailable {
					t.Errorf("%s: %s", id(n), got)
					return
				}
				pace(ctx, 10*time.Millisecond) // a client should wait between two attempts
			}
		})
	}
	select {
	case <-first.ended:
	case <-ctx.Done():
		t.Fatal("the service was not killed")
	}
	current.Store(serve(t, env))
	all.Wait()
	endWatch()
	watching.Wait()
	in := current.Load()
	for n := range grants { // including grants whose extension was answered before the kill
		again := in.do(t, 200, "POST", "/v1/tenants/acme/grants/"+id(n)+"/extend", "extend-"+id(n), object{"expires_at": "2095-01-01T00:00:00Z", "reason": "paid late"})
		assert.Equal(t, 1, replayed(again), "%s was extended again", id(n))
	}
	var list struct{ Items []struct{ Grant string } }
	in.do(t, 200, "GET", "/v1/tenants/acme/entries?kind=extend_grant&limit=500", "", nil).into(t, &list)
	seen := map[string]int{}
	for _, e := range list.Items {
		seen[e.Grant]++
	}
	for n := range grants {
		assert.True(t, seen[id(n)] == 1, "%s has %d extensions", id(n), seen[id(n)])
	}
	b := in.balance(t, "acme", "api_calls")
	assert.True(t, b.Remaining == want && ctx.Err() == nil, "%d remain, want %d (%v)", b.Remaining, want, ctx.Err())
	assert.Contains(t, must(t, env, "verify"), "all agree")
}

func TestServe_StopUnderLoad_LosesNoAnswer(t *testing.T) {
	in, env := parallelService(t, 1_000_000)
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	var mu sync.Mutex
	answered := map[string]bool{}
	var sent, answers atomic.Int64
	testenv.Together(50, func(client int) {
		for n := 0; ctx.Err() == nil; n++ {
			key := fmt.Sprintf("client-%d-%d", client, n)
			sent.Add(1)
			got, err := in.send(ctx, "POST", "/v1/debits", key, debitOf("acme", "api_calls", 1))
			if err != nil {
				return // the listener is closed
			}
			if got.status != http.StatusOK {
				t.Errorf("%s: answered %s while stopping", key, got)
				return
			}
			mu.Lock()
			answered[key] = true
			mu.Unlock()
			if answers.Add(1) == 500 {
				in.signal(syscall.SIGTERM)
			}
		}
	})
	status := in.wait()
	assert.Zero(t, status, "quotasvc ended with %d after SIGTERM; its log:\n%s", status, in.stderr.tail())
	again := serve(t, env)
	for key := range answered {
		got := again.do(t, http.StatusOK, "POST", "/v1/debits", key, debitOf("acme", "api_calls", 1))
		assert.Equal(t, 1, replayed(got), "%s was answered and is not stored", key)
	}
	// A request without an answer may have been charged, so the use can exceed the number of answered requests.
	used := again.balance(t, "acme", "api_calls").Used
	assert.True(t, used >= int64(len(answered)) && used <= sent.Load(),
		"used %d, with %d answered and %d sent", used, len(answered), sent.Load())
	must(t, env, "verify")
}
