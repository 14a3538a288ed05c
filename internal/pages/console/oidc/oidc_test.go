package oidc

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func rulesOf(t *testing.T, texts ...string) *Rules {
	t.Helper()
	r, err := ParseRules(texts)
	require.NoError(t, err)
	return r
}

func TestRules_WhatIsNoRule_Refused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "groups", "groups->read", "groups=support", "=support->read", "groups=->read", "groups=support->write", "groups=support->", "groups=support->use",
		"groups=support->read@", "groups=support->read@<a>", "groups=*->admin", "groups=support->read+",
	} {
		_, err := ParseRules([]string{text})
		assert.Error(t, err, "%q passes", text)
	}
	_, err := ParseRules(nil)
	assert.Error(t, err, "no rules pass")
}

func TestRules_GiveRights(t *testing.T) {
	t.Parallel()
	r := rulesOf(t, "groups=support->read", "groups=ops->admin", "email=ada@example.com->read+use@acme", "https://example.com/org=*->read@*", "staff=true->read", "level=3->read", "groups=acme-admins->admin@acme")
	list := func(names ...any) map[string]any { return map[string]any{"groups": names} }
	for name, c := range map[string]struct {
		claims map[string]any
		want   string
	}{
		"a group":                     {list("support"), "read"},
		"of several groups all count": {list("support", "ops"), "admin"},
		"one text is a list of one":   {map[string]any{"groups": "support"}, "read"},
		"other groups":                {list("sales"), ""},
		"case counts":                 {list("Support"), ""},
		"nothing":                     {nil, ""},
		"a verified address":          {map[string]any{"email": "ada@example.com", "email_verified": true}, "use,read@acme"},
		"an unverified address":       {map[string]any{"email": "ada@example.com", "email_verified": false}, ""},
		"an address, not said":        {map[string]any{"email": "ada@example.com"}, ""},
		"the tenant that is named":    {map[string]any{"https://example.com/org": "globex"}, "read@globex"},
		"a tenant that is no id":      {map[string]any{"https://example.com/org": "a b"}, ""},
		"several tenants":             {map[string]any{"https://example.com/org": []any{"globex", "acme"}}, ""},
		"true":                        {map[string]any{"staff": true}, "read"},
		"a number":                    {map[string]any{"level": 3.0}, "read"},
		"an object":                   {map[string]any{"groups": map[string]any{"support": true}}, ""},
		"for one never for all":       {list("support", "acme-admins"), "read"},
		"for one":                     {list("acme-admins"), "admin@acme"},
	} {
		scopes, tenant, err := r.rights(c.claims)
		got := ""
		if err == nil {
			if got = scopes.String(); tenant != "" {
				got += "@" + tenant
			}
		}
		assert.True(t, got == c.want, "%s: %q (%v), want %q", name, got, err, c.want)
	}
}

func newProvider(t *testing.T, issuer string, rules ...string) *Provider {
	t.Helper()
	p, err := New(Config{Issuer: issuer, ClientID: "c", ClientSecret: "s", Rules: rulesOf(t, rules...), SessionMax: time.Hour, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return p
}

func TestAttempt_OpensWhereItWasSealedUntilItEnds(t *testing.T) {
	t.Parallel()
	p := newProvider(t, "http://localhost", "a=b->read")
	a := newAttempt(time.Now())
	a.Target, a.Kept = "/console/", map[string][]string{"reason": {"x"}}
	text, whole, err := p.Seal(a)
	require.True(t, err == nil && whole && !strings.Contains(text, a.State), "%v, %v, %v", text, whole, err)
	got, err := p.Open(text)
	require.True(t, err == nil && got.IsOf(a.State) && !got.IsOf("") && !got.IsOf(a.Nonce) && got.Kept["reason"][0] == "x" &&
		got.Verifier == a.Verifier, "%+v, %v", got, err)
	a.Kept["reason"][0] = strings.Repeat("x", 5000)
	if long, whole, err := p.Seal(a); err != nil || whole || len(long) > attemptBytes {
		t.Errorf("a long form: %d bytes, %t, %v", len(long), whole, err)
	}
	other, err := New(Config{ClientSecret: "another", Rules: rulesOf(t, "a=b->read")})
	require.NoError(t, err)
	for _, bad := range []string{"", "x", text[:len(text)-2], strings.Repeat("A", 5000)} {
		_, err = p.Open(bad)
		assert.Error(t, err, "%.20q opens", bad)
	}
	_, err = other.Open(text)
	assert.Error(t, err, "it opens with another secret")
	p.now = func() time.Time { return time.Now().Add(AttemptMax) }
	_, err = p.Open(text)
	assert.Error(t, err, "it opens after its end")
}

func TestPerson_RightsEndWithTimeAndRules(t *testing.T) {
	t.Parallel()
	p := newProvider(t, "http://localhost", "a=b->read")
	who := Person{Subject: "ada@x", Name: "Ada", Scopes: []string{"read"}, Tenant: "acme", Rules: p.cfg.Rules.id, EndsAt: time.Now().Add(time.Hour).Unix()}
	text, err := who.Text()
	require.True(t, err == nil && IsPerson(text) && !IsPerson("qk_x"), "%v, %v", text, err)
	key := p.Key(text)
	require.True(t, key != nil && key.Name == "Ada" && key.Tenant == "acme" && key.Scopes.String() == "read" && key.ID == who.ID() &&
		strings.HasPrefix(key.ID, "oidc:"), key)
	assert.EqualValues(t, "oidc:248289761001", (&Person{Subject: "248289761001"}).ID(), "a plain subject")
	assert.True(t, newProvider(t, "http://localhost", "a=c->read").Key(text) == nil && (*Provider)(nil).Key(text) == nil &&
		p.Key("oidc:{") == nil, "a person has rights by other rules, without a provider, or without a text")
	p.now = func() time.Time { return time.Now().Add(time.Hour) }
	assert.True(t, p.Key(text) == nil, "a person has rights after the end")
	nobody := who
	nobody.Subject = ""
	text, err = nobody.Text()
	assert.True(t, err == nil && p.Key(text) == nil, "a person without a subject has rights")
	_, err = (&Person{Subject: strings.Repeat("x", 256)}).Text()
	assert.Error(t, err, "a long subject passes")
	n := nameOf(map[string]any{"name": strings.Repeat("é", 500)}, "s")
	assert.Len(t, []rune(n), nameMax, "a name has %d characters", len(n))
}

// TestProvider_WithoutGoodAnswers_503: the sign-in fails with 503 if the provider does not answer, or if its metadata
// names another issuer.
func TestProvider_WithoutGoodAnswers_503(t *testing.T) {
	t.Parallel()
	var answers []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers = append(answers, r.URL.Path)
		_, _ = w.Write([]byte(`{"issuer":"https://other.example"}`))
	}))
	defer server.Close()
	for _, issuer := range []string{"http://127.0.0.1:1", server.URL} {
		p, at := newProvider(t, issuer, "a=b->read"), time.Now()
		p.now = func() time.Time { return at }
		for range 3 {
			_, _, err := p.Begin(t.Context(), "http://localhost/x")
			e, ok := errors.AsType[*Error](err)
			assert.True(t, ok && e.Status == http.StatusServiceUnavailable, "%s: %v", issuer, err)
		}
		assert.Empty(t, p.Logout(), "a provider that says nothing has a place to sign out")
	}
	assert.Equal(t, []string{"/.well-known/openid-configuration"}, answers, "it was asked %v, want once", answers)
}
