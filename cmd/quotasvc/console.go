package main

import (
	"net/http"
	"net/netip"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/access/session"
	"github.com/quotasvc/quotasvc/internal/pages/console"
	"github.com/quotasvc/quotasvc/internal/pages/portal/look"
	"github.com/quotasvc/quotasvc/internal/store/claim"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

// openConsole opens the console, unless it is off. If no address is configured for the console, it is served at the
// address of the API.
func (s *service) openConsole(cfg *serviceConfig, db *pgstore.Store, keys *access.Directory, names *claim.Names, client func(*http.Request) netip.Addr) error {
	if cfg.ConsoleListen == consoleOff {
		return nil
	}
	provider, err := cfg.provider(s.log)
	if err != nil {
		return err
	}
	frames, err := look.Ancestors(cfg.ConsoleAncestors)
	if err != nil {
		return err
	}
	pages := console.New(console.Config{
		Provider: provider, ProviderName: cfg.OIDCName, Base: cfg.ConsoleURL,
		API: s.api, Keys: keys, Sessions: session.NewStore(db, s.strangers), Client: client, Ancestors: frames, Once: names, Log: s.log,
	})
	s.drain = pages.Drain
	if cfg.ConsoleListen == "" {
		s.sites = append(s.sites, pages)
		return nil
	}
	s.console = pages
	return nil
}
