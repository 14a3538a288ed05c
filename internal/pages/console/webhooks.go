package console

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// eventTypes returns the types of events that a webhook can receive, in the order in which forms show them.
func eventTypes() []client.EventType {
	return []client.EventType{
		client.EventTypeBalanceThresholdReached, client.EventTypeBalanceExhausted, client.EventTypeBalanceGrantsNearLimit, client.EventTypeGrantCreated,
		client.EventTypeGrantExpiring, client.EventTypeGrantExpired, client.EventTypeHoldExpired, client.EventTypePeriodOpened, client.EventTypePlanChanged, client.EventTypeTenantSuspended,
		client.EventTypeLimitRejectionsHigh, client.EventTypeVerifyDrift,
	}
}

// deliveryStates returns the states by which deliveries can be filtered.
func deliveryStates() []client.DeliveryStatus {
	return []client.DeliveryStatus{client.DeliveryStatusPending, client.DeliveryStatusDelivered, client.DeliveryStatusDead, client.DeliveryStatusSkipped}
}

// webhooksView is the data of a page with a list of webhooks.
type webhooksView struct {
	page    *client.WebhookEndpointList
	once    string   // key of the form for a new webhook (see call.once)
	given   form     // values in the form for a new webhook
	problem *failure // why the form was refused
	kept    bool
}

// showWebhooks shows a page of webhooks, without their secrets.
func showWebhooks(c *call) error {
	return c.listWebhooks(http.StatusOK, webhooksView{given: c.kept, kept: c.kept != nil})
}

func (c *call) listWebhooks(status int, v webhooksView) error {
	v.once = "console-" + rand.Text()
	var err error
	if v.page, err = c.ListWebhooks(c.ctx, client.ListWebhooksQuery{Limit: perRecords, Cursor: c.r.URL.Query().Get("cursor")}); err != nil {
		return err
	}
	return c.render(status, webhooksPage(c, v))
}

// wants reports whether the form for a new webhook selects events of type t.
func (v *webhooksView) wants(t client.EventType) bool {
	return slices.Contains(v.given["types"], string(t))
}

// makeWebhook creates a webhook and shows its secret, which is shown only this time.
func makeWebhook(c *call) error {
	v := webhooksView{given: form(c.r.PostForm)}
	request := client.WebhookRequest{URL: strings.TrimSpace(v.given.get("url")), Tenant: strings.TrimSpace(v.given.get("tenant"))}
	for _, t := range v.given["types"] {
		request.Types = append(request.Types, client.EventType(t))
	}
	var made *client.NewWebhookEndpoint
	err := c.once(v.given.get("once"), func() (err error) {
		made, err = c.CreateWebhook(c.ctx, request)
		return err
	})
	if err != nil {
		v.problem = explain(err)
		return c.listWebhooks(v.problem.status, v)
	}
	return c.render(http.StatusOK, webhookSecretPage(c, made, "The webhook is created."))
}

// webhookView is the data of the page of one webhook.
type webhookView struct {
	*client.WebhookEndpoint

	once       string // key of the forms on this page (see call.once)
	status     string // the filter of the deliveries; empty: all deliveries
	deliveries part[*client.DeliveryList]
	cursor     string

	problem *failure
	test    *client.WebhookTest
	replay  *client.WebhookReplay
	rotated *client.NewWebhookEndpoint
	done    string // a sentence that says what was done
	from    string // start of the time range for a replay, as entered
	to      string
}

// readWebhook reads the webhook in the path.
func (c *call) readWebhook() (*webhookView, error) {
	w, err := c.GetWebhook(c.ctx, c.r.PathValue("webhook"))
	if err != nil {
		return nil, err
	}
	q := c.r.URL.Query()
	v := &webhookView{WebhookEndpoint: w, once: "console-" + rand.Text(), status: q.Get("status"), cursor: q.Get("cursor")}
	return v, nil
}

// showWebhook shows a webhook and its deliveries.
func showWebhook(c *call) error {
	v, err := c.readWebhook()
	if err != nil {
		return err
	}
	if c.kept != nil {
		v.from, v.to = c.kept.get("from"), c.kept.get("to")
		v.done = "Your session had ended. Nothing was changed, and your input is still here."
	}
	return c.showDeliveries(http.StatusOK, v)
}

// showDeliveries shows the page of a webhook. If htmx requested a section, it shows only the deliveries.
func (c *call) showDeliveries(status int, v *webhookView) error {
	v.deliveries = take(c.ListDeliveries(c.ctx, v.WebhookID, client.ListDeliveriesQuery{Status: v.status, Limit: perRecords, Cursor: v.cursor}))
	if c.partial() {
		return c.render(status, deliveries(v))
	}
	return c.render(status, webhookPage(c, v))
}

// link returns the path of the webhook's page with a filter of the deliveries. The deliveries start at the cursor.
func (v *webhookView) link(status, cursor string) string {
	return with(path("webhooks", v.WebhookID), "status", status, "cursor", cursor)
}

// changeWebhook carries out the action of the button that was pressed.
func changeWebhook(c *call) error {
	v, err := c.readWebhook()
	if err != nil {
		return err
	}
	f, what := form(c.r.PostForm), c.r.PathValue("what")
	act := v.actions(c, f)[what]
	if act == nil {
		return showNowhere(c)
	}
	err = c.once(f.get("once"), act)
	switch {
	case err == nil && what == "delete":
		return c.redirect(path("webhooks"))
	case err == nil && what == "rotate":
		return c.render(http.StatusOK, webhookSecretPage(c, v.rotated, v.done))
	}
	status := http.StatusOK
	if err != nil {
		v.problem = explain(err)
		status = v.problem.status
	}
	return c.showDeliveries(status, v)
}

// actions returns the actions of the page's buttons, keyed by their names in the path.
func (v *webhookView) actions(c *call, f form) map[string]func() error {
	return map[string]func() error{
		"test": func() (err error) { v.test, err = c.TestWebhook(c.ctx, v.WebhookID); return err },
		"pause": func() error {
			return v.setStatus(c, client.WebhookStatusPaused, "The webhook is paused. Pending deliveries are skipped.")
		},
		"enable": func() error {
			return v.setStatus(c, client.WebhookStatusActive, "The webhook is enabled. To send the events of the pause, deliver them again.")
		},
		"replay": func() error {
			v.from, v.to = f.get("from"), f.get("to")
			return v.deliverAgain(c)
		},
		"delete": func() error { return c.DeleteWebhook(c.ctx, v.WebhookID) },
		"rotate": func() error { return v.rotate(c, f.get("overlap") != "") },
	}
}

func (v *webhookView) setStatus(c *call, status client.WebhookStatus, done string) error {
	got, err := c.PatchWebhook(c.ctx, v.WebhookID, client.WebhookPatch{Status: status})
	if err == nil {
		v.WebhookEndpoint, v.done = got, done
	}
	return err
}

// deliverAgain replays the events in the time range of the form, which is in UTC.
func (v *webhookView) deliverAgain(c *call) error {
	from, err := dayIn("from", v.from, time.UTC)
	if err != nil {
		return err
	}
	to, err := dayIn("to", v.to, time.UTC)
	if err != nil {
		return err
	}
	v.replay, err = c.ReplayWebhook(c.ctx, v.WebhookID, client.WebhookReplayRequest{From: from, To: to})
	return err
}

// rotationOverlap is the time, in seconds, in which the previous secret still works if the form selects this option.
const rotationOverlap = 24 * 3600

// rotate gives the webhook a new secret.
func (v *webhookView) rotate(c *call, overlaps bool) (err error) {
	overlap := int64(0)
	v.done = "The secret is replaced. The old one no longer works."
	if overlaps {
		overlap, v.done = rotationOverlap, "The secret is replaced. The old one works for another 24 hours."
	}
	if v.rotated, err = c.RotateWebhook(c.ctx, v.WebhookID, client.KeyRotation{OverlapSeconds: overlap}); err != nil {
		v.done = ""
	}
	return err
}

// host returns the host and the path of a receiver's URL, for lists and headings. If raw cannot be parsed, it returns
// raw.
func host(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	return u.Host + u.Path
}

// answerText returns a text about the receiver's answer to the latest call of a delivery.
func answerText(d *client.Delivery) string {
	switch {
	case d.StatusCode != 0 && d.Error != "" && d.Error != "status "+formatInt(int64(d.StatusCode)):
		return formatInt(int64(d.StatusCode)) + ": " + d.Error
	case d.StatusCode != 0:
		return formatInt(int64(d.StatusCode))
	default:
		return d.Error
	}
}
