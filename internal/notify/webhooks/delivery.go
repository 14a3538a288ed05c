package webhooks

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/kit/null"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

// The states of a delivery.
const (
	StatusPending   = "pending"   // the delivery waits for its next attempt
	StatusDelivered = "delivered" // the receiver has accepted it
	StatusDead      = "dead"      // every attempt failed for keepTrying, or the event no longer exists
	StatusSkipped   = "skipped"   // the webhook was paused or deleted before the delivery
)

// Statuses returns the states of a delivery.
func Statuses() []string { return []string{StatusPending, StatusDelivered, StatusDead, StatusSkipped} }

// replayMax bounds the events of one replay. A replay of so many events is a transaction of some seconds.
const replayMax = 10_000

// Delivery is one event for one webhook.
type Delivery struct {
	Position    int64
	Type        string
	Tenant      string
	Status      string
	Attempts    int // number of attempts since the latest replay, or since the beginning
	QueuedAt    time.Time
	NextAt      time.Time // zero: there is no further attempt
	AttemptedAt time.Time // zero: there was no attempt
	StatusCode  int       // status of the newest answer; 0: there was no answer
	Latency     time.Duration
	Error       string // error of the newest attempt; empty: it succeeded, or there was no attempt
}

// EventID returns the id of the event.
func (d *Delivery) EventID() string { return events.IDOf(d.Position) }

// DeliveryQuery selects deliveries of one webhook.
type DeliveryQuery struct {
	Status string // empty: all states
	Limit  int    // at least 1
	Cursor string // empty for the first page, otherwise the NextCursor of the page before
}

// Deliveries returns a page of the webhook's deliveries, the newest event first. It fails with errcode.NotFound, or
// with errcode.InvalidArgument if the cursor is unknown.
func (s *Store) Deliveries(ctx context.Context, id string, q DeliveryQuery, may May) (list listing.Page[Delivery], err error) {
	if _, err := s.Get(ctx, id, may); err != nil {
		return list, err
	}
	before := int64(math.MaxInt64)
	if q.Cursor != "" {
		raw, err := base64.RawURLEncoding.DecodeString(q.Cursor)
		position, ok := events.ParseID(string(raw))
		if err != nil || !ok {
			return list, errcode.Invalid(body.Fault{Field: "cursor", Message: "is an unknown cursor; it must be the next_cursor of the page before"})
		}
		before = position
	}
	err = s.db.View(ctx, "list deliveries", func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, queries["SelectDeliveries"], id, null.IfZero(q.Status), before, q.Limit+1)
		items, err := pgx.CollectRows(rows, scanDelivery)
		if err != nil {
			return fmt.Errorf("list deliveries: %w", err)
		}
		list = listing.Cut(items, listing.Query{Limit: q.Limit}, (*Delivery).EventID)
		return nil
	})
	return list, err
}

func scanDelivery(row pgx.CollectableRow) (Delivery, error) {
	var d Delivery
	var next, attempted *time.Time
	var latency int64
	err := row.Scan(&d.Position, &d.Type, &d.Tenant, &d.Status, &d.Attempts, &d.QueuedAt, &next, &attempted, &d.StatusCode, &latency, &d.Error)
	d.QueuedAt, d.Latency = d.QueuedAt.UTC(), time.Duration(latency)*time.Millisecond
	d.NextAt, d.AttemptedAt = period.OrZero(next), period.OrZero(attempted)
	return d, err
}

// Replayed is the result of a replay.
type Replayed struct {
	Events int // number of events that are delivered again
	// More reports whether there are further events. Next is the time of the first of these events.
	More bool
	Next time.Time
}

// Replay delivers the events of the time range [from, to) again, at most replayMax events. If the argument `to` is
// zero, the range ends at the current time. Deliveries that are pending do not change. It fails with
// errcode.NotFound, or with errcode.Conflict if the webhook is paused.
func (s *Store) Replay(ctx context.Context, id string, from, to time.Time, may May) (r Replayed, err error) {
	err = s.db.Write(ctx, "replay", func(ctx context.Context, tx *pgstore.Transaction) error {
		w, err := lock(ctx, tx, id, may)
		if err != nil {
			return err
		}
		if w.Status == Paused {
			return &errcode.Error{Code: errcode.Conflict, Detail: "the webhook is paused: a paused webhook gets nothing; make it active first"}
		}
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		if to.IsZero() || to.After(now) {
			to = now
		}
		if oldest := now.Add(-events.Kept); from.Before(oldest) {
			from = oldest
		}
		r = Replayed{}
		found, err := w.eventsBetween(ctx, tx, from, to)
		if err != nil {
			return err
		}
		if len(found) > replayMax {
			r.More, r.Next = true, found[replayMax].At
			found = found[:replayMax]
		}
		queued, err := insertDeliveries(ctx, tx, "ReplayDeliveries", w.of(found))
		if err != nil {
			return err
		}
		r.Events = len(queued)
		if err := s.jobs.insert(ctx, tx.Tx, queued); err != nil {
			return err
		}
		return auditlog.Record(ctx, tx, []auditlog.Line{{
			Actor: auditlog.From(ctx), Action: "webhook.replay", Object: auditlog.Object{Kind: "webhook", ID: w.ID, Tenant: w.Tenant},
			After: map[string]any{"from": from.UTC(), "to": to.UTC(), "events": r.Events},
		}})
	})
	return r, err
}

// eventsBetween returns the events that the webhook receives, in the time range [from, to). It returns at most
// replayMax+1 events.
func (w *Webhook) eventsBetween(ctx context.Context, tx pgx.Tx, from, to time.Time) ([]events.Listed, error) {
	rows, _ := tx.Query(ctx, queries["EventsOf"], from, to, w.Types, null.IfZero(w.Tenant), replayMax+1, 0)
	found, err := pgx.CollectRows(rows, events.Scan)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return found, nil
}

// wants reports whether the webhook receives the event e.
func (w *Webhook) wants(e *events.Listed) bool {
	return (w.Tenant == "" || w.Tenant == e.Tenant) && slices.Contains(w.Types, string(e.Type))
}

// of returns the deliveries to this webhook: one for each event in found that it receives.
func (w *Webhook) of(found []events.Listed) (out []queued) {
	for i := range found {
		if e := &found[i]; w.wants(e) {
			out = append(out, queued{w.ID, e.Position, string(e.Type), e.Tenant})
		}
	}
	return out
}

// queued is a delivery that is to be inserted.
type queued struct {
	webhook      string
	position     int64
	kind, tenant string
}

// insertDeliveries inserts deliveries with the named statement. It returns the deliveries that need a job.
func insertDeliveries(ctx context.Context, tx pgx.Tx, statement string, all []queued) ([]queued, error) {
	if len(all) == 0 {
		return nil, nil
	}
	webhooks, positions, kinds, tenants := make([]string, len(all)), make([]int64, len(all)), make([]string, len(all)), make([]string, len(all))
	for i, q := range all {
		webhooks[i], positions[i], kinds[i], tenants[i] = q.webhook, q.position, q.kind, q.tenant
	}
	rows, _ := tx.Query(ctx, queries[statement], webhooks, positions, kinds, tenants)
	made, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (q queued, err error) {
		err = row.Scan(&q.webhook, &q.position)
		return q, err
	})
	if err != nil {
		return nil, fmt.Errorf("insert deliveries: %w", err)
	}
	return made, nil
}

// testID is the beginning of the webhook-id of a test call.
const testID = "test_"

// Test calls the webhook's receiver once, immediately, with an event of the type webhook.test. It does so even if the
// webhook is paused. It returns the outcome. It fails with errcode.NotFound.
func (s *Service) Test(ctx context.Context, id string, may May) (messageID string, out Outcome, err error) {
	w, err := s.Get(ctx, id, may)
	if err != nil {
		return "", Outcome{}, err
	}
	var keys [][]byte
	err = s.db.View(ctx, "read secrets", func(ctx context.Context, tx pgx.Tx) error {
		keys, err = secrets(ctx, tx, id)
		return err
	})
	if err != nil {
		return "", Outcome{}, err
	}
	m, err := newMessage(testID+strings.ToLower(rand.Text()), "webhook.test", time.Now(), map[string]string{"webhook_id": w.ID})
	if err != nil {
		return "", Outcome{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	return m.ID, s.sender.Send(ctx, w.URL, keys, m), nil
}

// testTimeout bounds a test call, because every request to the API is answered within five seconds.
const testTimeout = 4 * time.Second
