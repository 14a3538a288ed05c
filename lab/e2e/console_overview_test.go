package e2e

import (
	"bufio"
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stream opens the event stream of the overview. It returns a channel of events: the name of each event, and its
// content.
func (b *browser) stream() <-chan [2]string {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.at+"/console/overview/stream", nil)
	require.NoError(b.t, err)
	endless := *b.client
	endless.Timeout = 0
	got, err := endless.Do(r) //nolint:bodyclose // the goroutine below closes it
	require.NoError(b.t, err)
	require.True(b.t, got.StatusCode == http.StatusOK && got.Header.Get("Content-Type") == "text/event-stream" &&
		got.Header.Get("Cache-Control") == "no-store", "%s %v", got.Status, got.Header)
	events := make(chan [2]string)
	go func() {
		defer close(events)
		defer got.Body.Close()
		var now [2]string
		for lines := bufio.NewScanner(got.Body); lines.Scan(); {
			line := lines.Text()
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				now = [2]string{name}
			} else if data, ok := strings.CutPrefix(line, "data: "); ok {
				now[1] += data + "\n"
			} else if line == "" {
				select {
				case events <- now:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return events
}

// refuse sends debits that the service refuses, more of acme than of globex.
func (c *consoled) refuse(t testing.TB) *consoled {
	t.Helper()
	for i, tenant := range []string{"acme", "acme", "globex"} {
		c.do(t, 402, "POST", "/v1/debits", "too-much-"+string(rune('0'+i)), object{"tenant": tenant, "items": []object{{"meter": "api_calls", "amount": 20_000}}})
	}
	return c
}

func TestConsole_Overview_WhatIsNow(t *testing.T) {
	t.Parallel()
	c := newConsole(t, "QUOTASVC_DEFAULT_PLAN=nowhere").refuse(t)
	c.do(t, 200, "POST", "/v1/debits", "most", object{"tenant": "globex", "items": []object{{"meter": "api_calls", "amount": 9_500}}})
	c.do(t, 202, "POST", "/v1/rolls", "", nil)
	read, _ := c.key(t, "", "read")
	b := c.browser(t).signIn(read)
	b.get(200, "/console/", "1 part does not work on this instance", "default plan", "Requests a second", "Last roll", "No day is sealed"[3:], "nothing is archived")
	b.showsSoon("/console/", "acme 2 credits_exhausted globex 1 credits_exhausted")
	b.showsSoon("/console/", "done")
	b.get(200, "/console/overview/near", "globex", "api_calls", "95 %", "500 calls")
	part := string(b.send("GET", "/console/", nil, "Hx-Request", "true").body)
	assert.True(t, !strings.Contains(part, "<html") && strings.Contains(part, "Refused most"), "htmx gets %s", part)

	bound, _ := c.key(t, "globex", "read")
	b.signIn(bound)
	assert.NotContains(t, b.get(200, "/console/tenants"), "Overview",
		"the navigation offers the overview to a key that may not see it")
	b.get(403, "/console/overview/stream", "This key may not do that")
	assert.NotContains(t, plain(b.get(200, "/console/overview/near", "globex")), "acme", "a bound key sees")
}

// TestConsole_Stream_EndsWithItsSession: a stream ends when its session ends. A service that stops does not wait for
// streams.
func TestConsole_Stream_EndsWithItsSession(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b, other := c.browser(t), c.browser(t)
	b.signIn(testKey)
	other.signIn(testKey)
	events, stays := b.stream(), other.stream()
	if e := <-events; e[0] != "now" || !strings.Contains(e[1], "Everything works on this instance") {
		t.Fatalf("the first event is %v", e)
	}
	<-stays
	c.refuse(t)
	for e := range events {
		if strings.Contains(plain(e[1]), "acme 2 credits_exhausted") {
			break // the content was sent again
		}
	}
	b.post(303, "/console/logout", url.Values{"token": {b.token()}})
	last := [2]string{}
	for e := range events {
		last = e
	}
	assert.EqualValues(t, "ended", last[0], "the last event is %v", last)
	e := <-stays
	assert.EqualValues(t, "now", e[0], "the stream of another session sends %v", e)
	go func() {
		for range stays { // as a browser, the test continues to read
		}
	}()
	c.stop()
}

func TestConsole_InChromium_Overview_RefreshesItself(t *testing.T) {
	oneChromium.join(t)
	t.Parallel()
	c := newConsole(t)
	b := newChromium(t, c).signIn(testKey)
	b.shows("Everything works on this instance")
	b.shows("No tenant has used 80 % or more")
	b.until(`document.querySelector("#now").dataset.live === "yes"`)
	b.shows("refreshes by itself")
	c.refuse(t)
	b.shows("acme 2 credits_exhausted") // without a click
	b.click("Pause")
	b.shows("paused")
	b.click("Pause")
	b.shows("refreshes by itself")
	b.click("acme")
	b.shows("Why requests were refused")
	b.clean()
}
