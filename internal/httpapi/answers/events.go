package answers

import (
	"time"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/kit/null"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/notify/webhooks"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

// Webhook returns a webhook in the contract's type, without its secret.
func Webhook(w *webhooks.Webhook) client.WebhookEndpoint {
	return client.WebhookEndpoint{
		WebhookID: w.ID, URL: w.URL, Types: Map(w.Types, func(t *string) client.EventType { return client.EventType(*t) }), Tenant: null.IfZero(w.Tenant),
		Status: client.WebhookStatus(w.Status), CreatedAt: w.CreatedAt, UpdatedAt: w.UpdatedAt,
	}
}

// NewWebhook returns a webhook with its secret, in the contract's type. The webhook is new, or its secret was just
// replaced.
func NewWebhook(w *webhooks.Webhook, secret string) client.NewWebhookEndpoint {
	shown := Webhook(w)
	return client.NewWebhookEndpoint{
		WebhookID: shown.WebhookID, URL: shown.URL, Types: shown.Types, Tenant: shown.Tenant, Status: shown.Status, Secret: secret,
		CreatedAt: shown.CreatedAt, UpdatedAt: shown.UpdatedAt,
	}
}

// Delivery returns the delivery of an event to a webhook, in the contract's type.
func Delivery(d *webhooks.Delivery) client.Delivery {
	out := client.Delivery{
		EventID: d.EventID(), Type: client.EventType(d.Type), Tenant: null.IfZero(d.Tenant), Status: client.DeliveryStatus(d.Status), Attempts: int64(d.Attempts),
		QueuedAt: d.QueuedAt, NextAt: TimeOrNull(d.NextAt), AttemptedAt: TimeOrNull(d.AttemptedAt), Error: d.Error,
		StatusCode: d.StatusCode,
	}
	if ms := d.Latency.Milliseconds(); !d.AttemptedAt.IsZero() && ms >= 0 {
		out.LatencyMs = &ms
	}
	return out
}

// Event returns an event in the contract's type.
func Event(e *events.Listed) client.Event {
	return client.Event{
		EventID: e.ID(), Type: client.EventType(e.Type), At: e.At, Tenant: null.IfZero(e.Tenant), Meter: e.Meter, Subject: e.Subject, Data: e.Data,
	}
}

// WebhookTest returns the outcome of a test call to a webhook's receiver.
func WebhookTest(message string, out webhooks.Outcome) client.WebhookTest {
	return client.WebhookTest{
		MessageID: message, Delivered: out.Error == "", LatencyMs: out.Latency.Milliseconds(), StatusCode: out.Status,
		Error: out.Error,
	}
}

// WebhookReplay returns the number of events that a replay has queued for delivery. If more events remain, it also
// has the instant from which the next replay must start.
func WebhookReplay(r webhooks.Replayed) client.WebhookReplay {
	answer := client.WebhookReplay{Queued: int64(r.Events)}
	if r.More {
		answer.NextFrom = r.Next.UTC()
	}
	return answer
}

// TimeOrNull returns t in UTC, or nil for the zero time.
func TimeOrNull(t time.Time) *time.Time {
	return period.OrNil(t.UTC())
}
