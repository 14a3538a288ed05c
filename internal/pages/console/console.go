package console

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/access/session"
	"github.com/quotasvc/quotasvc/internal/kit/asset"
	"github.com/quotasvc/quotasvc/internal/kit/proven"
	"github.com/quotasvc/quotasvc/internal/pages/console/oidc"
	"github.com/quotasvc/quotasvc/internal/store/claim"
)

// Prefix is the beginning of the paths of all pages.
const Prefix = "/console/"

const (
	// formMax is the maximum size in bytes of a form. The longest field of a usual form is a reason of 500 bytes.
	// catalogueMax is the maximum size of a form with a catalogue, whose text has at most editMax bytes.
	formMax      = 64 << 10
	catalogueMax = 3*editMax + formMax

	// policy is the Content-Security-Policy. A page may load only files of this program, and may send forms only to
	// this program.
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
)

// Config configures a Console. Every field is required unless its comment says otherwise.
type Config struct {
	// API is the handler of the API, which answers the calls of the pages.
	API http.Handler

	// Keys authenticates people who sign in with an API key.
	Keys *access.Directory

	// Sessions stores the sessions of people who are signed in.
	Sessions *session.Store

	// Client returns the address of the client that sent a request.
	Client func(*http.Request) netip.Addr

	// Provider is the identity provider at which people can sign in without an API key. nil: people can sign in only
	// with API keys. ProviderName is the provider's name on the sign-in page.
	Provider     *oidc.Provider
	ProviderName string

	// Base is the scheme and host of the console's URL, as browsers see it; empty: the scheme and host of the
	// request.
	Base string

	// Ancestors is the directive frame-ancestors of the Content-Security-Policy. It names the sites that may show
	// pages in a frame.
	Ancestors string

	// Once stores the keys of forms that were sent to any instance, so that a form that is sent twice takes effect
	// only once.
	Once *claim.Names

	// Log receives one line for each page.
	Log *slog.Logger
}

// Console serves the pages for operators.
type Console struct {
	cfg     Config
	streams *streams
	assets  *asset.Set
	handler http.Handler
	now     func() time.Time
}

// New returns a console. It starts no goroutine.
func New(cfg Config) *Console {
	c := &Console{cfg: cfg, streams: newStreams(), assets: newAssets(), now: time.Now}
	mux := http.NewServeMux()
	for pattern, page := range c.pages() {
		mux.HandleFunc(pattern, c.serve(page))
	}
	mux.HandleFunc("GET "+Prefix+"assets/{name}", c.assets.Serve)
	var origin http.CrossOriginProtection
	origin.SetDenyHandler(c.serve(page{public: true, show: func(*call) error {
		return &failure{status: http.StatusForbidden, title: "The form came from another site", detail: "Nothing was changed. Open the console in a window of its own and send the form there."}
	}}))
	c.handler = origin.Handler(mux)
	return c
}

// Drain ends the streams, and refuses new streams. The console still serves pages.
func (c *Console) Drain() { c.streams.stop() }

// Has reports whether a path belongs to the console.
func (c *Console) Has(path string) bool {
	return strings.HasPrefix(path, Prefix) || path == strings.TrimSuffix(Prefix, "/")
}

// ServeHTTP serves a request for a page.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy+c.cfg.Ancestors)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	proven.Doubt(w, r)
	if !strings.HasPrefix(r.URL.Path, Prefix) {
		http.Redirect(w, r, Prefix, http.StatusSeeOther)
		return
	}
	c.handler.ServeHTTP(w, r)
}

// page describes a page of the console, or the answer to a form.
type page struct {
	show   func(*call) error
	public bool // needs no session
	admin  bool // needs a key with the scope admin

	formMax int64 // maximum size of the form in bytes; 0: the constant formMax
}

// pages returns the pages, keyed by their patterns for http.ServeMux.
func (c *Console) pages() map[string]page {
	const tenant = Prefix + "tenants/{tenant}"
	return map[string]page{
		"GET " + Prefix + "login":  {show: showLogin, public: true},
		"POST " + Prefix + "login": {show: signIn, public: true, formMax: catalogueMax}, // may contain any kept form

		"POST " + Prefix + "logout":                          {show: signOut},
		"POST " + Prefix + "oidc/start":                      {show: beginSignIn, public: true},
		"GET " + Prefix + "oidc/callback":                    {show: finishSignIn, public: true},
		"GET " + Prefix + "{$}":                              {show: showStart},
		"GET " + Prefix + "overview/stream":                  {show: streamStart},
		"GET " + Prefix + "overview/near":                    {show: showNear},
		"GET " + Prefix + "tenants":                          {show: showTenants},
		"GET " + tenant:                                      {show: ofTenant(showTenant)},
		"GET " + tenant + "/balances":                        {show: ofTenant(showBalances)},
		"GET " + tenant + "/journal":                         {show: ofTenant(showJournal)},
		"GET " + tenant + "/journal.csv":                     {show: ofTenant(sendJournal)},
		"GET " + tenant + "/usage.csv":                       {show: ofTenant(sendUsage)},
		"GET " + tenant + "/lists/{list}":                    {show: sendList},
		"GET " + Prefix + "tenants.csv":                      {show: sendTenants},
		"GET " + tenant + "/statements":                      {show: ofTenant(showStatements)},
		"GET " + tenant + "/statements/{meter}":              {show: ofTenant(showStatements)},
		"GET " + tenant + "/statements/{meter}/{period}":     {show: ofTenant(showStatement)},
		"GET " + tenant + "/statements/{meter}/{period}/csv": {show: sendStatement},
		"GET " + tenant + "/correct/{what}":                  {show: showCorrection, admin: true},
		"POST " + tenant + "/correct/{what}":                 {show: sendCorrection, admin: true},
		"GET " + tenant + "/refusals":                        {show: ofTenant(showRefusals)},
		"GET " + Prefix + "catalogue":                        {show: showCatalogue},
		"GET " + Prefix + "catalogue/shadow":                 {show: showShadows},
		"GET " + Prefix + "catalogue.yaml":                   {show: sendCatalogue, admin: true},
		"GET " + Prefix + "catalogue/edit":                   {show: showCatalogueForm, admin: true},
		"POST " + Prefix + "catalogue/edit":                  {show: sendCatalogueForm, admin: true, formMax: catalogueMax},
		"GET " + Prefix + "events":                           {show: showEvents},
		"GET " + Prefix + "webhooks":                         {show: showWebhooks, admin: true},
		"POST " + Prefix + "webhooks":                        {show: makeWebhook, admin: true},
		"GET " + Prefix + "webhooks/{webhook}":               {show: showWebhook, admin: true},
		"POST " + Prefix + "webhooks/{webhook}/{what}":       {show: changeWebhook, admin: true},
		"GET " + Prefix + "webhooks/{webhook}/{what}":        {show: showWebhook, admin: true}, // a kept form, or a reloaded page
		"GET " + Prefix + "keys":                             {show: showKeys},
		"GET " + Prefix + "audit":                            {show: showAudit},
		"GET " + Prefix + "proof":                            {show: showProof},
		"POST " + Prefix + "proof":                           {show: startVerification, admin: true},
		"GET " + Prefix + "explain":                          {show: showExplain},
		Prefix:                                               {show: showNowhere},
	}
}

// call is one request for a page, with its session.
type call struct {
	*client.API // uses the session's key; nil without a session

	console *Console
	w       http.ResponseWriter
	r       *http.Request
	ctx     context.Context //nolint:containedctx // the request's context: a call lasts as long as its request
	session *session.Session
	key     *access.Key // the session's key
	kept    form        // the fields of the kept form, if the page shows that form again; otherwise nil
	status  int
}

// serve returns the handler of a page.
func (c *Console) serve(p page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		started := c.now()
		call := &call{console: c, w: w, r: r, ctx: r.Context(), status: http.StatusOK}
		c.answer(call, p)
		attrs := []slog.Attr{
			slog.String("method", r.Method), slog.String("route", r.Pattern), slog.Int("status", call.status),
			slog.Int64("duration_us", c.now().Sub(started).Microseconds()), slog.String("remote_addr", r.RemoteAddr),
		}
		if call.key != nil {
			attrs = append(attrs, slog.String("key", call.key.ID))
		}
		if tenant := r.PathValue("tenant"); tenant != "" {
			attrs = append(attrs, slog.String("tenant", tenant))
		}
		c.cfg.Log.LogAttrs(call.ctx, slog.LevelInfo, "console page", attrs...)
	}
}

// answer runs a page. If the page returns an error or panics, answer shows an error page.
func (c *Console) answer(call *call, p page) {
	r := call.r
	defer func() {
		if cause := recover(); cause != nil {
			if cause == http.ErrAbortHandler { //nolint:errorlint // as in net/http, this compares a panic value
				panic(cause)
			}
			c.cfg.Log.LogAttrs(call.ctx, slog.LevelError, "console page failed", slog.Any("error", cause), slog.String("stack", string(debug.Stack())))
			call.fail(&failure{
				status: http.StatusInternalServerError, title: "The page failed", unknown: r.Method == http.MethodPost,
				detail: "The log has the reason. You may send a form again: it takes effect only once.",
			})
		}
	}()
	if err := call.run(p); err != nil {
		call.fail(err)
	}
}

// run opens the session of the call. Then it shows the page, if the session's key may see it.
func (c *call) run(p page) error {
	c.r.Body = http.MaxBytesReader(c.w, c.r.Body, cmp.Or(p.formMax, formMax))
	if p.public {
		return p.show(c)
	}
	if err := c.enter(); err != nil {
		return err
	}
	if c.session == nil {
		return c.askToSignIn()
	}
	proven.Trust(c.w, c.r)
	if c.r.Method == http.MethodPost {
		if err := c.r.ParseForm(); err != nil {
			return badForm(err)
		}
	}
	if c.r.Method == http.MethodPost && !c.session.IsToken(c.r.PostFormValue("token")) {
		return &failure{status: http.StatusForbidden, title: "The form is not from this session", detail: "Nothing was changed. Open the page again and send its form."}
	}
	if p.admin && !c.mayChange() {
		return &failure{status: http.StatusForbidden, title: "This key may not change anything", detail: "Nothing was changed. Corrections need a key with the scope admin; this one has " + c.key.Scopes.String() + "."}
	}
	return p.show(c)
}

// mayChange reports whether the session's key has the scope admin, which corrections need.
func (c *call) mayChange() bool { return c.key != nil && c.key.Scopes.Has(access.Admin) }

// render sends a page. If the page cannot be rendered, render sends nothing and returns the error.
func (c *call) render(status int, content templ.Component) error {
	var out bytes.Buffer
	if err := content.Render(c.ctx, &out); err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	c.status = status
	c.w.WriteHeader(status)
	_, _ = c.w.Write(out.Bytes()) // on an error the browser has closed the connection
	return nil
}

// redirect makes the browser open another path of the console.
func (c *call) redirect(path string) error {
	c.status = http.StatusSeeOther
	if c.partial() {
		c.w.Header().Set("Hx-Redirect", path)
		c.status = http.StatusOK
		c.w.WriteHeader(c.status)
		return nil
	}
	http.Redirect(c.w, c.r, path, c.status)
	return nil
}

// partial reports whether htmx requests a section of a page.
func (c *call) partial() bool { return c.r.Header.Get("Hx-Request") == "true" }

// token returns the token that a form of this session must contain. It returns the empty string without a session.
func (c *call) token() string {
	if c.session == nil {
		return ""
	}
	return c.session.Token()
}

// asset returns the path of an asset, which is a script, a style or a picture.
func (c *call) asset(name string) string { return c.console.assets.Path(name) }
