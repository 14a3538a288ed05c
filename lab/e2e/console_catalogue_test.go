package e2e

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

var (
	texts  = regexp.MustCompile(`(?s)<textarea[^>]* name="text"[^>]*>(.*?)</textarea>`)
	seens  = regexp.MustCompile(`name="seen" value="([^"]+)"`)
	shown  = regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`)
	atHook = regexp.MustCompile(`href="(/console/webhooks/[^"?]+)"`)
)

// editForm opens the catalogue's form and returns its fields.
func (b *browser) editForm() url.Values {
	b.t.Helper()
	page := b.get(200, "/console/catalogue/edit", "catalog.yaml")
	return url.Values{
		"token": {tokens.FindStringSubmatch(page)[1]}, "once": {onces.FindStringSubmatch(page)[1]}, "seen": {unescaped(seens.FindStringSubmatch(page)[1])},
		"text": {unescaped(texts.FindStringSubmatch(page)[1])},
	}
}

// TestConsole_Catalogue_DiffThenSavedOnce: the preview changes nothing and shows the affected tenants. A form that is
// sent twice is saved once. Changes that somebody else made in the meantime are kept.
func TestConsole_Catalogue_DiffThenSavedOnce(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.browser(t).signIn(testKey)
	const at = "/console/catalogue/edit"
	fields, late := b.editForm(), b.editForm()
	fields.Set("text", strings.Replace(fields.Get("text"), "amount: 10000", "amount: 9000", 1)+"\n")
	preview := b.post(200, at, stepped(fields, "preview"), "Nothing was changed yet", "allowances[api_calls].amount 10000 9000", "Plan starter: api_calls falls from 10000 a month to 9000 a month for 3 tenants",
		"Who is affected", "acme", "acme-eu", "globex", "0 created, 1 changed, 0 deleted")
	assert.Equal(t, fields.Get("text"), unescaped(texts.FindStringSubmatch(preview)[1]),
		"the preview carries another text")
	b.get(200, "/console/catalogue", "10,000 calls a month")
	b.post(200, at, stepped(fields, "edit"), "What you leave out stays as it is")
	b.post(200, at, stepped(fields, "apply"), "Done.", "1 changed")
	b.post(200, at, stepped(fields, "apply"), "This was done before.", "took effect once")
	b.get(200, "/console/catalogue", "9,000 calls a month", "version 2")
	b.get(200, "/console/audit?action=plan.put", "plan starter")

	late.Set("text", strings.Replace(late.Get("text"), "amount: 50000", "amount: 60000", 1))
	for _, step := range []string{"preview", "apply"} {
		b.post(409, at, stepped(late, step), "Nothing was changed.", "Someone else changed the catalogue", "amount: 60000")
	}
	b.get(200, "/console/catalogue", "50,000 calls a month")

	deleted := b.editForm()
	deleted.Set("text", "meters: {}\nlimits: {}\n")
	deleted.Set("prune", "yes")
	b.post(200, at, stepped(deleted, "preview"), "Meter api_calls stays", "There is nothing to save")
}

func TestConsole_Catalogue_WrongTextsAndKeys_ChangeNothing(t *testing.T) {
	c := oneConsole.parallel(t)
	b := c.browser(t).signIn(testKey)
	const at = "/console/catalogue/edit"
	for _, tc := range []struct{ text, says string }{
		{"meters: [", "line 1"},
		{"meters:\n  calls: {unit: call, colour: red}\n", "line 2 meters.calls.colour"},
		{"plans:\n  p:\n    allowances:\n      - {meter: none, amount: 1, every: month, anchor: calendar}\n", `line 4 plans.p.allowances[0].meter names the meter "none", which does not exist`},
		{"", "must have at least one of the sections"},
		{hostile, "Nothing was changed"},
	} {
		fields := b.editForm()
		fields.Set("text", tc.text)
		got := b.send("POST", at, stepped(fields, "apply"))
		page := plain(string(got.body))
		assert.True(t, got.status >= 400 && got.status < 500 && strings.Contains(page, "Nothing was changed.") && strings.Contains(page, tc.says) &&
			!strings.Contains(string(got.body), "<script>alert"), "%q: %d %s", tc.text, got.status, page)
	}
	fields := b.editForm()
	fields.Set("text", strings.Repeat("# long\n", 40_000))
	b.post(413, at, stepped(fields, "apply"), "The text is too long")
	fields.Set("text", strings.Repeat("#", 1<<20))
	b.post(413, at, stepped(fields, "apply"), "The form is too large")

	file := b.send("GET", "/console/catalogue.yaml", nil)
	assert.True(t, file.status == 200 && strings.Contains(string(file.body), "amount: 10000") &&
		strings.HasPrefix(file.header.Get("Content-Disposition"), "attachment"), "%d %v %s", file.status, file.header, file.body)
	for _, who := range [][]string{{"", "read"}, {"globex", "admin"}} {
		secret, _ := c.key(t, who[0], who[1])
		b.signIn(secret)
		assert.NotContains(t, b.get(200, "/console/catalogue", "starter"), "/console/catalogue/edit",
			"%v is offered what it may not do", who)
		b.get(403, at, "This key may not")
		b.get(403, "/console/catalogue.yaml", "This key may not")
		b.post(403, at, url.Values{"token": {b.token()}, "once": {"x"}, "seen": {`"x"`}, "text": {"meters: {}"}, "step": {"apply"}}, "This key may not")
	}
}

// TestConsole_Catalogue_SessionEndsInMidForm_NothingLost: after a new sign-in, the form shows the entered text again.
func TestConsole_Catalogue_SessionEndsInMidForm_NothingLost(t *testing.T) {
	c := oneConsole.parallel(t)
	b := c.browser(t).signIn(testKey)
	const at = "/console/catalogue/edit"
	fields := b.editForm()
	fields.Set("text", fields.Get("text")+strings.Repeat("# a remark\n", 9_000)+"# "+hostile)
	b.post(303, "/console/logout", url.Values{"token": fields["token"]})
	page := b.post(401, at, stepped(fields, "apply"), "nothing was changed")
	kept := url.Values{"key": {testKey}, "target": {at}}
	for _, m := range keptFields.FindAllStringSubmatch(page, -1) {
		kept.Add(unescaped(m[1]), unescaped(m[2]))
	}
	back := b.post(200, "/console/login", kept, "Your session had ended")
	got := unescaped(texts.FindStringSubmatch(back)[1])
	assert.True(t, got == fields.Get("text") && !strings.Contains(back, "<script>alert"),
		"the text came back as %d of %d bytes", len(got), len(fields.Get("text")))
	assert.True(t, onces.FindStringSubmatch(back)[1] == fields.Get("once") &&
		unescaped(seens.FindStringSubmatch(back)[1]) == fields.Get("seen"), "the form is another one")
}

func TestConsole_Catalogue_ShadowBesideLive(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	put := func(rule, rate, mode string) {
		c.do(t, 201, "PUT", "/v1/limits/"+rule, "", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": rate, "burst": 2, "mode": mode, "match": object{"route": "/r"}})
	}
	put("live", "100/s", "enforce")
	put("strict", "1/h", "shadow")
	b := c.browser(t).signIn(testKey)
	b.showsSoon("/console/explain?tenant=acme&meter=api_calls&amount=1&route=/r", "strict") // the instance has read the limit
	for i := range 2 {
		c.do(t, 200, "POST", "/v1/consume", fmt.Sprintf("shadow-%d", i), object{"tenant": "acme", "route": "/r", "items": []object{{"meter": "api_calls", "amount": 1}}})
	}
	b.showsSoon("/console/catalogue", "acme: 2 of 2, it would deny")
	b.get(200, "/console/catalogue", "Shadow rules beside live ones", "strict 1/h, burst 2 live 100/s, burst 2 route /r", "What they would have denied")
}

// The page helps a reader to decide whether to enforce a shadow rule. It shows the requests that the rule would have
// denied, their tenants, and the denials of enforced rules for the same requests. The counts are those of all
// instances, and they remain after the instances have ended.
func TestConsole_Catalogue_WhatShadowRulesWouldHaveDenied(t *testing.T) {
	t.Parallel()
	env := backends(t)
	before := serve(t, env).setUp(t, 1000)
	before.do(t, 201, "PUT", "/v1/tenants/globex", "", object{"plan": "basic"})
	put := func(rule, rate, mode string) {
		before.limit(t, rule, object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": rate, "mode": mode, "match": object{"meter": "api_calls"}})
	}
	put("live", "5/h", "enforce")
	put("strict", "2/h", "shadow")
	put("lax", "100/h", "shadow")
	use := func(in *instance, key, tenant string, statuses ...int) {
		for i, status := range statuses {
			in.do(t, status, "POST", "/v1/consume", fmt.Sprint(key, i), debitOf(tenant, "api_calls", 1))
		}
	}
	use(before, "a", "acme", 200, 200, 200, 200, 200, 429, 429)
	use(before, "g", "globex", 200, 200, 200)
	before.stop() // the instance stores its counts before it ends
	in := serve(t, env)
	c := &consoled{instance: in, console: in.line("console ")}
	use(c.instance, "h", "globex", 200, 200, 429)
	b := c.browser(t).signIn(testKey)
	const at = "/console/catalogue/shadow"
	b.showsSoon(at, "strict last hour 6 requests of 2 tenants acme 3 globex 3 live 3: 3 it would deny as well, 0 it would let pass "+
		"last day 6 requests of 2 tenants acme 3 globex 3 live 3: 3 it would deny as well, 0 it would let pass last week 6 requests of 2 tenants")
	b.get(200, at, "lax last hour none live 3: 0 it would deny as well, 3 it would let pass")
	b.get(200, "/console/catalogue", "What they would have denied in the last hour, day and week")
	// A shadow rule denies nothing. Only the rule live has denied requests.
	assert.EqualValues(t, 2, c.denials(t, "acme").total())
	assert.NotContains(t, b.get(200, "/console/tenants/globex/refusals", "live"), "strict",
		"a shadow rule is among those that refuse")
	secret, _ := c.key(t, "acme", "read")
	b.signIn(secret)
	assert.NotContains(t, b.get(200, at), "globex", "a key of acme sees globex")
}

// TestConsole_InChromium_ShadowCounts: the catalogue's page loads the counts by its script, without a click.
func TestConsole_InChromium_ShadowCounts(t *testing.T) {
	oneChromium.join(t)
	t.Parallel()
	c := newConsole(t)
	c.limit(t, "strict", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "1/h", "mode": "shadow", "match": object{"meter": "api_calls"}})
	for i := range 4 {
		c.do(t, 200, "POST", "/v1/consume", fmt.Sprint("k", i), debitOf("acme", "api_calls", 1))
	}
	testenv.Eventually(t, func() bool {
		return strings.Contains(string(c.do(t, 200, "GET", "/v1/limits/strict/shadow", "", nil).body), `"would_deny":3`)
	}, "the requests are counted")
	b := newChromium(t, c).signIn(testKey)
	b.open("/console/catalogue")
	b.shows("3 requests of 1 tenant")
	b.shows("Shadow rules beside live ones")
	b.accessible(axe(t))
	b.clean()
}

// receiver is a server to which webhooks are delivered. It answers with a status and counts the deliveries.
type receiver struct {
	*httptest.Server

	status, calls atomic.Int64
}

func newReceiver(t testing.TB) *receiver {
	t.Helper()
	r := &receiver{}
	r.status.Store(http.StatusNoContent)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r.calls.Add(1)
		w.WriteHeader(int(r.status.Load()))
	}))
	t.Cleanup(r.Close)
	return r
}

// hook sends a form of a webhook's page. The form has a new key unless values contain the key of an earlier form.
func (b *browser) hook(status int, at, what string, values url.Values, texts ...string) string {
	b.t.Helper()
	values.Set("token", b.token())
	if !values.Has("once") {
		values.Set("once", rand.Text())
	}
	return b.post(status, at+"/"+what, values, texts...)
}

// TestConsole_Webhooks_MadeTestedReplayedRotated: a secret is shown once, and a form that is sent twice creates no
// second webhook.
func TestConsole_Webhooks_MadeTestedReplayedRotated(t *testing.T) {
	t.Parallel()
	c := newConsole(t, "QUOTASVC_WEBHOOK_ALLOW_PRIVATE=true")
	testenv.Eventually(t, func() bool { // an event that is listed after the webhook exists is sent to it
		return strings.Contains(c.do(t, 200, "GET", "/v1/events?type=grant.created", "", nil).String(), "invoice-7")
	}, "the first grant's event is listed")
	to := newReceiver(t)
	b := c.browser(t).signIn(testKey)
	page := b.get(200, "/console/webhooks", "There are no webhooks")
	form := url.Values{"token": {tokens.FindStringSubmatch(page)[1]}, "once": {onces.FindStringSubmatch(page)[1]}, "url": {to.URL + "/hooks"}, "types": {"plan.changed", "grant.created"}}
	made := b.post(200, "/console/webhooks", form, "It is shown only once")
	secret, at := shown.FindString(made), atHook.FindStringSubmatch(made)[1]
	require.NotEmpty(t, secret, "no secret: %s", plain(made))
	b.post(409, "/console/webhooks", form, "This form was sent before")
	list := b.get(200, "/console/webhooks", "plan.changed, grant.created")
	assert.True(t, !strings.Contains(list, secret) && strings.Count(list, `data-rows`) == 1 && strings.Count(list, `href="`+at) == 1, "the list is %s", plain(list))
	b.get(200, at, "There are no deliveries of this kind")
	b.hook(200, at, "test", url.Values{}, "The receiver has accepted the call", "204")
	to.status.Store(500)
	b.hook(200, at, "test", url.Values{}, "The receiver has not accepted the call", "500")
	to.status.Store(204)

	c.do(t, 201, "POST", "/v1/tenants/acme/grants", "told", object{"meter": "credits", "amount": 5, "source": "promo"})
	b.showsSoon(at+"?status=delivered", "evt_")
	b.get(200, at+"?status=delivered", "acme", "204", " ms")
	b.get(200, at+"?status=dead", "There are no deliveries of this kind")
}

func TestConsole_Webhooks_PausedEnabledRotatedDeleted(t *testing.T) {
	t.Parallel()
	c := newConsole(t, "QUOTASVC_WEBHOOK_ALLOW_PRIVATE=true")
	to := newReceiver(t)
	id, secret := c.newWebhook(t, object{"url": to.URL, "types": []string{"grant.created"}})
	b := c.browser(t).signIn(testKey)
	at := "/console/webhooks/" + id
	b.hook(200, at, "pause", url.Values{}, "The webhook is paused", "paused")
	b.hook(409, at, "replay", url.Values{"once": {"a"}, "from": {"2020-01-01T00:00"}}, "Nothing was changed.")
	b.hook(200, at, "enable", url.Values{}, "The webhook is enabled", "active")
	c.do(t, 201, "POST", "/v1/tenants/acme/grants", "told", object{"meter": "credits", "amount": 5, "source": "promo"})
	b.showsSoon(at+"?status=delivered", "evt_")
	before := to.calls.Load()
	b.hook(400, at, "replay", url.Values{"once": {"b"}, "from": {"soon"}}, "This is not a time")
	b.hook(200, at, "replay", url.Values{"once": {"c"}, "from": {"2020-01-01T00:00"}}, "delivered again")
	b.hook(409, at, "replay", url.Values{"once": {"c"}, "from": {"2020-01-01T00:00"}}, "This form was sent before")
	testenv.Eventually(t, func() bool { return to.calls.Load() > before }, "it is delivered again")
	rotated := b.hook(200, at, "rotate", url.Values{"once": {"d"}, "overlap": {"yes"}}, "works for another 24 hours")
	fresh := shown.FindString(rotated)
	assert.True(t, fresh != "" && fresh != secret, "the new secret is %q", fresh)
	b.hook(409, at, "rotate", url.Values{"once": {"d"}}, "This form was sent before")
	b.hook(400, at, "pause", url.Values{"once": {""}}, "The form is incomplete")
	b.hook(404, at, "explode", url.Values{}, "There is no such page")
	read, _ := c.key(t, "", "read")
	b.signIn(read)
	for _, path := range []string{"/console/webhooks", at} {
		b.get(403, path, "This key may not change anything")
	}
	b.hook(403, at, "delete", url.Values{}, "Nothing was changed")
	b.signIn(testKey)
	assert.Equal(t, 303, b.send("POST", at+"/delete", url.Values{"token": {b.token()}, "once": {"e"}}).status, "delete")
	b.get(404, at, "There is nothing with this id")
}

// TestConsole_Webhooks_FormsSentToTwoInstances_TakeEffectOnce: each form of the pages is sent to one instance and
// then to the other instance. A form that was refused may be sent again.
func TestConsole_Webhooks_FormsSentToTwoInstances_TakeEffectOnce(t *testing.T) {
	t.Parallel()
	env := append(backends(t), "QUOTASVC_LOG_LEVEL=info", "QUOTASVC_WEBHOOK_ALLOW_PRIVATE=true")
	var browsers [2]*browser
	var first *consoled
	for i := range browsers {
		in := serve(t, env)
		c := &consoled{instance: in, console: in.line("console ")}
		if browsers[i] = c.browser(t); first == nil {
			first = c
		}
		browsers[i].signIn(testKey)
	}
	a, b := browsers[0], browsers[1]
	to := newReceiver(t)
	again := func(at, what string, fields url.Values) { // on both instances
		t.Helper()
		for _, other := range browsers {
			other.hook(409, at, what, fields, "This form was sent before", "nothing was changed now")
		}
	}
	// formOf returns the key of the form that has the button `what` on a page.
	formOf := func(at, what string) url.Values {
		t.Helper()
		for _, m := range onces.FindAllStringSubmatch(a.get(200, at), -1) {
			if strings.HasSuffix(m[1], "-"+what) {
				return url.Values{"once": {m[1]}}
			}
		}
		t.Fatalf("%s has no form %s", at, what)
		return nil
	}
	made := url.Values{"once": {onces.FindStringSubmatch(a.get(200, "/console/webhooks"))[1]}, "url": {"no url"}, "types": {"plan.changed"}}
	a.hook(400, "/console", "webhooks", made, "url") // refused, so the form may be sent again
	made.Set("url", to.URL)
	at := atHook.FindStringSubmatch(b.hook(200, "/console", "webhooks", made, "It is shown only once"))[1]
	again("/console", "webhooks", made)
	list := decoded[struct{ Items []struct{ Status string } }](t, first.do(t, 200, "GET", "/v1/webhooks", "", nil))
	assert.Len(t, list.Items, 1, "there are %d webhooks", len(list.Items))
	for _, what := range []string{"pause", "enable", "test", "replay", "rotate"} {
		fields := formOf(at, what)
		fields.Set("from", "2020-01-01T00:00")
		a.hook(200, at, what, fields)
		calls := to.calls.Load()
		again(at, what, fields)
		assert.False(t, what == "test" && (to.calls.Load() != calls || calls != 1),
			"the receiver was called %d times", to.calls.Load())
	}
	// An old form that was already sent has no effect, even if the state of the webhook has changed since.
	old := formOf(at, "pause")
	b.hook(200, at, "pause", old, "The webhook is paused")
	a.hook(200, at, "enable", url.Values{}, "The webhook is enabled")
	again(at, "pause", old)
	first.do(t, 200, "GET", "/v1/webhooks", "", nil).into(t, &list)
	assert.True(t, len(list.Items) == 1 && list.Items[0].Status == "active", "the webhooks are %+v", list.Items)
	fields := formOf(at, "delete")
	fields.Set("token", a.token())
	assert.Equal(t, 303, a.send("POST", at+"/delete", fields).status, "delete")
	b.hook(404, at, "delete", fields, "There is nothing with this id")
}

// rawReceiver answers every call with the given bytes, even if these are not a valid response. Each answer ends its
// connection.
func rawReceiver(t testing.TB, answer string) (address string) {
	t.Helper()
	l := testenv.CloseAtEnd(t, testenv.Must(t).Get(net.Listen("tcp", "127.0.0.1:0")))
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(testenv.Patience))
			if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(conn, answer)
			}
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

// TestConsole_InChromium_TextsOfReceiversStayTexts: the pages show the answers of foreign servers, and every field of
// a webhook, as plain text. This includes URLs, status lines, headers, bodies, targets of redirects, and bytes that
// are not text. The pages must not violate their content security policy, and no script may report an error.
func TestConsole_InChromium_TextsOfReceiversStayTexts(t *testing.T) {
	oneChromium.join(t)
	t.Parallel()
	c := newConsole(t, "QUOTASVC_WEBHOOK_ALLOW_PRIVATE=true")
	b := newChromium(t, c).signIn(testKey)
	harmless := func(at string) {
		t.Helper()
		found := result(b, chromedp.Evaluate[int](`document.querySelectorAll("main img, main script, main iframe, main [onerror], main a[href^='javascript:']").length`))
		assert.Zero(t, found, "%s has %d elements of a text", at, found)
	}
	var ids []string
	for name, tc := range map[string]struct{ answer, shows string }{
		"status line": {"HTTP/1.1 " + hostile + "\r\n\r\n", "he call failed"},
		"protocol":    {hostile + "\r\n\r\n", "he call failed"},
		"header":      {"HTTP/1.1 200 OK\r\n" + hostile + "\r\n\r\n", "he call failed"},
		"no text":     {"HTTP/1.1 200 OK\r\n\xff\xfe\x00\x1b[31m" + strings.Repeat("\xe2\x82", 90) + hostile + "\r\n\r\n", "he call failed"},
		"a long one":  {"HTTP/1.1 x" + strings.Repeat("é", 200) + "\r\n\r\n", "he call failed"}, // cut between letters
		"body":        {"HTTP/1.1 500 " + hostile + "\r\nX-Why: " + hostile + "\r\nContent-Length: " + strconv.Itoa(len(hostile)) + "\r\n\r\n" + hostile, "500"},
		"location":    {"HTTP/1.1 302 Found\r\nLocation: javascript:alert(1)//" + hostile + "\r\nContent-Length: 0\r\n\r\n", "redirects are not followed"},
	} {
		address := "http://" + rawReceiver(t, tc.answer) + "/" + strings.ReplaceAll(hostile, " ", "%20") + "?q=" + strings.ReplaceAll(hostile, " ", "+")
		id, _ := c.newWebhook(t, object{"url": address, "types": []string{"grant.created"}, "tenant": "acme"})
		ids = append(ids, id)
		b.open("/console/webhooks/" + id)
		b.click("Send a test")
		b.shows("The receiver has not accepted the call")
		b.shows(tc.shows)
		harmless(name)
	}
	c.do(t, 201, "POST", "/v1/tenants/acme/grants", "told", object{"meter": "credits", "amount": 5, "source": "promo", "reason": hostile})
	reader := c.browser(t).signIn(testKey)
	for _, id := range ids { // the page shows the stored outcome of the first attempt
		at := "/console/webhooks/" + id
		reader.showsSoon(at, " ms")
		b.open(at)
		b.shows("evt_")
		harmless(at)
	}
	for _, at := range []string{"/console/webhooks", "/console/audit", "/console/events", "/console/webhooks/" + url.PathEscape(hostile), "/console/webhooks?cursor=" + url.QueryEscape(hostile)} {
		b.open(at)
		harmless(at)
	}
	b.clean("404", "400")
}

// TestConsole_InChromium_EditTheCatalogue: in a browser, the form has a preview, and keeps its text if the session
// ends before it is sent.
func TestConsole_InChromium_EditTheCatalogue(t *testing.T) {
	oneChromium.join(t)
	t.Parallel()
	c := newConsole(t)
	b := newChromium(t, c)
	script := axe(t)
	b.signIn(testKey)
	b.open("/console/catalogue")
	b.click("Edit")
	b.loaded(`document.querySelector("#text")`)
	result(b, chromedp.Evaluate[bool](`(() => { const t = document.querySelector("#text"); t.value = t.value.replace("amount: 10000", "amount: 12000"); return true })()`))
	b.click("Preview")
	b.shows("Who is affected")
	b.accessible(script)
	_, err := chromedp.Call(b.ctx, network.ClearBrowserCookies, cdp.Empty{}) // the session ends
	require.NoError(t, err)
	b.click("Save the catalogue")
	b.shows("nothing was changed")
	b.clean("401")
	b.fill("key", testKey)
	b.click("Sign in")
	b.shows("your input is still here")
	b.until(`document.querySelector("#text").value.includes("amount: 12000")`)
	b.click("Preview")
	b.shows("1 changed")
	b.click("Save the catalogue")
	b.shows("Done.")
	b.open("/console/catalogue")
	b.shows("12,000 calls a month")
	b.clean()
}
