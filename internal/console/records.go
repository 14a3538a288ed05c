package console

import (
	"net/http"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// perRecords is how many lines a page of keys, audit or events has.
const perRecords = 50

// cursorOf returns the cursor of the next page; empty on the last one.
func cursorOf(c *string) string {
	if c == nil {
		return ""
	}
	return *c
}

// keysView is a page of keys.
type keysView struct{ page *client.KeyList }

// showKeys lists keys, without their secrets.
func showKeys(c *call) error {
	list, err := c.ListKeys(c.ctx, client.ListKeysQuery{Limit: perRecords, Cursor: c.r.URL.Query().Get("cursor")})
	if err != nil {
		return err
	}
	return c.render(http.StatusOK, keysPage(c, keysView{list}))
}

// keyTime writes when something happened to a key.
func keyTime(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return stamp(*t, time.UTC)
}

// auditView is a page of the audit log.
type auditView struct {
	filter   client.ListAuditQuery
	from, to string // as they were entered, in UTC
	page     *client.AuditList
}

// showAudit shows who changed what.
func showAudit(c *call) error {
	q := c.r.URL.Query()
	v := auditView{from: q.Get("from"), to: q.Get("to"), filter: client.ListAuditQuery{
		Tenant: q.Get("tenant"), Actor: q.Get("actor"), Action: q.Get("action"), Limit: perRecords, Cursor: q.Get("cursor"),
	}}
	var err error
	if v.filter.From, err = dayIn("from", v.from, time.UTC); err != nil {
		return err
	}
	if v.filter.To, err = dayIn("to", v.to, time.UTC); err != nil {
		return err
	}
	if v.page, err = c.ListAudit(c.ctx, v.filter); err != nil {
		return err
	}
	return c.render(http.StatusOK, auditPage(c, v))
}

// link returns the path of the audit log with the same filters.
func (v *auditView) link(cursor string) string {
	f := v.filter
	return with(path("audit"), "tenant", f.Tenant, "actor", f.Actor, "action", f.Action, "from", v.from, "to", v.to, "cursor", cursor)
}

// eventsView is a page of events.
type eventsView struct {
	filter client.ListEventsQuery
	page   *client.EventList
}

// showEvents shows what happened, the oldest first, as webhooks are told.
func showEvents(c *call) error {
	q := c.r.URL.Query()
	v := eventsView{filter: client.ListEventsQuery{Tenant: q.Get("tenant"), Type: q.Get("type"), After: q.Get("after"), Limit: perRecords, Cursor: q.Get("cursor")}}
	var err error
	if v.page, err = c.ListEvents(c.ctx, v.filter); err != nil {
		return err
	}
	return c.render(http.StatusOK, eventsPage(c, v))
}

// tenantOf returns the tenant of an event; empty: it is of the service.
func tenantOf(e *client.Event) string {
	if e.Tenant == nil {
		return ""
	}
	return *e.Tenant
}

// sealsView is what proves the journal.
type sealsView struct {
	seals part[*client.SealList]
	run   part[*client.Verification] // the one that was asked for
	asked string
}

// showProof shows the seals, and a verification that was started here.
func showProof(c *call) error {
	v := sealsView{seals: take(c.ListSeals(c.ctx, client.ListSealsQuery{Limit: perRecords})), asked: c.r.URL.Query().Get("verification")}
	if v.asked != "" {
		v.run = take(c.GetVerification(c.ctx, v.asked))
	}
	if c.partial() {
		return c.render(http.StatusOK, verification(v))
	}
	return c.render(http.StatusOK, proofPage(c, v))
}

// startVerification compares the journal with what it should give, of one tenant or of all.
func startVerification(c *call) error {
	run, err := c.StartVerification(c.ctx, client.VerificationRequest{Tenant: c.r.PostForm.Get("tenant")})
	if err != nil {
		return err
	}
	return c.redirect(with(path("proof"), "verification", run.VerificationID))
}
