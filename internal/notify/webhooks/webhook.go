package webhooks

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

const (
	// WebhooksMax bounds the webhooks, because every instance serves a queue for each webhook.
	WebhooksMax = 500

	// WebhooksPerTenant bounds the webhooks that the keys of one tenant have created.
	WebhooksPerTenant = 50

	// URLMax bounds a URL in bytes.
	URLMax = 2048

	// OverlapMax bounds the time for which old secrets stay valid after a rotation.
	OverlapMax = 7 * 24 * time.Hour

	secretPrefix = "whsec_"
	secretBytes  = 32 // Standard Webhooks allows 24 to 64
	idPrefix     = "wh_"
)

// The states of a webhook. A paused webhook receives no events, and no deliveries to it are stored. A later replay
// can deliver these events.
const (
	Active = "active"
	Paused = "paused"
)

// Webhook describes a receiver of events.
type Webhook struct {
	ID        string
	URL       string
	Types     []string
	Tenant    string // empty: events of all tenants, and events that concern no single tenant
	Status    string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Change describes a new webhook, or the changes of an existing webhook.
type Change struct {
	URL    *string
	Types  []string // nil: unchanged
	Tenant string   // only for a new webhook
	Status *string
}

// newID returns a new id. The id is also the name of a queue of River, so it has only small letters, digits and _.
func newID() string { return idPrefix + strings.ToLower(rand.Text()) }

func newSecret() []byte {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // Read never returns an error: it ends the process instead
	return secret
}

// shown returns a secret as text, in the form in which receivers are configured.
func shown(secret []byte) string { return secretPrefix + base64.StdEncoding.EncodeToString(secret) }

// Members returns the members of the request body that creates a webhook.
func Members() []body.Member[Change] {
	return []body.Member[Change]{
		body.Required("url", readURL),
		body.Required("types", readTypes),
		body.Optional("tenant", func(d *body.Document, c *Change) { c.Tenant = d.Name() }),
		body.Optional("status", readStatus),
	}
}

// PatchMembers returns the members of the request body that changes a webhook.
func PatchMembers() []body.Member[Change] {
	return []body.Member[Change]{
		body.Optional("url", readURL),
		body.Optional("types", readTypes),
		body.Optional("status", readStatus),
	}
}

// Replay is the time range of the events that are delivered again: From is inclusive, and To is exclusive.
type Replay struct{ From, To time.Time }

// ReplayMembers returns the members of the request body that starts a replay.
func ReplayMembers() []body.Member[Replay] {
	return []body.Member[Replay]{
		body.Required("from", func(d *body.Document, r *Replay) { r.From = d.Instant() }),
		body.Optional("to", func(d *body.Document, r *Replay) { r.To = d.Instant() }),
	}
}

func readURL(d *body.Document, c *Change) {
	c.URL = new(d.Characters(1, URLMax))
}

func readTypes(d *body.Document, c *Change) {
	c.Types = []string{}
	body.ReadList(d, &c.Types, 1, len(events.Types()), func(d *body.Document, t *string) { *t = d.Word(events.Types()...) })
}

func readStatus(d *body.Document, c *Change) {
	c.Status = new(d.Word(Active, Paused))
}

// check returns the faults of c.
func (c *Change) check(guard *Guard) (faults body.Faults) {
	if c.URL != nil {
		if problem := checkURL(*c.URL, guard); problem != "" {
			faults.Add("url", problem)
		}
	}
	if c.Types != nil {
		for i, t := range c.Types {
			if slices.Contains(c.Types[:i], t) {
				faults.Add(fmt.Sprintf("types[%d]", i), "must appear once")
			}
		}
	}
	if c.Tenant != "" && !bound.Name(c.Tenant) {
		faults.Add("tenant", bound.MustBeName)
	}
	return faults
}

// checkURL returns the fault of a URL, or "" if there is no fault. It does not resolve the host name, which is
// resolved in each call of the receiver.
func checkURL(text string, guard *Guard) string {
	const must = "must be an absolute URL with http or https and a host, without user, password and fragment"
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.Hostname() == "", u.User != nil, u.Fragment != "", u.Opaque != "":
		return must
	case len(text) > URLMax:
		return fmt.Sprintf("must have at most %d bytes", URLMax)
	case strings.ContainsAny(text, " \t\r\n"):
		return must
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		if err := guard.Permit(ip); err != nil {
			return err.Error()
		}
	}
	if host := strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")); (host == "localhost" || strings.HasSuffix(host, ".localhost")) && !guard.AllowPrivate {
		return errPrivate.Error()
	}
	return ""
}

// facts has the fields of a webhook that a line of the audit log shows.
type facts struct {
	ID     string   `json:"webhook_id"`
	URL    string   `json:"url"`
	Types  []string `json:"types"`
	Tenant string   `json:"tenant,omitzero"`
	Status string   `json:"status"`
}

// line returns the line of the audit log for a change of a webhook. The arguments `before` and `after` may be nil.
func line(actor *auditlog.Actor, action string, before, after *Webhook) auditlog.Line {
	l := auditlog.Line{Actor: actor, Action: action}
	for _, side := range []struct {
		w  *Webhook
		to *any
	}{{before, &l.Before}, {after, &l.After}} {
		if w := side.w; w != nil {
			*side.to = facts{w.ID, w.URL, w.Types, w.Tenant, w.Status}
			l.Object = auditlog.Object{Kind: "webhook", ID: w.ID, Tenant: w.Tenant}
		}
	}
	return l
}
