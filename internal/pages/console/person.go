package console

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/access/session"
	"github.com/quotasvc/quotasvc/internal/pages/console/oidc"
	"github.com/quotasvc/quotasvc/internal/pages/inprocess"
)

const (
	attemptPlain  = "quotasvc_signin"
	attemptSecure = "__Secure-quotasvc_signin"

	// codeMax is the maximum length in bytes of a code or a state that a provider sends back in a URL.
	codeMax = 4096
)

// enterPerson opens the session of a person who has signed in at the identity provider (see enter). The pages then
// call the API with a key that exists only in this process.
func (c *call) enterPerson(found *session.Session) error {
	key := c.console.cfg.Provider.Key(found.Secret)
	if key == nil {
		return c.console.cfg.Sessions.End(c.ctx, found.ID)
	}
	var err error
	c.session, c.key = found, key
	c.API, err = inprocess.As(c.console.cfg.API, c.r, key)
	return err
}

// attemptCookie returns the cookie of a sign-in in progress, without a value. The provider is another site. Therefore
// the cookie is not SameSite=Strict: a browser would not send it after the redirect from the provider.
func attemptCookie(r *http.Request) *http.Cookie {
	c := &http.Cookie{Name: attemptPlain, Path: Prefix + "oidc/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: inprocess.Secure(r)}
	if c.Secure {
		c.Name = attemptSecure
	}
	return c
}

// callback returns the URL to which the provider redirects the browser after the sign-in.
func (c *call) callback() string {
	base := c.console.cfg.Base
	if base == "" {
		base = "http://" + c.r.Host
		if inprocess.Secure(c.r) {
			base = "https://" + c.r.Host
		}
	}
	return base + Prefix + "oidc/callback"
}

// errNoProvider is the error for sign-ins at a provider if no provider is configured.
var errNoProvider = &failure{status: http.StatusNotFound, title: "There is no identity provider", detail: "This console accepts only keys of the API."}

// beginSignIn redirects the browser to the identity provider.
func beginSignIn(c *call) error {
	p := c.console.cfg.Provider
	if p == nil {
		return errNoProvider
	}
	if err := c.r.ParseForm(); err != nil {
		return badForm(err)
	}
	l := login{target: target(c.r.PostForm.Get("target")), kept: form{}}
	for name, values := range c.r.PostForm {
		if field, kept := strings.CutPrefix(name, keptPrefix); kept {
			l.kept[field] = values
		}
	}
	attempt, to, err := p.Begin(c.ctx, c.callback())
	if err != nil {
		return c.signInFailed(l, err)
	}
	attempt.Target, attempt.Kept = l.target, l.kept
	if len(l.kept) == 0 {
		attempt.Kept = nil
	}
	sealed, whole, err := p.Seal(attempt)
	if err != nil {
		return err
	}
	if !whole {
		l.problem = "Your input is too long to keep while you sign in with the identity provider. Sign in with a key, or copy your input first."
		return c.render(http.StatusRequestEntityTooLarge, loginPage(c, l))
	}
	sent := attemptCookie(c.r)
	sent.Value, sent.MaxAge = sealed, int(oidc.AttemptMax/time.Second)
	http.SetCookie(c.w, sent)
	return c.render(http.StatusOK, onwardPage("Signing in with "+c.console.cfg.ProviderName, to))
}

// finishSignIn reads the answer of the identity provider, and creates a session for the person.
func finishSignIn(c *call) error {
	p := c.console.cfg.Provider
	if p == nil {
		return errNoProvider
	}
	l := login{target: Prefix}
	sent, err := c.r.Cookie(attemptCookie(c.r).Name)
	if err != nil {
		sent = &http.Cookie{}
	}
	gone := attemptCookie(c.r)
	gone.MaxAge = -1
	http.SetCookie(c.w, gone) // an attempt can be used only once, so its cookie is deleted
	attempt, err := p.Open(sent.Value)
	if err != nil {
		return c.signInFailed(l, err)
	}
	l.target, l.kept = target(attempt.Target), form(attempt.Kept)
	q := c.r.URL.Query()
	if !attempt.IsOf(q.Get("state")) {
		return c.signInFailed(l, &oidc.Error{Status: http.StatusBadRequest, Detail: "The identity provider's answer belongs to another sign-in. Begin again."})
	}
	if code := q.Get("error"); code != "" || q.Get("code") == "" || len(c.r.URL.RawQuery) > codeMax {
		return c.signInFailed(l, &oidc.Error{Status: http.StatusUnauthorized, Detail: "The identity provider did not let you in" + reason(code) + ". Begin again, or ask its administrator."})
	}
	person, err := p.Finish(c.ctx, attempt, q.Get("code"), c.callback())
	if err != nil {
		return c.signInFailed(l, err)
	}
	return c.welcome(person, l)
}

// reason returns the provider's error code as text. It returns the empty string if the code is not a valid code of
// OAuth. Valid codes have only small letters and underscores.
func reason(code string) string {
	if code == "" || len(code) > 64 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return ""
	}
	return " (" + strings.ReplaceAll(code, "_", " ") + ")"
}

// welcome creates the session of a person. Then it shows the kept form if there is one, and otherwise redirects to
// the target.
func (c *call) welcome(person *oidc.Person, l login) error {
	text, err := person.Text()
	if err != nil {
		return c.signInFailed(l, err)
	}
	made, err := c.console.cfg.Sessions.Create(c.ctx, person.ID(), person.Tenant, text)
	if err != nil {
		return err
	}
	sent := cookie(c.r)
	sent.Value, sent.MaxAge = made.ID, int(session.Lifetime/time.Second)
	http.SetCookie(c.w, sent)
	c.console.cfg.Log.LogAttrs(c.ctx, slog.LevelInfo, "a person signed in", slog.String("key", person.ID()), slog.String("name", person.Name))
	if len(l.kept) == 0 {
		return c.render(http.StatusOK, onwardPage("Signed in", l.target))
	}
	if err := c.enterPerson(made); err != nil {
		return err
	}
	if c.session == nil {
		return c.signInFailed(l, &oidc.Error{Status: http.StatusUnauthorized, Detail: "The session has ended already. Begin again."})
	}
	c.kept = l.kept
	return c.showKept(l.target)
}

// signInFailed shows the sign-in page with the error and with the kept form.
func (c *call) signInFailed(l login, err error) error {
	e, ok := errors.AsType[*oidc.Error](err)
	if !ok {
		return err
	}
	c.console.cfg.Log.LogAttrs(c.ctx, slog.LevelWarn, "a person could not sign in", slog.String("error", e.Error()), slog.String("remote_addr", c.r.RemoteAddr))
	l.problem = e.Detail
	return c.render(e.Status, loginPage(c, l))
}

// leaveProvider shows a page that leads to the provider's logout, so that the session at the provider can end. If the
// provider has no logout, leaveProvider redirects to the sign-in page.
func (c *call) leaveProvider() error {
	if p := c.console.cfg.Provider; p != nil {
		if to := p.Logout(); to != "" {
			return c.render(http.StatusOK, onwardPage("Signed out", to))
		}
	}
	return c.redirect(Prefix + "login")
}
