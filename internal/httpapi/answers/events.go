package answers

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
	"github.com/quotasvc/quotasvc/internal/notify/webhooks"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

// Webhook returns a webhook without its secret.
func Webhook(w *webhooks.Webhook) wire.WebhookEndpoint {
	return wire.WebhookEndpoint{
		WebhookID: w.ID, URL: w.URL, Types: Map(w.Types, func(t *string) wire.EventType { return wire.EventType(*t) }), Tenant: textOrNull(w.Tenant),
		Status: wire.WebhookStatus(w.Status), CreatedAt: w.CreatedAt, UpdatedAt: w.UpdatedAt,
	}
}

// NewWebhook returns a webhook with its secret.
func NewWebhook(w *webhooks.Webhook, secret string) wire.NewWebhookEndpoint {
	shown := Webhook(w)
	return wire.NewWebhookEndpoint{
		WebhookID: shown.WebhookID, URL: shown.URL, Types: shown.Types, Tenant: shown.Tenant, Status: shown.Status, Secret: secret,
		CreatedAt: shown.CreatedAt, UpdatedAt: shown.UpdatedAt,
	}
}

// Delivery returns a delivery.
func Delivery(d *webhooks.Delivery) wire.Delivery {
	out := wire.Delivery{
		EventID: d.EventID(), Type: wire.EventType(d.Type), Tenant: textOrNull(d.Tenant), Status: wire.DeliveryStatus(d.Status), Attempts: int64(d.Attempts),
		QueuedAt: d.QueuedAt, NextAt: timeOrNull(d.NextAt), AttemptedAt: timeOrNull(d.AttemptedAt), Error: d.Error,
	}
	if d.StatusCode != 0 {
		out.StatusCode = &d.StatusCode
	}
	if ms := d.Latency.Milliseconds(); !d.AttemptedAt.IsZero() && ms >= 0 {
		out.LatencyMs = &ms
	}
	return out
}

// Event returns an event.
func Event(e *events.Listed) wire.Event {
	return wire.Event{
		EventID: e.ID(), Type: wire.EventType(e.Type), At: e.At, Tenant: textOrNull(e.Tenant), Meter: e.Meter, Subject: e.Subject, Data: e.Data,
	}
}

// WebhookTest returns how a test call went.
func WebhookTest(message string, out webhooks.Outcome) wire.WebhookTest {
	answer := wire.WebhookTest{MessageID: message, Delivered: out.Error == "", LatencyMs: out.Latency.Milliseconds(), Error: out.Error}
	if out.Status != 0 {
		answer.StatusCode = &out.Status
	}
	return answer
}

// WebhookReplay returns what a replay has queued.
func WebhookReplay(r webhooks.Replayed) wire.WebhookReplay {
	answer := wire.WebhookReplay{Queued: int64(r.Events)}
	if r.More {
		answer.NextFrom = timeOrNull(r.Next)
	}
	return answer
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
