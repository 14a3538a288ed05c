package main

import (
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/quotasvc/quotasvc/internal/access/link"
	"github.com/quotasvc/quotasvc/internal/access/session"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/pages/console/oidc"
)

// oidcConfig has the settings with which people can sign in to the console at an identity provider.
type oidcConfig struct {
	OIDCIssuer           string        `name:"oidc-issuer" env:"QUOTASVC_OIDC_ISSUER" placeholder:"URL" group:"Pages" help:"Identity provider (OpenID Connect) with which people sign in to the console. Default: none, keys only."`
	OIDCClientID         string        `name:"oidc-client-id" env:"QUOTASVC_OIDC_CLIENT_ID" placeholder:"ID" group:"Pages" help:"The provider's client id of this service."`
	OIDCClientSecretFile string        `name:"oidc-client-secret-file" env:"QUOTASVC_OIDC_CLIENT_SECRET_FILE" placeholder:"FILE" group:"Pages" help:"File with the client's secret, instead of --oidc-client-secret."`
	OIDCClientSecret     secret        `name:"oidc-client-secret" env:"QUOTASVC_OIDC_CLIENT_SECRET" placeholder:"SECRET" group:"Pages" help:"The client's secret."`
	OIDCScopes           []string      `name:"oidc-scopes" env:"QUOTASVC_OIDC_SCOPES" default:"profile,email" placeholder:"SCOPE,..." group:"Pages" help:"Scopes to ask the provider for, besides openid."`
	OIDCRights           []string      `name:"oidc-rights" env:"QUOTASVC_OIDC_RIGHTS" placeholder:"RULE,..." group:"Pages" help:"Who may do what, such as groups=support->read, groups=quota->admin, email=ada@example.com->read+use@acme and org=*->read@* (the tenant that the claim names). Nobody else gets in."`
	OIDCName             string        `name:"oidc-name" env:"QUOTASVC_OIDC_NAME" default:"single sign-on" placeholder:"TEXT" group:"Pages" help:"What the sign-in page calls the provider."`
	OIDCSession          time.Duration `name:"oidc-session" env:"QUOTASVC_OIDC_SESSION" default:"8h" group:"Pages" help:"How long a person stays signed in, 1m to 12h. During this time the service does not check with the provider whether the person still has the rights."`
	ConsoleURL           string        `name:"console-url" env:"QUOTASVC_CONSOLE_URL" placeholder:"URL" group:"Pages" help:"Scheme and host at which browsers find the console: the provider sends people back to /console/oidc/callback there. Default: as their requests say."`

	rules *oidc.Rules // parsed from OIDCRights when the settings are checked
}

func (c *oidcConfig) check(check *checker) {
	if c.ConsoleURL != "" {
		problem := link.CheckBase(c.ConsoleURL)
		check.require(problem == "", settingName("console-url"), "%s", problem)
	}
	readSecret(check, "oidc-client-secret", &c.OIDCClientSecret, c.OIDCClientSecretFile)
	if c.OIDCIssuer == "" {
		alone := c.OIDCClientID == "" && c.OIDCClientSecret == "" && len(c.OIDCRights) == 0
		check.require(alone, settingName("oidc-issuer"), "is needed beside the other settings of OIDC")
		return
	}
	u, err := url.Parse(c.OIDCIssuer)
	check.require(err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())), settingName("oidc-issuer"),
		"must be a URL with https; http is for providers on this machine only")
	check.require(c.OIDCClientID != "", settingName("oidc-client-id"), "is required beside %s", settingName("oidc-issuer"))
	check.require(c.OIDCClientSecret != "" || c.OIDCClientSecretFile != "", settingName("oidc-client-secret"), "is required beside %s", settingName("oidc-issuer"))
	c.rules, err = oidc.ParseRules(c.OIDCRights)
	check.require(err == nil, settingName("oidc-rights"), "%v", err)
	check.require(body.IsText(c.OIDCName, 1, 64), settingName("oidc-name"), "%s", body.MustBeCharacters(1, 64))
	check.require(c.OIDCSession >= time.Minute && c.OIDCSession <= session.Lifetime, settingName("oidc-session"), "is %s; must be between 1m and 12h", c.OIDCSession)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// provider returns the identity provider. It returns nil if no provider is configured. It sends no request to the
// provider, so the service starts even if the provider does not answer.
func (c *oidcConfig) provider(log *slog.Logger) (*oidc.Provider, error) {
	if c.OIDCIssuer == "" {
		return nil, nil
	}
	return oidc.New(oidc.Config{
		Issuer: c.OIDCIssuer, ClientID: c.OIDCClientID, ClientSecret: string(c.OIDCClientSecret), Scopes: c.OIDCScopes, Rules: c.rules, SessionMax: c.OIDCSession, Log: log,
	})
}
