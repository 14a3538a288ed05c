package portal

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/access/link"
	"github.com/quotasvc/quotasvc/internal/kit/asset"
	"github.com/quotasvc/quotasvc/internal/kit/proven"
	"github.com/quotasvc/quotasvc/internal/pages/inprocess"
	"github.com/quotasvc/quotasvc/internal/pages/portal/look"
)

const (
	assetPrefix = link.Prefix + "_/assets/" // no link has the id _

	cookiePlain  = "quotasvc_portal"
	cookieSecure = "__Secure-quotasvc_portal" // browsers accept it only over TLS

	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'none'; base-uri 'none'; "
)

//go:embed assets/*.js assets/*.css
var assetFiles embed.FS

// Config configures a Portal. Every field is required, except Embedded.
type Config struct {
	// API is the handler of the API, which answers the calls of the pages.
	API http.Handler

	// Links opens and checks the links.
	Links *link.Store

	// Client returns the address of the client that sent a request.
	Client func(*http.Request) netip.Addr

	// Look is the appearance of the pages, as the operator has configured it.
	Look *look.Look

	// Ancestors is the directive frame-ancestors of the Content-Security-Policy. Embedded is true if this directive
	// lets a site show the pages in a frame.
	Ancestors string
	Embedded  bool

	// Log receives one line for each page.
	Log *slog.Logger
}

// Portal serves the pages of tenants.
type Portal struct {
	cfg     Config
	assets  *asset.Set
	locales *locales
	handler http.Handler
	now     func() time.Time
}

// New returns a portal. It starts no goroutine.
func New(cfg Config) (*Portal, error) {
	assets, err := asset.New(assetPrefix, assetFiles, "assets")
	if err != nil {
		return nil, err
	}
	languages, err := openLocales()
	if err != nil {
		return nil, err
	}
	assets.Add("theme.css", "text/css; charset=utf-8", cfg.Look.Style)
	if cfg.Look.Logo != nil {
		ext := ".png"
		if cfg.Look.LogoType != "image/png" {
			ext = ".svg"
		}
		assets.Add("logo"+ext, cfg.Look.LogoType, cfg.Look.Logo)
	}
	p := &Portal{cfg: cfg, assets: assets, locales: languages, now: time.Now}
	mux := http.NewServeMux()
	const at = "GET " + link.Prefix + "{link}/"
	mux.HandleFunc(at+"open/{secret}", p.serve(enter))
	mux.HandleFunc(at+"{$}", p.serve(inside(showOverview)))
	mux.HandleFunc(at+"meters", p.serve(inside(showMeters)))
	mux.HandleFunc(at+"statements/{meter}", p.serve(inside(showStatements)))
	mux.HandleFunc(at+"statements/{meter}/{period}", p.serve(inside(showStatement)))
	mux.HandleFunc("GET "+assetPrefix+"{name}", assets.Serve)
	mux.HandleFunc(link.Prefix, p.serve(func(*visit) error { return errNowhere }))
	p.handler = mux
	return p, nil
}

// Has reports whether a path belongs to the portal.
func (p *Portal) Has(path string) bool { return strings.HasPrefix(path, link.Prefix) }

// ServeHTTP serves a request for a page.
func (p *Portal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy+p.cfg.Ancestors)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Robots-Tag", "noindex")
	proven.Doubt(w, r)
	p.handler.ServeHTTP(w, r)
}

// visit is one request for a page of the portal.
type visit struct {
	*client.API // may read the tenant of the link; nil without a link

	portal *Portal
	w      http.ResponseWriter
	r      *http.Request
	link   *link.Link // nil: no link was opened
	lang   *locale
	status int
}

var (
	errNowhere = errors.New("there is no such page")
	errEnded   = errors.New("the link has ended")
)

// serve returns the handler of a page.
func (p *Portal) serve(show func(*visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		started := p.now()
		v := &visit{portal: p, w: w, r: r, lang: p.locales.in(r.Header.Get("Accept-Language")), status: http.StatusOK}
		p.answer(v, show)
		attrs := []slog.Attr{ // the path may contain a secret; the route does not
			slog.String("route", r.Pattern), slog.Int("status", v.status), slog.Int64("duration_us", p.now().Sub(started).Microseconds()), slog.String("remote_addr", r.RemoteAddr),
		}
		if v.link != nil {
			attrs = append(attrs, slog.String("portal_session", v.link.ID), slog.String("tenant", v.link.Tenant))
		}
		p.cfg.Log.LogAttrs(r.Context(), slog.LevelInfo, "portal page", attrs...)
	}
}

// answer runs a page. If the page returns an error or panics, answer shows an error page.
func (p *Portal) answer(v *visit, show func(*visit) error) {
	defer func() {
		if cause := recover(); cause != nil {
			if cause == http.ErrAbortHandler { //nolint:errorlint // as in net/http, this compares a panic value
				panic(cause)
			}
			p.cfg.Log.LogAttrs(v.r.Context(), slog.LevelError, "portal page failed", slog.Any("error", cause), slog.String("stack", string(debug.Stack())))
			v.fail(fmt.Errorf("panic: %v", cause))
		}
	}()
	if err := show(v); err != nil {
		v.fail(err)
	}
}

// fail shows an error page. The page has no details, because they belong to the operator.
func (v *visit) fail(err error) {
	status, key := http.StatusServiceUnavailable, "problem"
	refusal, refused := errors.AsType[*access.Refusal](err)
	switch e := client.AsError(err); {
	case refused:
		status, key = http.StatusTooManyRequests, "busy"
		v.w.Header().Set("Retry-After", refusal.Seconds())
	case errors.Is(err, errEnded), errors.Is(err, link.ErrNone):
		status, key = http.StatusGone, "ended"
	case errors.Is(err, errNowhere), e != nil && (e.Status == http.StatusNotFound || e.Status == http.StatusBadRequest || e.Status == http.StatusForbidden):
		status, key = http.StatusNotFound, "none"
	default:
		v.portal.cfg.Log.LogAttrs(v.r.Context(), slog.LevelWarn, "portal page not shown", slog.String("error", err.Error()), slog.String("route", v.r.Pattern))
	}
	if failed := v.render(status, failurePage(v, key)); failed != nil {
		v.status = http.StatusInternalServerError
		http.Error(v.w, v.say("problem"), v.status)
	}
}

// render sends a page. If the page cannot be rendered, render sends nothing and returns the error.
func (v *visit) render(status int, content templ.Component) error {
	var out bytes.Buffer
	if err := content.Render(v.r.Context(), &out); err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", v.lang.tag)
	h.Set("Vary", "Accept-Language, Cookie")
	v.status = status
	v.w.WriteHeader(status)
	_, _ = v.w.Write(out.Bytes()) // on an error the browser has closed the connection
	return nil
}

// say returns a message in the visitor's language. See locale.say.
func (v *visit) say(key string, places ...string) string { return v.lang.say(key, places...) }

// asset returns the path of an asset, which is a script, a style or a picture.
func (v *visit) asset(name string) string { return v.portal.assets.Path(name) }

// logo returns the path of the logo. It returns the empty string if the operator has configured no logo.
func (v *visit) logo() string {
	if path := v.asset("logo.svg"); path != "" {
		return path
	}
	return v.asset("logo.png")
}

// inside returns a handler that shows a page only if the browser sends a cookie with the secret of the link. The page
// gets the tenant of the link.
func inside(show func(*visit, *overview) error) func(*visit) error {
	return func(v *visit) error {
		sent, err := v.r.Cookie(v.cookie().Name)
		if err != nil {
			return errEnded
		}
		if err := v.open(sent.Value); err != nil {
			return err
		}
		v.API, err = inprocess.As(v.portal.cfg.API, v.r, &access.Key{ID: "portal-" + v.link.ID, Name: "portal", Scopes: access.Read, Tenant: v.link.Tenant})
		if err != nil {
			return err
		}
		o, err := v.read()
		if err != nil {
			return err
		}
		return show(v, o)
	}
}

// open reads the link in the path, if secret is the link's secret.
func (v *visit) open(secret string) error {
	found, err := v.portal.cfg.Links.Open(v.r.Context(), v.portal.cfg.Client(v.r), v.r.PathValue("link"), secret)
	if v.link = found; err == nil {
		proven.Trust(v.w, v.r)
	}
	return err
}

// cookie returns the cookie of the link, without a value. In a frame on another site, a browser sends only cookies
// with SameSite=None, which need TLS. Such a cookie is partitioned, so that a frame on a different site does not get
// it.
func (v *visit) cookie() *http.Cookie {
	c := &http.Cookie{Name: cookiePlain, Path: v.path(), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: inprocess.Secure(v.r)}
	if c.Secure {
		c.Name = cookieSecure
		if v.portal.cfg.Embedded {
			c.SameSite, c.Partitioned = http.SameSiteNoneMode, true
		}
	}
	return c
}

// enter exchanges the secret of a link for a cookie, and leads the browser to the link's first page.
func enter(v *visit) error {
	secret := v.r.PathValue("secret")
	if err := v.open(secret); err != nil {
		return err
	}
	c := v.cookie()
	c.Value, c.MaxAge = secret, max(1, int(v.link.ExpiresAt.Sub(v.portal.now())/time.Second))
	http.SetCookie(v.w, c)
	if c.SameSite == http.SameSiteStrictMode && v.r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		// Another site opened the link. A redirect would belong to the same navigation, and the browser would not send
		// the cookie. Therefore the answer is a page that starts a new navigation. The page replaces the link in the
		// browser's history.
		return v.render(http.StatusOK, enterPage(v))
	}
	v.status = http.StatusSeeOther
	http.Redirect(v.w, v.r, v.path(), v.status)
	return nil
}
