package oidc

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forger is an identity provider that answers each sign-in with the documents of its code.
type forger struct {
	t      *testing.T
	key    *rsa.PrivateKey
	url    string
	keys   *oidctest.Server
	client *Provider
}

// documents are the two documents about a person: the claims of the ID token, and the answer of the user endpoint. They
// have the right "iss", "aud", "exp", "nonce" and "sub" before these members. The last member with a name counts.
type documents struct{ token, user string }

func newForger(t *testing.T, rules ...string) *forger {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	public := oidctest.PublicKey{PublicKey: key.Public(), KeyID: "k", Algorithm: oidc.RS256}
	f := &forger{t: t, key: key, keys: &oidctest.Server{PublicKeys: []oidctest.PublicKey{public}}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.url, f.client = server.URL, newProvider(t, server.URL, rules...)
	f.keys.SetIssuer(f.url)
	return f
}

// ServeHTTP implements http.Handler. The access token of a person is the answer of the user endpoint.
func (f *forger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]string{
			"issuer": f.url, "authorization_endpoint": f.url + "/auth", "token_endpoint": f.url + "/token",
			"jwks_uri": f.url + "/keys", "userinfo_endpoint": f.url + "/user",
		})
	case "/token":
		token, user, _ := strings.Cut(r.FormValue("code"), "\n")
		_ = json.NewEncoder(w).Encode(map[string]string{
			"access_token": user, "token_type": "Bearer",
			"id_token": oidctest.SignIDToken(f.key, "k", oidc.RS256, token),
		})
	case "/user":
		_, _ = fmt.Fprint(w, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	default:
		f.keys.ServeHTTP(w, r)
	}
}

// signIn returns the rights and the name of the person with these documents, or "" if nobody is signed in.
func (f *forger) signIn(d documents) (rights, name string) {
	a := newAttempt(time.Now())
	members := func(first, others string) string { return "{" + strings.TrimSuffix(first+","+others, ",") + "}" }
	ends := time.Now().Add(time.Hour).Unix()
	token := fmt.Sprintf(`"iss":%q,"aud":"c","exp":%d,"nonce":%q,"sub":"ada"`, f.url, ends, a.Nonce)
	code := members(token, d.token) + "\n" + members(`"sub":"ada"`, d.user)
	who, err := f.client.Finish(f.t.Context(), &a, code, "http://localhost/x")
	if err != nil {
		assert.Nil(f.t, who, "%+v", d)
		assert.ErrorAs(f.t, err, new(*Error), "%+v", d)
		return "", ""
	}
	if rights = strings.Join(who.Scopes, "+"); who.Tenant != "" {
		rights += "@" + who.Tenant
	}
	return rights, who.Name
}

// TestFinish_ForgedAnswers_GiveNoRights: what one document says of a person is never completed with what the other one
// says of somebody or something else.
func TestFinish_ForgedAnswers_GiveNoRights(t *testing.T) {
	t.Parallel()
	f := newForger(t, "email=ada@example.com->admin", "phone_number=+1555->admin", "groups=x->read", "org=*->read@*")
	const ada, eve = `"email":"ada@example.com"`, `"email":"eve@evil.com"`
	const unsaid = ada + `,"email_verified":null`
	const verified, unverified = `"email_verified":true`, `"email_verified":false`
	for _, forged := range []documents{
		// The address and its verification are of different documents.
		{ada, eve + "," + verified},
		{ada, verified},
		{verified, ada},
		{verified, ada + "," + unverified},
		{unsaid, eve + "," + verified},
		{eve + "," + verified, ada},
		{eve + "," + verified, ada + "," + verified},
		{`"email":null,` + verified, ada + "," + unverified},
		{`"email":"",` + verified, ada},
		{`"phone_number":"+1555"`, `"phone_number":"+1999","phone_number_verified":true`},
		{`"phone_number_verified":true`, `"phone_number":"+1555"`},
		{ada + `,"phone_number_verified":true`, `"phone_number":"+1555",` + verified},
		// The provider does not say that the address is verified.
		{ada, ""},
		{ada + "," + unverified, ""},
		{ada + "," + unverified, ada + "," + verified},
		{ada + `,"email_verified":"false"`, ""},
		{ada + `,"email_verified":1`, ""},
		{ada + `,"email_verified":[true]`, ""},
		{ada + `,"Email_Verified":true`, ""},
		{`"email":["eve@evil.com","ada@example.com"],` + verified, ""},
		{`"email":["ada@example.com"],` + verified, ""},
		{`"phone_number":"+1555"`, ""},
		{`"phone_number":"+1555","phone_number_verified":false`, ""},
		// A claim of the token stands, whatever the other document says.
		{`"groups":[]`, `"groups":["x"]`},
		{`"groups":null`, `"groups":["x"]`},
		{`"org":["a","b"]`, `"org":"a"`},
		// The person.
		{`"sub":"","groups":"x"`, `"sub":""`},
		{`"sub":null,"groups":"x"`, `"sub":""`},
		{`"sub":"","groups":"x"`, `"sub":"ada"`},
		{`"sub":"","Sub":"ada","groups":"x"`, ""},
		{`"groups":"x"`, `"sub":""`},
		{`"groups":"x"`, `"sub":null`},
		{`"groups":"x"`, `"sub":"eve"`},
		{`"groups":"x"`, `"sub":"eve","Sub":"ada"`},
		{`"sub":"eve","Sub":"ada","groups":"x"`, ""},
		// The token.
		{`"iss":"https://other.example","groups":"x"`, ""},
		{`"aud":"other","groups":"x"`, ""},
		{`"exp":1,"groups":"x"`, ""},
		{`"nonce":"","groups":"x"`, ""},
		{`"nonce":"other","groups":"x"`, ""},
	} {
		rights, _ := f.signIn(forged)
		assert.Empty(t, rights, "signed in by %+v", forged)
	}
}

func TestFinish_TwoDocuments_RightsOfBoth(t *testing.T) {
	t.Parallel()
	f := newForger(t, "email=ada@example.com->admin", "phone_number=+1555->read+use", "groups=x->read", "org=*->read@*")
	const ada, verified = `"email":"ada@example.com"`, `"email_verified":true`
	for _, c := range []struct {
		is           documents
		rights, name string
	}{
		{documents{ada + "," + verified, ""}, "admin", "ada@example.com"},
		{documents{"", ada + "," + verified}, "admin", "ada@example.com"},
		{documents{ada + `,"email_verified":"true"`, ""}, "admin", "ada@example.com"},
		{documents{ada, ada + "," + verified}, "admin", "ada@example.com"},
		{documents{`"email":"ada@home"`, ada + "," + verified}, "admin", "ada@example.com"},
		{documents{verified, ada + "," + verified}, "admin", "ada@example.com"},
		{documents{ada + "," + verified, `"email":"ada@home",` + verified}, "admin", "ada@example.com"},
		{documents{ada + "," + verified, `"email_verified":false`}, "admin", "ada@example.com"},
		{documents{"", `"phone_number":"+1555","phone_number_verified":true`}, "use+read", "ada"},
		{documents{ada, `"groups":["x"],"name":"Ada"`}, "read", "Ada"},
		{documents{`"groups":["x"]`, `"groups":[]`}, "read", "ada"},
		{documents{ada, `"org":"acme"`}, "read@acme", "ada@example.com"},
	} {
		rights, name := f.signIn(c.is)
		assert.Equal(t, c.rights, rights, "%+v", c.is)
		assert.Equal(t, c.name, name, "%+v", c.is)
	}
}
