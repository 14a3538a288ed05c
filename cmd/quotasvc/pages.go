package main

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/quotasvc/quotasvc/internal/access/link"
	"github.com/quotasvc/quotasvc/internal/pages/portal"
	"github.com/quotasvc/quotasvc/internal/pages/portal/look"
)

// pagesConfig has the settings of the HTML pages: the customer's pages (portal) and the console.
type pagesConfig struct {
	PortalURL        string   `name:"portal-url" env:"QUOTASVC_PORTAL_URL" placeholder:"URL" group:"Pages" help:"Scheme and host at which browsers find this service, such as https://quota.example.com: links to a tenant's page begin with them. Default: where the request for the link was sent."`
	PortalAncestors  []string `name:"portal-frame-ancestors" env:"QUOTASVC_PORTAL_FRAME_ANCESTORS" placeholder:"ORIGIN,..." group:"Pages" help:"Origins whose pages may show a tenant's page in a frame, such as https://app.example.com or https://*.example.com. Default: none."`
	PortalName       string   `name:"portal-name" env:"QUOTASVC_PORTAL_NAME" placeholder:"TEXT" group:"Pages" help:"Name of the product or company on a tenant's page: its title, and the text of the logo."`
	PortalTheme      string   `name:"portal-theme" env:"QUOTASVC_PORTAL_THEME" placeholder:"NAME=#RRGGBB,..." group:"Pages" help:"Colours of a tenant's page: ground, text and accent, and the same with -dark. Colours that could not be read on their ground are refused."`
	PortalLogo       string   `name:"portal-logo" env:"QUOTASVC_PORTAL_LOGO" placeholder:"FILE" group:"Pages" help:"Logo of a tenant's page: PNG or SVG, at most 65536 bytes. It is read at start."`
	ConsoleAncestors []string `name:"console-frame-ancestors" env:"QUOTASVC_CONSOLE_FRAME_ANCESTORS" placeholder:"ORIGIN,..." group:"Pages" help:"Origins whose pages may show the console in a frame. They must belong to the console's site, or browsers do not send its cookie. Default: none."`
}

func (c *pagesConfig) check(check *checker) {
	if c.PortalURL != "" {
		problem := link.CheckBase(c.PortalURL)
		check.require(problem == "", settingName("portal-url"), "%s", problem)
	}
	_, err := look.New(c.PortalName, c.PortalTheme, c.PortalLogo)
	check.require(err == nil, settingName("portal-name")+", -theme, -logo", "%v", err)
	_, err = look.Ancestors(c.PortalAncestors)
	check.require(err == nil, settingName("portal-frame-ancestors"), "%v", err)
	_, err = look.Ancestors(c.ConsoleAncestors)
	check.require(err == nil, settingName("console-frame-ancestors"), "%v", err)
}

// openPortal opens the customer's pages at the address of the API.
func (s *service) openPortal(cfg *serviceConfig, links *link.Store, client func(*http.Request) netip.Addr) error {
	shown, err := look.New(cfg.PortalName, cfg.PortalTheme, cfg.PortalLogo)
	if err != nil {
		return err
	}
	frames, err := look.Ancestors(cfg.PortalAncestors)
	if err != nil {
		return err
	}
	pages, err := portal.New(portal.Config{
		API: s.api, Links: links, Client: client, Look: shown, Ancestors: frames, Embedded: len(cfg.PortalAncestors) > 0, Log: s.log,
	})
	if err != nil {
		return err
	}
	s.sites = append(s.sites, pages)
	return nil
}

// site serves HTML pages. Has reports whether a path belongs to the site.
type site interface {
	http.Handler
	Has(path string) bool
}

// beside returns a handler that passes each request to the site to which the path belongs. If no site has the path,
// it passes the request to the API.
func beside(api http.Handler, sites ...site) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/") { // the most frequent requests are decided first
			api.ServeHTTP(w, r)
			return
		}
		for _, s := range sites {
			if s.Has(r.URL.Path) {
				s.ServeHTTP(w, r)
				return
			}
		}
		api.ServeHTTP(w, r)
	})
}
