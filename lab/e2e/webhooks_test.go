package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// If a process is killed during a delivery, the next process repeats the delivery after a minute.
func TestWebhooks_KilledAmidACall_ToldAgain(t *testing.T) {
	t.Parallel()
	postgres := testenv.Postgres(t)
	env := using(testenv.AsService(postgres), testenv.RedisURL(t), "QUOTASVC_LOG_LEVEL=warn",
		"QUOTASVC_WEBHOOK_ALLOW_PRIVATE=true")
	called := make(chan string, 10)
	var restarted atomic.Bool
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server that has read the body notices the end of its client
		called <- r.Header.Get("Webhook-Id")
		if !restarted.Load() {
			<-r.Context().Done() // until the process has died
		}
	}))
	t.Cleanup(receiver.Close)
	t.Cleanup(receiver.CloseClientConnections)
	in := serve(t, env).setUp(t, 10)
	in.do(t, http.StatusCreated, "POST", "/v1/webhooks", "", object{"url": receiver.URL, "types": []string{"balance.exhausted"}})
	in.do(t, http.StatusOK, "POST", "/v1/debits", "k", debitOf("acme", "api_calls", 10))
	id, _ := testenv.Receive(t, called)
	in.signal(syscall.SIGKILL)
	<-in.ended
	execSQL(t, postgres, "UPDATE river_job SET attempted_at = attempted_at - interval '1 minute'; DELETE FROM river_leader") // simulates that a minute has passed
	restarted.Store(true)
	next := serve(t, env)
	again, _ := testenv.Receive(t, called)
	assert.Equal(t, id, again, "the event is told as another one")
	testenv.Eventually(t, func() bool {
		return strings.Contains(next.metrics(t), `quotasvc_webhook_deliveries_total{status="delivered"} 1`)
	}, "it counts as delivered")
}

// If a hold of a tenant without requests expires, a running service still sends the event.
func TestEvents_HoldOfIdleTenant_ToldByItself(t *testing.T) {
	in, _ := parallelService(t, 10)
	in.do(t, http.StatusCreated, "POST", "/v1/holds", "h", object{"tenant": "acme", "hold_id": "h1", "items": []object{{"meter": "api_calls", "amount": 1}}, "ttl_seconds": 1})
	testenv.Eventually(t, func() bool {
		var list struct{ Items []struct{ Type string } }
		in.do(t, http.StatusOK, "GET", "/v1/events?type=hold.expired", "", nil).into(t, &list)
		return len(list.Items) == 1
	}, "the hold's end is told")
}

// `quotasvc listen` forwards events that happen after its start. The Standard Webhooks library accepts their
// signatures.
func TestListen_ForwardsEvents_Signed(t *testing.T) {
	in, _ := parallelService(t, 10)
	calls := make(chan delivery, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- delivery{r.Header, body}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(receiver.Close)
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	asker := []string{"QUOTASVC_URL=" + in.api, "QUOTASVC_KEY=" + testKey, "HOME=" + t.TempDir()}
	p := launch(t, asker, "listen", "--forward", receiver.URL+"/hooks", "--secret", secret)
	p.logged("forwarding events to", 1)
	in.do(t, http.StatusOK, "POST", "/v1/debits", "k", debitOf("acme", "api_calls", 8))
	c, _ := testenv.Receive(t, calls)
	verifier, err := standardwebhooks.NewWebhook(secret)
	require.NoError(t, err)
	assert.NoError(t, verifier.Verify(c.body, c.header), "%v: %v %s", err, c.header, c.body)
	assert.True(t, strings.Contains(string(c.body), `"threshold":80`) &&
		strings.Contains(string(c.body), `"tenant":"acme"`), "%s", c.body)
	line := p.line("")
	assert.True(t, strings.Contains(line, "balance.threshold_reached") && strings.Contains(line, "202"),
		"it printed %q", line)
	p.signal(syscall.SIGINT)
	p.wait()
	for _, args := range [][]string{{"listen"}, {"listen", "--forward", "localhost:3000"}, {"listen", "--forward", receiver.URL, "--secret", "x"}} {
		status, _, stderr := tool(t, asker, args...)
		assert.True(t, status == 2 && stderr != "", "%v: status %d, %s", args, status, stderr)
	}
}

// If a limit refuses many requests, a running service sends one event, for all its instances together. If a
// verification finds a difference, the service sends an event about the balance.
func TestEvents_RejectionsAndDrift_ToldByItself(t *testing.T) {
	t.Parallel()
	postgres := testenv.Postgres(t)
	env := using(testenv.AsService(postgres), testenv.RedisURL(t), "QUOTASVC_LOG_LEVEL=warn",
		"QUOTASVC_REJECTIONS_HIGH=30")
	in, other := serve(t, env), serve(t, env)
	in.setUp(t, 1000)
	in.do(t, http.StatusCreated, "PUT", "/v1/limits/few", "", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "1/day", "burst": 1})
	consume := object{"tenant": "acme", "items": []object{{"meter": "api_calls", "amount": 1}}}
	var allowed int // requests that an instance allowed after its first refusal; each loads the limit within a second
	refuses := make(map[*instance]bool, 2)
	told := func(kind string) []toldEvent {
		t.Helper()
		var list struct{ Items []toldEvent }
		in.do(t, http.StatusOK, "GET", "/v1/events?type="+kind, "", nil).into(t, &list)
		return list.Items
	}
	testenv.Eventually(t, func() bool {
		for _, at := range []*instance{in, other} { // a minute that begins meanwhile also gets 30 refusals soon
			for i := range 40 {
				got, err := at.send(t.Context(), "POST", "/v1/consume", fmt.Sprintf("k%d-%d", time.Now().UnixNano(), i), consume)
				require.NoError(t, err)
				if got.status == http.StatusOK && refuses[at] {
					allowed++
				}
				refuses[at] = refuses[at] || got.status == http.StatusTooManyRequests
			}
		}
		return len(told("limit.rejections_high")) > 0
	}, "refusals are told")
	first := told("limit.rejections_high")[0]
	assert.True(t, first.Tenant == "acme" && first.Data.Rule == "few" && first.Data.Rejections >= 30 && first.Data.Threshold == 30, first)
	assert.True(t, allowed <= 2, "%d were allowed after a refusal", allowed)
	in.do(t, http.StatusOK, "POST", "/v1/debits", "d", debitOf("acme", "api_calls", 10))
	execSQL(t, postgres, "UPDATE balances SET granted = granted + 7 WHERE tenant_id = 'acme'")
	started := decoded[struct {
		ID string `json:"verification_id"`
	}](t, in.do(t, http.StatusAccepted, "POST", "/v1/verifications", "", object{"tenant": "acme"}))
	testenv.Eventually(t, func() bool { return len(told("verify.drift")) > 0 }, "the difference is told")
	got := told("verify.drift")
	assert.True(t, len(got) == 1 && got[0].Tenant == "acme" && got[0].Meter == "api_calls" && got[0].Data.VerificationID == started.ID && got[0].Data.Differences >= 1, got)
}

// toldEvent is the part of an event in the API's list that the tests read.
type toldEvent struct {
	Tenant, Meter string
	Data          struct {
		Rule                               string
		Rejections, Threshold, Differences int64
		VerificationID                     string `json:"verification_id"`
	}
}
