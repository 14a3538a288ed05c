package link

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/body"
)

const (
	// ExpiresMax bounds the lifetime of a link.
	ExpiresMax = 7 * 24 * time.Hour

	// ExpiresDefault is the lifetime of a link if the request names none. A person looks at a page for about this
	// time.
	ExpiresDefault = time.Hour

	// PerTenant bounds the links to a tenant's pages that keys of the tenant have created, and also those that others
	// have created. It is enough for all visits in a busy hour.
	PerTenant = 200

	// ReturnURLMax bounds a return URL in bytes.
	ReturnURLMax = 2048

	// Prefix is the beginning of the paths of the customers' pages.
	Prefix = "/portal/"
)

// New describes a link that is to be created.
type New struct {
	Tenant    string
	ExpiresIn time.Duration // 0: ExpiresDefault
	ReturnURL string        // empty: no return URL
	Base      string        // scheme and host of the link's URL
}

// Made is a link that was created.
type Made struct {
	URL       string // with the secret
	ExpiresAt time.Time
}

// Link is a link that has not ended.
type Link struct {
	ID        string
	Tenant    string
	ReturnURL string
	ExpiresAt time.Time
}

// Members returns the members of the request body that creates a link.
func Members() []body.Member[New] {
	return []body.Member[New]{
		body.Required("tenant", func(d *body.Document, n *New) { n.Tenant = d.Name() }),
		body.Optional("expires_in_seconds", func(d *body.Document, n *New) {
			n.ExpiresIn = time.Duration(d.Integer(1, int64(ExpiresMax/time.Second))) * time.Second
		}),
		body.Optional("return_url", func(d *body.Document, n *New) { n.ReturnURL = d.Characters(1, ReturnURLMax) }),
	}
}

// check returns the faults of n.
func (n *New) check() (faults body.Faults) {
	if problem := checkURL(n.ReturnURL); problem != "" {
		faults.Add("return_url", problem)
	}
	return faults
}

// checkURL returns the fault of a return URL, or "" if there is no fault.
func checkURL(text string) string {
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	switch {
	case len(text) > ReturnURLMax:
		return fmt.Sprintf("must have at most %d bytes", ReturnURLMax)
	case err != nil, !isWeb(u), u.Opaque != "", strings.ContainsAny(text, " \t\r\n"):
		return "must be an absolute URL with http or https and a host, without user and password"
	}
	return ""
}

// isWeb reports whether u has the scheme http or https and a host, and no user.
func isWeb(u *url.URL) bool {
	return (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil
}

// path returns the path of a link. It contains the id and the secret.
func path(id, secret string) string { return Prefix + id + "/open/" + secret }

// CheckBase returns the fault of a scheme and host for links, or "" if there is no fault.
func CheckBase(text string) string {
	u, err := url.Parse(text)
	if err != nil || !isWeb(u) || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return "must be http:// or https:// and a host, without a path"
	}
	return ""
}
