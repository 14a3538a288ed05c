package httpapi

import (
	"net/http"

	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/notify/webhooks"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

// ofWebhook records the tenant of a webhook, and refuses a key that is bound to another tenant (see ofTenant).
func (rc *request) ofWebhook(w *webhooks.Webhook) error { return rc.ofTenant(w.Tenant) }

// createWebhook creates a webhook and answers with its secret.
func (s *Server) createWebhook(rc *request) error {
	var c webhooks.Change
	if err := decode(rc, &c, s.bodies.webhook); err != nil {
		return err
	}
	if _, err := rc.idempotencyKey(); err != nil {
		return err // see createKey
	}
	if err := rc.ofTenant(c.Tenant); err != nil {
		return err
	}
	w, secret, err := s.webhooks.Create(rc.ctx, c)
	if err != nil {
		return err
	}
	set(rc.Response().Header(), "Location", "/v1/webhooks/"+w.ID)
	return rc.send(http.StatusCreated, answers.NewWebhook(&w, secret))
}

// listWebhooks answers with a page of webhooks.
func (s *Server) listWebhooks(rc *request) error {
	return listPage(rc, s.webhooks.List, answers.Webhook)
}

// getWebhook answers with the webhook in the path.
func (s *Server) getWebhook(rc *request) error {
	w, err := s.webhooks.Get(rc.ctx, rc.parameter("webhook_id"), rc.ofWebhook)
	return sendObject(rc, http.StatusOK, &w, err, answers.Webhook)
}

// patchWebhook changes a webhook.
func (s *Server) patchWebhook(rc *request) error {
	var c webhooks.Change
	if err := decode(rc, &c, s.bodies.webhookPatch); err != nil {
		return err
	}
	w, err := s.webhooks.Update(rc.ctx, rc.parameter("webhook_id"), c, rc.ofWebhook)
	return sendObject(rc, http.StatusOK, &w, err, answers.Webhook)
}

// deleteWebhook deletes a webhook.
func (s *Server) deleteWebhook(rc *request) error {
	return rc.sendNoContent(s.webhooks.Delete(rc.ctx, rc.parameter("webhook_id"), rc.ofWebhook))
}

// rotateWebhook gives a webhook a new secret.
func (s *Server) rotateWebhook(rc *request) error {
	overlap, err := rc.rotation()
	if err != nil {
		return err
	}
	w, secret, err := s.webhooks.Rotate(rc.ctx, rc.parameter("webhook_id"), overlap, rc.ofWebhook)
	if err != nil {
		return err
	}
	return rc.send(http.StatusCreated, answers.NewWebhook(&w, secret))
}

// testWebhook sends a test call to the receiver of a webhook.
func (s *Server) testWebhook(rc *request) error {
	if rc.Request().ContentLength != 0 {
		var nothing struct{}
		if err := decode(rc, &nothing, nil); err != nil {
			return err
		}
	}
	if _, err := rc.idempotencyKey(); err != nil {
		return err // each request calls the receiver, with or without a key; a key that is sent must be valid
	}
	message, out, err := s.webhooks.Test(rc.ctx, rc.parameter("webhook_id"), rc.ofWebhook)
	if err != nil {
		return err
	}
	return rc.send(http.StatusOK, answers.WebhookTest(message, out))
}

// replayWebhook queues the events of a time range for a second delivery to a webhook.
func (s *Server) replayWebhook(rc *request) error {
	var r webhooks.Replay
	if err := decode(rc, &r, s.bodies.replay); err != nil {
		return err
	}
	if _, err := rc.idempotencyKey(); err != nil {
		return err // a replay of pending events changes nothing, so it needs no key; a key that is sent must be valid
	}
	if !r.To.IsZero() && !r.To.After(r.From) {
		return body.Refuse("to", "must be later than from")
	}
	out, err := s.webhooks.Replay(rc.ctx, rc.parameter("webhook_id"), r.From, r.To, rc.ofWebhook)
	if err != nil {
		return err
	}
	return rc.send(http.StatusAccepted, answers.WebhookReplay(out))
}

// listDeliveries answers with a page of a webhook's deliveries, ordered by event, the newest first.
func (s *Server) listDeliveries(rc *request) error {
	q := webhooks.DeliveryQuery{Status: rc.query.word("status", webhooks.Statuses()...)}
	q.Limit, q.Cursor = rc.query.page()
	if err := rc.query.err(); err != nil {
		return err
	}
	list, err := s.webhooks.Deliveries(rc.ctx, rc.parameter("webhook_id"), q, rc.ofWebhook)
	return sendPage(rc, list.Items, list.NextCursor, err, answers.Delivery)
}

// listEvents answers with a page of events, oldest first.
func (s *Server) listEvents(rc *request) error {
	q := events.Query{Tenant: rc.query.name("tenant"), Type: rc.query.word("type", events.Types()...)}
	if after := rc.query.values.Get("after"); rc.query.values.Has("after") {
		if _, ok := events.ParseID(after); !ok {
			rc.query.faults.Add("after", "must be the event_id of an event")
		}
		q.After = after
	}
	q.Limit, q.Cursor = rc.query.page()
	if _, ok := events.ParseID(q.Cursor); q.Cursor != "" && !ok {
		rc.query.faults.Add("cursor", mustBeCursor)
	}
	if err := rc.query.err(); err != nil {
		return err
	}
	if q.Tenant == "" {
		q.Tenant = rc.key.Tenant
	} else if err := rc.ofTenant(q.Tenant); err != nil {
		return err
	}
	page, err := s.store.Events(rc.ctx, q)
	return sendPage(rc, page.Items, page.NextCursor, err, answers.Event)
}
