package e2e

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// formOf opens the form of a correction. It returns all fields of the form: the hidden fields with their values, and
// the other fields with the given values.
func (b *browser) formOf(path string, values ...string) url.Values {
	b.t.Helper()
	page := b.get(200, path)
	fields := url.Values{"token": {tokens.FindStringSubmatch(page)[1]}, "once": {onces.FindStringSubmatch(page)[1]}}
	if m := versions.FindStringSubmatch(page); m != nil {
		fields.Set("version", m[1])
	}
	for i := 0; i < len(values); i += 2 {
		fields.Set(values[i], values[i+1])
	}
	return fields
}

// stepped returns the fields of a form that is sent with the button of a step.
func stepped(fields url.Values, step string) url.Values {
	copied := url.Values{"step": {step}}
	for name, values := range fields {
		copied[name] = values
	}
	return copied
}

// audited fails the test unless the newest line of the audit log about acme has this action and this reason.
func (c *consoled) audited(t testing.TB, action, reason string) {
	t.Helper()
	var list struct {
		Items []struct {
			Action, Reason string
			Actor          struct{ Name string }
		}
	}
	c.do(t, 200, "GET", "/v1/audit?limit=1&tenant=acme", "", nil).into(t, &list)
	assert.True(t, len(list.Items) == 1 && list.Items[0].Action == action && list.Items[0].Reason == reason,
		"the newest line of the audit log is %+v, want %s because of %q", list.Items, action, reason)
}

// TestConsole_Corrections_PreviewedThenDoneOnce: the preview changes nothing, and the last step does what the preview
// showed. A form that is sent twice takes effect once.
func TestConsole_Corrections_PreviewedThenDoneOnce(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.browser(t).signIn(testKey)
	const at = "/console/tenants/acme/correct/"
	for _, tc := range []struct {
		name           string
		values         []string
		preview, after string
		action         string
		remaining      int64 // remaining credits after the correction
	}{
		{"top-up", []string{"meter", "credits", "amount", "1,000", "expires_at", "2035-01-05T18:00", "grant_id", "invoice-8"}, "560 credits 1,560 credits", "2035-01-05 18:00 (Europe/Berlin)", "grant.create", 1560},
		{"adjust", []string{"meter", "credits", "amount", "-60"}, "1,560 credits 1,500 credits", "1,500 credits", "adjustment.create", 1500},
		{"void", []string{"grant", "invoice-8", "meter", "credits"}, "1,500 credits 500 credits", "1,000 credits of the grant are taken back", "grant.void", 500},
		{"suspend", nil, "Status active suspended", "suspended", "tenant.patch", 500},
		{"resume", nil, "Status suspended active", "active", "tenant.patch", 500},
		{"plan", []string{"plan", "team", "apply", "next_period"}, "Plan starter team", "At the end of the billing period", "tenant.patch", 500},
		{"block", []string{"subject", "user-9", "expires_at", "2035-01-05"}, "subject user-9 not blocked block, until 2035-01-05 00:00:00 CET", "user-9", "block.put", 500},
	} {
		reason := "ticket of " + tc.name
		fields := b.formOf(at+tc.name, append(tc.values, "reason", reason)...)
		before := c.balance(t, "acme", "credits").Remaining
		b.post(200, at+tc.name, stepped(fields, "preview"), "Nothing was changed yet", tc.preview, tc.action, reason)
		require.Equal(t, before, c.balance(t, "acme", "credits").Remaining, "%s: the preview changed it", tc.name)
		b.post(200, at+tc.name, stepped(fields, "edit"), "Preview")
		b.post(200, at+tc.name, stepped(fields, "apply"), "Done.", tc.preview, tc.after, tc.action, reason, "bootstrap (bootstrap)")
		c.audited(t, tc.action, reason)
		if tc.name != "block" { // a second block with the same values is the same block
			b.post(200, at+tc.name, stepped(fields, "apply"), "This was done before.", tc.after)
		}
		assert.Equal(t, tc.remaining, c.balance(t, "acme", "credits").Remaining, tc.name)
	}
	fields := b.formOf(at+"refund?operation=debit-1&meter=api_calls", "operation", "debit-1", "amount", "500", "reason", "broken answers")
	b.post(200, at+"refund", stepped(fields, "preview"), "7,500 calls 8,000 calls", "refund.create")
	b.post(200, at+"refund", stepped(fields, "apply"), "Done.", "7,500 calls 8,000 calls")
	b.post(200, at+"refund", stepped(fields, "apply"), "This was done before.")
	c.acme().wantLeft(t, 8000) // after the refund
}

func TestConsole_Corrections_Refused_SayWhatWasNotDone(t *testing.T) {
	c := oneConsole.parallel(t)
	b := c.browser(t).signIn(testKey)
	const at = "/console/tenants/acme/correct/"
	for _, tc := range []struct {
		name   string
		status int
		says   string
		values []string
	}{
		{"top-up", 400, "The amount is not a whole number", []string{"meter", "credits", "amount", "ten"}},
		{"top-up", 400, "amount", []string{"meter", "credits", "amount", "0"}},
		{"top-up", 400, "This is not a time", []string{"meter", "credits", "amount", "1", "expires_at", "friday"}},
		{"top-up", 404, "There is nothing with this id", []string{"meter", "none", "amount", "1"}},
		{"adjust", 400, "reason", []string{"meter", "credits", "amount", "5", "reason", ""}},
		{"void", 404, "There is no such grant", []string{"grant", "none"}},
		{"refund", 404, "There is no such operation", []string{"operation", "none"}},
		{"refund", 422, "More than the operation used cannot be refunded", []string{"operation", "debit-1", "amount", "2501"}},
		{"plan", 404, "does not exist", []string{"plan", "none"}},
		{"suspend", 409, "Someone else changed it", []string{"version", "77"}},
	} {
		values := tc.values
		if tc.name != "adjust" {
			values = append(values, "reason", "x")
		}
		fields := b.formOf(at+tc.name, values...)
		for _, step := range []string{"preview", "apply"} {
			b.post(tc.status, at+tc.name, stepped(fields, step), "Nothing was changed.", tc.says)
		}
	}
	b.get(404, at+"everything", "There is no such correction")
	assert.EqualValues(t, 560, c.balance(t, "acme", "credits").Remaining)
}

func TestConsole_Corrections_ReadKey_MayNot(t *testing.T) {
	c := oneConsole.parallel(t)
	secret, _ := c.key(t, "", "read")
	b := c.browser(t).signIn(secret)
	assert.NotContains(t, b.get(200, "/console/tenants/acme"), "/correct/",
		"the page offers corrections to a key that may not make them")
	b.get(403, "/console/tenants/acme/correct/top-up", "This key may not change anything")
	b.post(403, "/console/tenants/acme/correct/top-up", url.Values{"token": {b.token()}, "step": {"apply"}, "meter": {"credits"}, "amount": {"5"}, "reason": {"x"}}, "Nothing was changed")
	bound, _ := c.key(t, "globex", "admin")
	b.signIn(bound)
	b.post(403, "/console/tenants/acme/correct/top-up", url.Values{"token": {b.token()}, "step": {"apply"}, "meter": {"credits"}, "amount": {"5"}, "reason": {"x"}}, "This key may not do that")
	assert.EqualValues(t, 560, c.balance(t, "acme", "credits").Remaining)
}

// TestConsole_Extend_MovesTheEndOnce: a grant gets a later end exactly once, even if a part of it was used. No unit
// is lost.
func TestConsole_Extend_MovesTheEndOnce(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.do(t, 201, "POST", "/v1/tenants/acme/grants", "gift", object{"meter": "api_calls", "amount": 300, "source": "promo", "grant_id": "gift", "priority": 7, "expires_at": "2035-01-01T00:00:00Z", "reason": "launch"})
	c.do(t, 200, "POST", "/v1/debits", "of-the-gift", object{"tenant": "acme", "items": []object{{"meter": "api_calls", "amount": 100}}})
	before := c.balance(t, "acme", "api_calls").Remaining
	b := c.browser(t).signIn(testKey)
	b.get(200, "/console/tenants/acme?meter=api_calls", "gift void extend")
	const at = "/console/tenants/acme/correct/extend"
	values := []string{"grant", "gift", "meter", "api_calls", "expires_at", "2035-03-01T00:00", "reason", "ticket 12"}
	fields := b.formOf(at, values...)
	b.post(200, at, stepped(fields, "preview"), "Nothing was changed yet", "2035-01-01 01:00 2035-03-01 (Europe/Berlin)", "200 calls", "grant.extend")
	b.post(200, at, stepped(fields, "apply"), "Done.", "2035-01-01 01:00 2035-03-01 (Europe/Berlin)", "bootstrap (bootstrap)")
	b.post(200, at, stepped(fields, "apply"), "This was done before.", "2035-01-01 01:00 2035-03-01 (Europe/Berlin)")
	c.acme().wantLeft(t, before)
	c.audited(t, "grant.extend", "ticket 12")
	var list struct {
		Items []struct {
			GrantID   string `json:"grant_id"`
			Status    string
			Remaining int64
			Priority  int
			ExpiresAt string `json:"expires_at"`
		}
	}
	c.do(t, 200, "GET", "/v1/tenants/acme/grants?meter=api_calls&status=open&limit=50", "", nil).into(t, &list)
	found := 0
	for _, g := range list.Items {
		if g.GrantID == "gift" {
			if found++; g.Status != "active" || g.Remaining != 200 || g.Priority != 7 || g.ExpiresAt != "2035-02-28T23:00:00Z" {
				t.Errorf("the grant is %+v", g)
			}
		}
	}
	assert.Equal(t, 1, found, "the grants are %+v", list.Items)
	b.get(200, "/console/tenants/acme/journal?kind=extend_grant", "extend grant api_calls", "gift")
	for _, tc := range []struct {
		status     int
		says, name string
		value      string
	}{
		{404, "There is no such grant", "grant", "gifts"},
		{400, "This is not a later end", "expires_at", "2035-02-01"},
		{400, "This is not a later end", "expires_at", "2020-02-01"},
		{409, "never ends", "grant", "invoice-7"},
		{409, "This grant cannot be extended", "grant", "invoice-7"},
	} {
		refused := b.formOf(at, append(values, tc.name, tc.value)...)
		if tc.value == "invoice-7" {
			refused.Set("meter", "credits")
		}
		for _, step := range []string{"preview", "apply"} {
			b.post(tc.status, at, stepped(refused, step), "Nothing was changed.", tc.says)
		}
	}
}

// TestConsole_SessionEndsInMidForm_NothingLost: if the session ends before the form is sent, the form is shown again
// after the sign-in. It has the entered values and the same idempotency key.
func TestConsole_SessionEndsInMidForm_NothingLost(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	b := c.browser(t).signIn(testKey)
	const at = "/console/tenants/acme/correct/top-up"
	fields := b.formOf(at, "meter", "credits", "amount", "77", "reason", hostile)
	b.post(303, "/console/logout", url.Values{"token": fields["token"]})
	page := b.post(401, at, stepped(fields, "apply"), "nothing was changed", "sign in to continue")
	assert.NotContains(t, page, "<script>alert", "the sign-in page runs a kept text")
	kept := url.Values{"key": {testKey}, "target": {at}}
	for _, m := range keptFields.FindAllStringSubmatch(page, -1) {
		kept.Add(unescaped(m[1]), unescaped(m[2]))
	}
	back := b.post(200, "/console/login", kept, "Your session had ended")
	require.Regexp(t, onces, back)
	assert.Equal(t, fields.Get("once"), onces.FindStringSubmatch(back)[1], "the idempotency key of the form")
	assert.True(t, strings.Contains(back, `value="77"`) && strings.Contains(unescaped(back), hostile) &&
		!strings.Contains(back, "<script>alert"), "the form came back as %s", back)
	fields.Set("token", tokens.FindStringSubmatch(back)[1])
	b.post(200, at, stepped(fields, "apply"), "Done.", "637 credits")
}
