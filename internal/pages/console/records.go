package console

import (
	"net/http"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// perRecords is the number of lines on a page of API keys, of audit log lines or of events.
const perRecords = 50

// orEmpty returns a text that may be absent, such as the cursor of the next page. It returns the empty string for nil.
func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// keysView is the data of a page of API keys.
type keysView struct{ page *client.KeyList }

// showKeys shows a page of API keys, without their secrets.
func showKeys(c *call) error {
	list, err := c.ListKeys(c.ctx, client.ListKeysQuery{Limit: perRecords, Cursor: c.r.URL.Query().Get("cursor")})
	if err != nil {
		return err
	}
	return c.render(http.StatusOK, keysPage(c, keysView{list}))
}

// keyTime returns a time of a key as text. It returns "never" if the key has no such time.
func keyTime(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return stamp(*t, time.UTC)
}

// auditView is the data of a page of the audit log.
type auditView struct {
	filter   client.ListAuditQuery
	from, to string // as entered, in UTC
	page     *client.AuditList
}

// showAudit shows a page of the audit log: changes, and the people and programs that made them.
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

// link returns the path of the audit log with the same filters. The lines start at the cursor.
func (v *auditView) link(cursor string) string {
	f := v.filter
	return with(path("audit"), "tenant", f.Tenant, "actor", f.Actor, "action", f.Action, "from", v.from, "to", v.to, "cursor", cursor)
}

// eventsView is the data of a page of events.
type eventsView struct {
	filter client.ListEventsQuery
	page   *client.EventList
}

// showEvents shows a page of events, the oldest first, with the data that webhooks receive.
func showEvents(c *call) error {
	q := c.r.URL.Query()
	v := eventsView{filter: client.ListEventsQuery{Tenant: q.Get("tenant"), Type: q.Get("type"), After: q.Get("after"), Limit: perRecords, Cursor: q.Get("cursor")}}
	var err error
	if v.page, err = c.ListEvents(c.ctx, v.filter); err != nil {
		return err
	}
	return c.render(http.StatusOK, eventsPage(c, v))
}

// proofView is the data of the page with verifications and seals, which prove that the journal was not changed.
type proofView struct {
	runs   part[*client.VerificationList]
	cursor string // cursor of the page of verifications; empty: the first page
	seals  part[*client.SealList]
	run    part[*client.Verification] // the verification in the URL
	asked  string
}

// showProof shows the verifications that clients started, the result of the verification in the URL, and the seals.
func showProof(c *call) error {
	q := c.r.URL.Query()
	v := &proofView{asked: q.Get("verification"), cursor: q.Get("cursor")}
	if v.asked != "" && c.mayChange() {
		v.run = take(c.GetVerification(c.ctx, v.asked))
	}
	if c.partial() && v.run.value != nil && v.run.value.Status == client.VerificationStatusRunning {
		return c.render(http.StatusOK, verification(v))
	}
	if c.mayChange() {
		v.runs = take(c.ListVerifications(c.ctx, client.ListVerificationsQuery{Limit: perProof, Cursor: v.cursor}))
	}
	if c.partial() {
		return c.render(http.StatusOK, verificationEnded(v))
	}
	v.seals = take(c.ListSeals(c.ctx, client.ListSealsQuery{Limit: perProof, Cursor: q.Get("seals")}))
	return c.render(http.StatusOK, proofPage(c, v))
}

// perProof is the number of verifications and of seals on a page. Each seal is for one day, so a page of seals covers
// two weeks.
const perProof = 14

// firstOf returns a note if the page shows only a part of a list. Otherwise it returns the empty string.
func firstOf(shown, all int64) string {
	if shown >= all {
		return ""
	}
	return ": the first " + num(shown) + " of " + num(all)
}

// second returns a text with an instant in UTC, to the second. It does not name the zone: the table's heading does.
func second(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// startVerification starts a verification of one tenant or of all tenants.
func startVerification(c *call) error {
	run, err := c.StartVerification(c.ctx, client.VerificationRequest{Tenant: c.r.PostForm.Get("tenant")})
	if err != nil {
		return err
	}
	return c.redirect(with(path("proof"), "verification", run.VerificationID))
}
