package webhooks

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/riverqueue/river"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// says returns a handler that answers with the raw bytes of text and closes the connection.
func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte(text))
		_ = conn.Close()
	}
}

// large returns a handler that answers with a status and a body of 10 MB.
func large(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(10<<20))
		w.WriteHeader(status)
		part := make([]byte, 1<<16)
		for range 10 << 20 / len(part) {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}
}

// refuseAddress makes the guard refuse one address as if it were private, as long as refused returns true.
func (b *bundle) refuseAddress(address string, refused func() bool) {
	strict := &Guard{}
	dialer := &net.Dialer{Timeout: dialTimeout, Control: func(network, target string, c syscall.RawConn) error {
		if target == address && refused() {
			return strict.control(network, target, c)
		}
		return nil
	}}
	b.sender.client.Transport.(*http.Transport).DialContext = dialer.DialContext
}

// Several receivers are hostile, each in a different way, until the test repairs them. Until then the other receivers
// get each event. Afterwards the repaired receivers get all events.
func TestDelivery_HostileReceivers_NothingIsLost(t *testing.T) {
	t.Parallel()
	b := newQuietBundle(t, func(p *pace) { p.call = time.Second })
	var mended atomic.Bool
	elsewhere, asked := newReceiver(t, nil), make(chan struct{})
	var once sync.Once
	hostile := func(how http.HandlerFunc) *receiver {
		return newReceiver(t, func(w http.ResponseWriter, q *http.Request) {
			if !mended.Load() {
				how(w, q)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		})
	}
	receivers := map[string]*receiver{
		"never answers": hostile(func(w http.ResponseWriter, q *http.Request) {
			once.Do(func() { close(asked) })
			hang(t)(w, q)
		}),
		"closes without an answer": hostile(says("")),
		"closes amid its status":   hostile(says("HTTP/1.1 20")),
		"closes amid its headers":  hostile(says("HTTP/1.1 200 OK\r\nContent-")),
		"speaks another protocol":  hostile(says("220 mail.example.com ESMTP\r\n")),
		"fails with 10 MB":         hostile(large(http.StatusInternalServerError)),
		"redirects": hostile(func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, elsewhere.URL, http.StatusPermanentRedirect)
		}),
		"has a private address": newReceiver(t, nil),
		"answers slowly": newReceiver(t, func(_ http.ResponseWriter, q *http.Request) { // after another call
			select {
			case <-asked:
			case <-q.Context().Done():
			}
		}),
		"answers with 10 MB":        newReceiver(t, large(http.StatusOK)),
		"closes amid its body":      newReceiver(t, says("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nok")),
		"good, and has no business": newReceiver(t, nil),
	}
	private := receivers["has a private address"]
	b.refuseAddress(private.Listener.Addr().String(), func() bool { return !mended.Load() })
	b.start()
	ids, takes := map[string]string{}, map[string]bool{"answers slowly": true, "answers with 10 MB": true, "closes amid its body": true, "good, and has no business": true}
	for name, r := range receivers {
		w, _ := b.webhook(strings.Replace(r.URL, "127.0.0.1", "localhost", 1)) // with a host name instead of an address
		ids[name] = w.ID
	}
	good, _ := b.webhook(newReceiver(t, nil).URL)

	const count = 12 // more events than concurrent calls of one receiver
	for range count {
		b.tell("acme")
	}
	all := func(id, status string) bool { return len(b.deliveries(id, status)) == count }
	b.eventually("the good receiver is told all", func() bool { return all(good.ID, StatusDelivered) })
	b.eventually("who answers well enough is told all", func() bool {
		for name := range takes {
			if !all(ids[name], StatusDelivered) {
				return false
			}
		}
		return true
	})
	b.eventually("all others were tried", func() bool {
		for name, id := range ids {
			if d := b.deliveries(id, ""); !takes[name] && (len(d) == 0 || d[len(d)-1].Attempts == 0) {
				return false
			}
		}
		return true
	})
	for name, id := range ids {
		d := b.deliveries(id, "")
		if first := d[len(d)-1]; !takes[name] && (first.Status != StatusPending || first.Error == "") {
			t.Errorf("%s: %+v", name, first)
		} else if !takes[name] {
			t.Logf("%s: status %d, %s", name, first.StatusCode, first.Error)
		}
	}
	assert.Empty(t, private.got(), "an address that is not permitted was called")
	assert.Empty(t, elsewhere.got(), "redirects were followed")
	mended.Store(true)
	b.eventuallyAgain("all are told all", func() bool {
		for _, id := range ids {
			if !all(id, StatusDelivered) {
				return false
			}
		}
		return true
	})
	want := receivers["good, and has no business"].ids()
	for name, r := range receivers {
		for id := range want {
			assert.NotZero(t, r.ids()[id], "%s was never told %s", name, id)
		}
	}
}

// Webhooks are deleted during calls that never end. Meanwhile other webhooks get their events, even a webhook that is
// created after the deletion. No rows of the deleted webhooks remain.
func TestWebhook_DeletedDuringDelivery_OthersNotDelayed_NothingIsLeft(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	var calls, ended atomic.Int32
	release := make(chan struct{})
	hung := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		select {
		case <-release:
		case <-t.Context().Done():
		}
		w.WriteHeader(http.StatusGatewayTimeout)
		ended.Add(1)
	})
	good := newReceiver(t, nil)
	b.webhook(good.URL)
	var deleted []string
	for i := range 3 {
		w, _ := b.webhook(fmt.Sprintf("%s/%d", hung.URL, i))
		deleted = append(deleted, w.ID)
	}
	const before, after = 10, 5
	for range before {
		b.tell("acme")
	}
	b.eventually("the deliveries are under way", func() bool { return calls.Load() >= int32(len(deleted)*workersPerWebhook) })
	b.eventually("all deliveries are queued", func() bool {
		var queued int
		const sql = "SELECT count(*) FROM webhook_deliveries WHERE webhook_id = ANY ($1)"
		require.NoError(t, b.db.QueryRow(t.Context(), sql, deleted).Scan(&queued))
		return queued == len(deleted)*before
	})
	for _, id := range deleted {
		require.NoError(t, b.Delete(t.Context(), id, anybody))
	}
	later := newReceiver(t, nil)
	b.webhook(later.URL)
	for range after {
		b.tell("acme")
	}
	b.eventually("others are told", func() bool { return len(good.ids()) >= before+after && len(later.ids()) >= after })
	assert.Len(t, good.ids(), before+after, "the others were told more")
	assert.Len(t, later.ids(), after, "the others were told more")
	close(release)
	b.eventually("the calls have ended", func() bool { return ended.Load() == calls.Load() })
	b.eventuallyAgain("no job is left", func() bool {
		var jobs int
		require.NoError(t, b.db.QueryRow(t.Context(), "SELECT count(*) FROM river_job WHERE state <> 'completed'").Scan(&jobs))
		return jobs == 0
	})
	var skipped, other int
	if err := b.db.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE status = 'skipped' AND error LIKE '%deleted%'), count(*) FILTER (WHERE status <> 'skipped')
		FROM webhook_deliveries WHERE webhook_id = ANY ($1)`, deleted).Scan(&skipped, &other); err != nil {
		t.Fatal(err)
	}
	assert.True(t, skipped == len(deleted)*before && other == 0,
		"%d deliveries are skipped and %d are not", skipped, other)
	assert.EqualValues(t, len(deleted)*workersPerWebhook, calls.Load(), "a deleted webhook was called again")
	b.eventually("their queues are left", func() bool { return testutil.ToFloat64(b.metrics.webhooks) == 2 })
	for _, id := range deleted {
		if err := b.client.Queues().Remove(t.Context(), id); !errors.As(err, new(*river.QueueNotFoundError)) {
			t.Errorf("the queue of a deleted webhook is still there: %v", err)
		}
	}
}

// A receiver uses each new secret at once, and then accepts only calls that are signed with it. Calls that were
// signed with an older secret are repeated.
func TestWebhook_RotatedDuringAFlood_NothingIsLost(t *testing.T) {
	t.Parallel()
	for name, overlap := range map[string]time.Duration{"with an overlap": time.Hour, "without": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			var mu sync.Mutex
			var secret string
			accepted := map[string]bool{}
			var underWay, refused atomic.Int32
			var r *receiver
			r = newReceiver(t, func(w http.ResponseWriter, q *http.Request) {
				var call received
				for _, c := range r.got() { // this call, or an earlier call with the same signature
					if c.header.Get("webhook-signature") == q.Header.Get("webhook-signature") {
						call = c
					}
				}
				underWay.Add(1)
				defer underWay.Add(-1)
				mu.Lock()
				defer mu.Unlock()
				if !call.verified(t, secret) {
					refused.Add(1)
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				accepted[call.id()] = true
			})
			w, first := b.webhook(r.URL)
			secret = first
			const rotations, each = 3, 20
			rotate := func() {
				mu.Lock() // running calls are verified only after the rotation
				defer mu.Unlock()
				for range each {
					b.tell("acme")
				}
				b.eventually("a call is under way", func() bool { return underWay.Load() > 0 })
				_, next, err := b.Rotate(t.Context(), w.ID, overlap, anybody)
				require.NoError(t, err)
				secret = next
			}
			for range rotations {
				rotate()
			}
			b.eventuallyAgain("all are accepted", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(accepted) == rotations*each
			})
			b.eventuallyAgain("all count as delivered", func() bool { return len(b.deliveries(w.ID, StatusDelivered)) == rotations*each })
			assert.NotZero(t, refused.Load(), "no secret was changed amid a call")
		})
	}
}
