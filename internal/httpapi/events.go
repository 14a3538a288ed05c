package httpapi

import (
	"net/http"

	"github.com/quotasvc/quotasvc/internal/events"
	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
)

// listEvents answers with a page of events, oldest first.
func (s *Server) listEvents(rc *request) error {
	q := events.Query{Tenant: rc.query.id("tenant"), Type: rc.query.word("type", events.Types()...)}
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
	if err != nil {
		return err
	}
	return rc.send(http.StatusOK, wire.EventList{Items: mapSlice(page.Items, eventOf), NextCursor: nextCursor(page.NextCursor)})
}

func eventOf(e *events.Listed) wire.Event {
	return wire.Event{
		EventID: e.ID(), Type: wire.EventType(e.Type), At: e.At, Tenant: textOrNull(e.Tenant), Meter: e.Meter, Subject: e.Subject, Data: e.Data,
	}
}
