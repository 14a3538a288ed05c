package oidc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	// callTimeout is the maximum time of one request to the provider.
	callTimeout = 5 * time.Second

	// answerMax is the maximum size of an answer of the provider in bytes.
	answerMax = 1 << 20

	// retryAfter is the minimum time between a failed read of the provider's metadata and the next attempt to read
	// them.
	retryAfter = 2 * time.Second
)

// Config configures a Provider. Every field is required.
type Config struct {
	Issuer       string
	ClientID     string
	ClientSecret string
	Scopes       []string // OAuth scopes in addition to openid
	Rules        *Rules
	SessionMax   time.Duration // the maximum time of a person's session
	Log          *slog.Logger
}

// Provider is the client of the identity provider. It starts no goroutines.
type Provider struct {
	cfg    Config
	client *http.Client
	seal   seal
	now    func() time.Time

	mu       sync.Mutex
	found    *discovered
	failed   error
	failedAt time.Time
}

// discovered is the metadata that the provider publishes about itself.
type discovered struct {
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier
	endpoint oauth2.Endpoint
	userinfo string
	logout   string // URL at which a session of the provider ends; empty: none
}

// Error says why a person cannot sign in, with a text for that person.
type Error struct {
	Status int
	Detail string
	cause  error
}

// Error returns the text for the person and the cause. It is for logs.
func (e *Error) Error() string {
	if e.cause != nil {
		return e.Detail + ": " + e.cause.Error()
	}
	return e.Detail
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

func refuse(format string, args ...any) error {
	return &Error{Status: http.StatusForbidden, Detail: fmt.Sprintf(format, args...)}
}

func away(err error) error {
	return &Error{Status: http.StatusServiceUnavailable, Detail: "The identity provider gave a wrong answer. Try again in a moment, or sign in with a key.", cause: err}
}

// New returns a provider. It sends no request to the identity provider.
func New(cfg Config) (*Provider, error) {
	s, err := newSeal(cfg.ClientSecret)
	if err != nil {
		return nil, err
	}
	return &Provider{cfg: cfg, client: &http.Client{Timeout: callTimeout, Transport: limited{http.DefaultTransport}}, seal: s, now: time.Now}, nil
}

// limited is a transport that reads at most answerMax bytes of an answer.
type limited struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	got, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		got.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(got.Body, answerMax), got.Body}
	}
	return got, err
}

// discover returns the provider's metadata. The first call that succeeds reads the metadata from the provider and
// stores it for later calls.
func (p *Provider) discover(ctx context.Context) (*discovered, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	if p.failed != nil && p.now().Sub(p.failedAt) < retryAfter {
		return nil, away(p.failed)
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), callTimeout)
	defer cancel()
	provider, err := oidc.NewProvider(ctx, p.cfg.Issuer)
	var more struct {
		UserInfo string `json:"userinfo_endpoint"`
		Logout   string `json:"end_session_endpoint"`
	}
	if err == nil {
		err = provider.Claims(&more)
	}
	if err != nil {
		p.failed, p.failedAt = err, p.now()
		p.cfg.Log.Warn("the identity provider gave a wrong answer", "issuer", p.cfg.Issuer, "error", err)
		return nil, away(err)
	}
	if u, err := url.Parse(more.Logout); err != nil || u.Scheme != "https" && u.Scheme != "http" {
		more.Logout = ""
	}
	p.found = &discovered{
		provider: provider, endpoint: provider.Endpoint(), userinfo: more.UserInfo, logout: more.Logout,
		verifier: provider.VerifierContext(oidc.ClientContext(context.WithoutCancel(ctx), p.client), &oidc.Config{ClientID: p.cfg.ClientID}),
	}
	return p.found, nil
}

// settings returns the OAuth settings. callback is the URL to which the provider redirects the browser after the
// sign-in.
func (p *Provider) settings(d *discovered, callback string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.cfg.ClientID, ClientSecret: p.cfg.ClientSecret, Endpoint: d.endpoint, RedirectURL: callback,
		Scopes: append([]string{oidc.ScopeOpenID}, p.cfg.Scopes...),
	}
}

// Begin returns a new attempt, and the provider's URL at which the person signs in.
func (p *Provider) Begin(ctx context.Context, callback string) (Attempt, string, error) {
	d, err := p.discover(ctx)
	if err != nil {
		return Attempt{}, "", err
	}
	a := newAttempt(p.now())
	return a, p.settings(d, callback).AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), nil
}

// Finish exchanges the code of an attempt at the provider, and returns the person who has signed in.
func (p *Provider) Finish(ctx context.Context, a *Attempt, code, callback string) (*Person, error) {
	d, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), 2*callTimeout)
	defer cancel()
	token, err := p.settings(d, callback).Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError {
		return nil, &Error{Status: http.StatusUnauthorized, Detail: "The identity provider did not accept the code of this sign-in. Begin again.", cause: err}
	}
	if err != nil {
		return nil, away(err)
	}
	raw, _ := token.Extra("id_token").(string)
	checked, err := d.verifier.Verify(ctx, raw)
	if err != nil {
		return nil, &Error{Status: http.StatusUnauthorized, Detail: "The identity provider's token is not valid here. Begin again.", cause: err}
	}
	if checked.Nonce != a.Nonce {
		return nil, &Error{Status: http.StatusUnauthorized, Detail: "The identity provider's token belongs to another sign-in. Begin again."}
	}
	claims := map[string]any{}
	if err := checked.Claims(&claims); err != nil {
		return nil, away(err)
	}
	if subject, _ := claims["sub"].(string); subject == "" || subject != checked.Subject {
		return nil, away(errors.New("the token has no subject"))
	}
	if err := p.addUserInfo(ctx, d, token, checked.Subject, claims); err != nil {
		return nil, err
	}
	scopes, tenant, err := p.cfg.Rules.rights(claims)
	if err != nil {
		return nil, err
	}
	return &Person{
		Subject: checked.Subject, Name: nameOf(claims, checked.Subject), Scopes: scopes.Names(), Tenant: tenant, Rules: p.cfg.Rules.id,
		EndsAt: p.now().Add(p.cfg.SessionMax).Unix(),
	}, nil
}

// addUserInfo adds the claims of the provider's user endpoint, if the provider has this endpoint. Some providers send
// groups and e-mail addresses only there. merge says which claims are used.
func (p *Provider) addUserInfo(ctx context.Context, d *discovered, token *oauth2.Token, subject string, claims map[string]any) error {
	if d.userinfo == "" {
		return nil
	}
	info, err := d.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return away(err)
	}
	more := map[string]any{}
	if err := info.Claims(&more); err != nil {
		return away(err)
	}
	if info.Subject != subject || more["sub"] != subject {
		return away(errors.New("the user endpoint returned another subject"))
	}
	merge(claims, more)
	return nil
}

// verifiable are the claims that count only if the provider says that it has verified them. It says so with a second
// claim, which has the suffix verifiedSuffix.
var verifiable = []string{"email", "phone_number"}

const verifiedSuffix = "_verified"

// merge adds the claims of the user endpoint to those of the ID token. If both documents have a claim, the value in the
// ID token is used. A verifiable claim and the claim that says whether it is verified are of one document: the first
// one that has both, or else the first one that has either. So no document verifies a value of the other one.
func merge(token, user map[string]any) {
	for _, name := range verifiable {
		pair := func(of map[string]any) (members int) {
			for _, member := range []string{name, name + verifiedSuffix} {
				if _, said := of[member]; said {
					members++
				}
			}
			return members
		}
		unused := user
		if pair(user) > pair(token) {
			unused = token
		}
		delete(unused, name)
		delete(unused, name+verifiedSuffix)
	}
	for name, value := range user {
		if _, said := token[name]; !said {
			token[name] = value
		}
	}
}

// Logout returns the URL at which the person's session at the provider ends. It returns the empty string if the
// provider has no such URL, or if the provider's metadata has not been read yet.
func (p *Provider) Logout() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil || p.found.logout == "" {
		return ""
	}
	u, err := url.Parse(p.found.logout)
	if err != nil {
		return ""
	}
	q := u.Query()
	q.Set("client_id", p.cfg.ClientID)
	u.RawQuery = q.Encode()
	return u.String()
}

// nameOf returns the name of a person for display.
func nameOf(claims map[string]any, subject string) string {
	text := func(name string) string { s, _ := claims[name].(string); return s }
	name := []rune(cmp.Or(text("name"), text("preferred_username"), text("email"), subject))
	return string(name[:min(len(name), nameMax)])
}
