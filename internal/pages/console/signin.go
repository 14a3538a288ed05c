package console

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	stdpath "path"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/access/session"
	"github.com/quotasvc/quotasvc/internal/pages/console/oidc"
	"github.com/quotasvc/quotasvc/internal/pages/inprocess"
)

const (
	cookiePlain  = "quotasvc_console"
	cookieSecure = "__Secure-quotasvc_console" // browsers accept it only over TLS

	// keyMax is the maximum length of the field `key` in bytes. All API keys are shorter.
	keyMax = 512

	// keptPrefix is the prefix that the names of a kept form's fields have on the sign-in page.
	keptPrefix = "kept."
)

// cookie returns the cookie of a session, without a value.
func cookie(r *http.Request) *http.Cookie {
	c := &http.Cookie{Name: cookiePlain, Path: Prefix, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: inprocess.Secure(r)}
	if c.Secure {
		c.Name = cookieSecure
	}
	return c
}

// enter opens the session of a call. The call has no session if it has no cookie, if the session has ended, or if the
// session's key is no longer valid.
func (c *call) enter() error {
	sent, err := c.r.Cookie(cookie(c.r).Name)
	if err != nil {
		return nil //nolint:nilerr // without a cookie there is no session
	}
	found, err := c.console.cfg.Sessions.Open(c.ctx, c.console.cfg.Client(c.r), sent.Value)
	if errors.Is(err, session.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	if oidc.IsPerson(found.Secret) {
		return c.enterPerson(found)
	}
	key, err := c.authenticate(found.Secret)
	if r, refused := errors.AsType[*access.Refusal](err); refused && r.Reason == access.Unknown {
		return c.console.cfg.Sessions.End(c.ctx, found.ID)
	}
	if err != nil {
		return err
	}
	if !key.Scopes.Has(access.Read) {
		return c.console.cfg.Sessions.End(c.ctx, found.ID)
	}
	c.session, c.key = found, key
	c.API, err = inprocess.WithSecret(c.console.cfg.API, c.r, found.Secret)
	return err
}

// authenticate returns the API key with this secret. A wrong secret counts as a failed attempt of the client's
// address, as in the API.
func (c *call) authenticate(secret string) (*access.Key, error) {
	address := func() netip.Addr { return c.console.cfg.Client(c.r) }
	return c.console.cfg.Keys.Authenticate(c.ctx, "Bearer "+secret, address, c.console.now())
}

// login is the data of the sign-in page.
type login struct {
	target  string // the path to open after the sign-in
	kept    form   // the kept form; nil: none
	problem string
}

// askToSignIn shows the sign-in page for a request without a session. If the request sent a form, the page keeps the
// form's fields.
func (c *call) askToSignIn() error {
	l := login{target: c.r.URL.RequestURI()}
	if c.r.Method == http.MethodPost {
		if err := c.r.ParseForm(); err != nil {
			return badForm(err)
		}
		l.target, l.kept = c.r.URL.Path, form(c.r.PostForm).without("token", "step")
		l.problem = "The session has ended, and nothing was changed. Your input is kept: sign in to continue."
		if l.target == Prefix+"logout" {
			return c.redirect(Prefix + "login")
		}
	}
	if c.partial() {
		c.w.Header().Set("Hx-Refresh", "true") // htmx loads the whole page again, which then shows the sign-in
		c.status = http.StatusUnauthorized
		c.w.WriteHeader(c.status)
		return nil
	}
	return c.render(http.StatusUnauthorized, loginPage(c, l))
}

// showLogin shows the sign-in page.
func showLogin(c *call) error {
	if err := c.enter(); err != nil {
		return err
	}
	if c.session != nil {
		return c.redirect(Prefix)
	}
	return c.render(http.StatusOK, loginPage(c, login{target: Prefix}))
}

// signIn creates a session for a person who signs in with an API key. Then it shows the kept form if there is one,
// and otherwise redirects to the target.
func signIn(c *call) error {
	if err := c.r.ParseForm(); err != nil {
		return badForm(err)
	}
	l := login{target: target(c.r.PostForm.Get("target")), kept: form{}}
	for name, values := range c.r.PostForm {
		if field, kept := strings.CutPrefix(name, keptPrefix); kept {
			l.kept[field] = values
		}
	}
	secret := strings.TrimSpace(c.r.PostForm.Get("key"))
	key, err := c.keyOf(secret)
	if err != nil {
		f, refused := errors.AsType[*failure](err)
		if !refused {
			return err
		}
		l.problem = f.detail
		return c.render(f.status, loginPage(c, l))
	}
	made, err := c.console.cfg.Sessions.Create(c.ctx, key.ID, key.Tenant, secret)
	if err != nil {
		return err
	}
	sent := cookie(c.r)
	sent.Value, sent.MaxAge = made.ID, int(session.Lifetime/time.Second)
	http.SetCookie(c.w, sent)
	if len(l.kept) == 0 {
		return c.redirect(l.target)
	}
	c.session, c.key, c.kept = made, key, l.kept
	if c.API, err = inprocess.WithSecret(c.console.cfg.API, c.r, secret); err != nil {
		return err
	}
	return c.showKept(l.target)
}

// keyOf returns the API key with which a person signs in. If the key is wrong, the error is a *failure with a text
// for the person.
func (c *call) keyOf(secret string) (*access.Key, error) {
	if secret == "" || len(secret) > keyMax || strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, &failure{status: http.StatusBadRequest, detail: "Enter a key of the API: visible characters without spaces."}
	}
	key, err := c.authenticate(secret)
	r, refused := errors.AsType[*access.Refusal](err)
	switch {
	case refused && r.Reason == access.TooMany:
		c.w.Header().Set("Retry-After", r.Seconds())
		return nil, &failure{status: http.StatusTooManyRequests, detail: "Too many wrong keys came from this address. Wait a second and try again."}
	case refused && r.Reason == access.Undecided:
		return nil, &failure{status: http.StatusServiceUnavailable, detail: "PostgreSQL does not answer, so this key cannot be checked. Try again in a moment."}
	case err != nil:
		return nil, &failure{status: http.StatusUnauthorized, detail: "This key is unknown, expired or revoked."}
	case !key.Scopes.Has(access.Read):
		return nil, &failure{status: http.StatusForbidden, detail: "The console needs a key with the scope read or admin; this key has " + key.Scopes.String() + "."}
	}
	return key, nil
}

// target returns the path that is opened after the sign-in. This is `given`, if it is a path of the console, and
// otherwise the path of the first page.
func target(given string) string {
	u, err := url.Parse(given)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(stdpath.Clean(u.Path)+"/", Prefix) || strings.ContainsAny(given, "\\\r\n") {
		return Prefix
	}
	return u.RequestURI()
}

// showKept shows the page of a form with the fields that were kept during the sign-in.
func (c *call) showKept(path string) error {
	r := c.r.Clone(c.ctx)
	r.Method, r.URL, r.Form, r.PostForm = http.MethodGet, &url.URL{Path: path}, nil, nil
	mux := http.NewServeMux()
	for pattern, p := range c.console.pages() {
		mux.HandleFunc(pattern, func(_ http.ResponseWriter, r *http.Request) {
			c.r = r
			if p.admin && !c.mayChange() {
				c.fail(&failure{status: http.StatusForbidden, title: "This key may not change anything", detail: "Nothing was changed. Sign in with a key that has the scope admin."})
				return
			}
			if err := p.show(c); err != nil {
				c.fail(err)
			}
		})
	}
	mux.ServeHTTP(c.w, r)
	return nil
}

// signOut ends the session.
func signOut(c *call) error {
	if err := c.console.cfg.Sessions.End(c.ctx, c.session.ID); err != nil {
		return err
	}
	gone := cookie(c.r)
	gone.MaxAge = -1
	http.SetCookie(c.w, gone)
	if oidc.IsPerson(c.session.Secret) {
		return c.leaveProvider()
	}
	return c.redirect(Prefix + "login")
}
