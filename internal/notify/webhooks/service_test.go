package webhooks

import (
	"encoding/json/v2"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

func TestDelivery_AcceptedByTheLibraryOfTheStandard(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	r := newReceiver(t, nil)
	w, secret := b.webhook(r.URL)
	b.tell("acme")
	b.eventually("the event is told", func() bool { return len(r.got()) == 1 })
	call := r.got()[0]
	assert.True(t, call.verified(t, secret), "the signature is wrong: %v %s", call.header, call.body)
	assert.False(t, call.verified(t, shown(newSecret())), "another secret verifies it as well")
	var body struct {
		Type      string
		Timestamp time.Time
		Data      struct{ Tenant, Plan string }
	}
	require.NoError(t, json.Unmarshal(call.body, &body, json.MatchCaseInsensitiveNames(true)))
	assert.True(t, body.Type == "tenant.suspended" && body.Data.Tenant == "acme" && body.Data.Plan == "p" &&
		time.Since(body.Timestamp) <= time.Minute, "%s", call.body)
	b.eventually("it is recorded", func() bool { return len(b.deliveries(w.ID, StatusDelivered)) == 1 })
	d := b.deliveries(w.ID, "")[0]
	assert.True(t, d.EventID() == call.id() && d.Attempts == 1 && d.StatusCode == http.StatusNoContent && d.Error == "" && !d.AttemptedAt.IsZero() && d.NextAt.IsZero() &&
		d.Latency >= 0, d)
	assert.Equal(t, 1.0, testutil.ToFloat64(b.metrics.attempts.WithLabelValues("delivered")), "attempts are counted")
}

func TestDelivery_TypesAndTenant_OthersNotTold(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	all, ofAcme, others := newReceiver(t, nil), newReceiver(t, nil), newReceiver(t, nil)
	b.webhook(all.URL)
	b.webhook(ofAcme.URL, func(c *Change) { c.Tenant = "acme" })
	b.webhook(others.URL, func(c *Change) { c.Types = []string{string(events.VerifyDrift)} })
	b.tell("acme", "globex", "acme", "initech")
	b.eventually("all are told", func() bool { return len(all.ids()) == 4 && len(ofAcme.ids()) == 2 })
	for _, c := range ofAcme.got() {
		assert.Contains(t, string(c.body), `"tenant":"acme"`, "%s", c.body)
	}
	assert.Empty(t, others.got(), "calls of a receiver that wants none of them")
}

// A receiver that is slow or hostile must not delay another receiver.
func TestDelivery_HostileReceivers_DelayNobodyElse(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	elsewhere := newReceiver(t, nil)
	hostile := map[string]*receiver{
		"never answers": newReceiver(t, hang(t)),
		"500":           newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }),
		"redirects": newReceiver(t, func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, elsewhere.URL, http.StatusTemporaryRedirect)
		}),
		"stops amid its body": newReceiver(t, func(w http.ResponseWriter, q *http.Request) {
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			hang(t)(w, q)
		}),
		"endless": newReceiver(t, func(w http.ResponseWriter, q *http.Request) {
			part := []byte(strings.Repeat("x", 1<<16))
			for q.Context().Err() == nil {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		}),
		"huge headers": newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Big", strings.Repeat("x", 1<<20))
			w.WriteHeader(http.StatusOK)
		}),
	}
	for _, r := range hostile {
		b.webhook(r.URL)
	}
	nobody, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, but never answers
	require.NoError(t, err)
	t.Cleanup(func() { _ = nobody.Close() })
	b.webhook("http://" + nobody.Addr().String())
	good := newReceiver(t, nil)
	b.webhook(good.URL)

	const count = 40
	for range count {
		b.tell("acme")
	}
	b.eventually("the good receiver is told all", func() bool { return len(good.ids()) == count })
	b.eventually("hostile receivers are called", func() bool {
		for _, r := range hostile {
			if len(r.got()) == 0 {
				return false
			}
		}
		return true
	})
	for _, name := range []string{"never answers", "stops amid its body"} { // none of their calls has ended yet
		assert.LessOrEqual(t, len(hostile[name].got()), workersPerWebhook, "%s: calls at a time", name)
	}
	assert.Empty(t, elsewhere.got(), "redirects were followed")
	for name, r := range hostile {
		t.Logf("%s: %d calls", name, len(r.got()))
	}
}

func TestDelivery_Fails_TriedAgainWithTheSameID(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	var calls atomic.Int32
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	w, secret := b.webhook(r.URL)
	b.tell("acme")
	b.eventually("the first attempt failed", func() bool { d := b.deliveries(w.ID, StatusPending); return len(d) == 1 && d[0].Attempts == 1 })
	d := b.deliveries(w.ID, "")[0]
	if pause := d.NextAt.Sub(d.AttemptedAt); d.StatusCode != http.StatusServiceUnavailable || d.Error != "status 503" || pause < 5*time.Second || pause > 6*time.Second {
		t.Errorf("next attempt after %s: %+v", pause, d)
	}
	b.eventuallyAgain("the second attempt succeeds", func() bool { return len(b.deliveries(w.ID, StatusDelivered)) == 1 })
	got := r.got()
	assert.True(t, len(got) == 2 && got[0].id() == got[1].id() && got[1].verified(t, secret) &&
		b.deliveries(w.ID, "")[0].Attempts == 2, "%d calls: %+v", len(got), b.deliveries(w.ID, ""))
}

func TestPauses_AsPromised(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int]time.Duration{
		1: 5 * time.Second, 2: 15 * time.Second, 3: time.Minute, 4: 5 * time.Minute, 5: 30 * time.Minute, 6: 2 * time.Hour, 7: 6 * time.Hour, 8: 6 * time.Hour, 99: 6 * time.Hour,
	} {
		got := pauseAfter(attempts)
		assert.True(t, got >= want && got <= want+want/10, "after %d attempts: %s, want about %s", attempts, got, want)
	}
}

// River searches every 30 s for jobs whose process was killed.
func TestRescue_WithinAMinute(t *testing.T) {
	t.Parallel()
	assert.Less(t, jobTimeout(callTimeout)+rescueSlack+30*time.Second, time.Minute, "it is tried again after this time")
}

func TestDelivery_ThreeDaysInVain_DeadAndListed_ReplayTriesAgain(t *testing.T) {
	t.Parallel()
	b := newQuietBundle(t)
	var mended atomic.Bool
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		if !mended.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	w, _ := b.webhook(r.URL)
	b.tell("acme")
	n, err := events.Number(t.Context(), b.pool, b.Queue)
	require.True(t, n == 1 && err == nil, "%v, %v", n, err)
	b.exec("UPDATE webhook_deliveries SET queued_at = queued_at - interval '73 hours', attempts = 15")
	b.start()
	b.eventually("it is dead", func() bool { return len(b.deliveries(w.ID, StatusDead)) == 1 })
	d := b.deliveries(w.ID, StatusDead)[0]
	assert.True(t, d.Attempts == 16 && d.NextAt.IsZero() && d.StatusCode == http.StatusInternalServerError, d)
	mended.Store(true)
	out, err := b.Replay(t.Context(), w.ID, time.Now().Add(-time.Hour), time.Time{}, anybody)
	require.True(t, err == nil && out.Events == 1 && !out.More, "%v, %v", out, err)
	b.eventually("the replay is delivered", func() bool { return len(b.deliveries(w.ID, StatusDelivered)) == 1 })
	got := r.got()
	assert.True(t, len(got) == 2 && got[0].id() == got[1].id(), "%d calls", len(got))
}

func TestWebhook_Paused_NotTold_ReplayCatchesUp(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	r, witness := newReceiver(t, nil), newReceiver(t, nil)
	w, _ := b.webhook(r.URL)
	b.webhook(witness.URL)
	b.tell("first")
	b.eventually("the first is told", func() bool { return len(r.got()) == 1 })
	from := time.Now().Add(-time.Second)
	got, err := b.Update(t.Context(), w.ID, Change{Status: new(Paused)}, anybody)
	require.True(t, err == nil && got.Status == Paused, "%v, %v", got, err)
	b.tell("second", "third")
	b.eventually("others are told", func() bool { return len(witness.ids()) == 3 })
	_, err = b.Replay(t.Context(), w.ID, from, time.Time{}, anybody)
	assert.True(t, err != nil && strings.Contains(err.Error(), "paused"), "a paused webhook is replayed: %v", err)
	require.Len(t, r.got(), 1, "a paused webhook got calls")
	_, err = b.Update(t.Context(), w.ID, Change{Status: new(Active)}, anybody)
	require.NoError(t, err)
	b.tell("fourth")
	b.eventually("it is told again", func() bool { return len(r.got()) == 2 })
	out, err := b.Replay(t.Context(), w.ID, time.Now().Add(-time.Hour), time.Time{}, anybody)
	require.True(t, err == nil && out.Events == 4, "%v, %v", out, err)
	b.eventually("the replay is told", func() bool { return reflect.DeepEqual(keys(r.ids()), keys(witness.ids())) && len(r.got()) == 6 })
}

func keys(m map[string]int) map[string]bool {
	out := map[string]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}

// If a webhook is paused or deleted, its pending deliveries are skipped, even if they wait for a second attempt.
func TestWebhook_PausedOrDeleted_PendingSkipped(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	first, _ := b.webhook(r.URL + "/a")
	second, _ := b.webhook(r.URL + "/b")
	b.tell("acme")
	failed := func(id string) bool { d := b.deliveries(id, StatusPending); return len(d) == 1 && d[0].Attempts == 1 }
	b.eventually("both have failed once", func() bool { return failed(first.ID) && failed(second.ID) })
	_, err := b.Update(t.Context(), first.ID, Change{Status: new(Paused)}, anybody)
	require.NoError(t, err)
	require.NoError(t, b.Delete(t.Context(), second.ID, anybody))
	d := b.deliveries(first.ID, StatusSkipped)
	assert.True(t, len(d) == 1 && strings.Contains(d[0].Error, "paused"), d)
	b.eventuallyAgain("both are skipped, and no job is left", func() bool {
		var skipped, jobs int
		if err := b.db.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM webhook_deliveries WHERE status = 'skipped'), (SELECT count(*) FROM river_job WHERE state <> 'completed')").
			Scan(&skipped, &jobs); err != nil {
			t.Fatal(err)
		}
		return skipped == 2 && jobs == 0
	})
	assert.Len(t, r.got(), 2, "calls, also of webhooks that were paused or deleted")
	_, err = b.Get(t.Context(), second.ID, anybody)
	assert.Error(t, err, "the deleted webhook is still there")
	b.eventually("its queue is left", func() bool { return testutil.ToFloat64(b.metrics.webhooks) == 1 })
}

// While secrets are rotated repeatedly, the signature of every delivery can be verified with the newest secret, and
// also with the previous secret.
func TestWebhook_RotatedDuringDelivery_BothSecretsVerify(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	r := newReceiver(t, nil)
	w, secret := b.webhook(r.URL)
	for i := range 5 {
		_, next, err := b.Rotate(t.Context(), w.ID, time.Hour, anybody)
		require.NoError(t, err)
		b.tell("acme")
		b.eventually("it is told", func() bool { return len(r.got()) == i+1 })
		call := r.got()[i]
		assert.True(t, call.verified(t, secret) && call.verified(t, next),
			"rotation %d: old %v, new %v", i, call.verified(t, secret), call.verified(t, next))
		secret = next
	}
	_, last, err := b.Rotate(t.Context(), w.ID, 0, anybody)
	require.NoError(t, err)
	b.tell("acme")
	b.eventually("it is told", func() bool { return len(r.got()) == 6 })
	call := r.got()[5]
	assert.True(t, !call.verified(t, secret) && call.verified(t, last),
		"after a rotation without overlap: old %v, new %v", call.verified(t, secret), call.verified(t, last))
	assert.Len(t, strings.Fields(call.header.Get("webhook-signature")), 1, "signatures")
}

// A slow receiver gets many events with few calls at a time, and in the end it has got all events. The first calls
// last until another receiver has got all events.
func TestDelivery_Flood_FewCallsAtATime_NothingLost(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	release := make(chan struct{})
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) {
		select {
		case <-release:
		case <-t.Context().Done():
		}
	})
	witness := newReceiver(t, nil)
	b.webhook(r.URL)
	b.webhook(witness.URL)
	const count = 300
	tenants := make([]string, count)
	for i := range tenants {
		tenants[i] = fmt.Sprint("t", i)
	}
	b.tell(tenants...)
	b.eventually("another receiver is told all", func() bool { return len(witness.ids()) == count })
	b.eventually("as many calls as may be are under way", func() bool { return len(r.got()) >= workersPerWebhook })
	assert.LessOrEqual(t, len(r.got()), workersPerWebhook, "calls at a time")
	close(release)
	b.eventually("all are told", func() bool { return len(r.ids()) == count })
}

func TestWebhook_TestCall_SaysHowItWent(t *testing.T) {
	t.Parallel()
	b := newQuietBundle(t)
	good := newReceiver(t, nil)
	w, secret := b.webhook(good.URL)
	id, out, err := b.Test(t.Context(), w.ID, anybody)
	require.True(t, err == nil && out.Error == "" && out.Status == 204, "%v, %v", out, err)
	if call := good.got()[0]; !call.verified(t, secret) || call.id() != id || !strings.Contains(string(call.body), `"webhook.test"`) {
		t.Errorf("%s", call.body)
	}
	bad, _ := b.webhook("http://127.0.0.1:1/")
	_, out, err = b.Test(t.Context(), bad.ID, anybody)
	assert.True(t, err == nil && out.Status == 0 && strings.Contains(out.Error, "connection refused"), "%+v %v", out, err)
	unknown, _ := b.webhook("http://name.invalid/")
	_, out, err = b.Test(t.Context(), unknown.ID, anybody)
	assert.True(t, err == nil && out.Error == "the name cannot be resolved", "%+v %v", out, err)
}
