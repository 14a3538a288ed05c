package httpapi

import (
	"net/http"
	"time"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// rollRequest is a RollRequest.
type rollRequest struct{ asOf *time.Time }

func rollMembers() []body.Member[rollRequest] {
	return []body.Member[rollRequest]{
		body.Optional("as_of", func(d *body.Document, r *rollRequest) {
			at := d.Instant()
			r.asOf = &at
		}),
	}
}

// startRoll begins a roll in the background.
func (s *Server) startRoll(x *exchange) error {
	if _, err := x.idempotencyKey(); err != nil {
		return err // a roll is idempotent by itself, but whoever sends a key must send a good one
	}
	var req rollRequest
	if x.Request().ContentLength != 0 { // a bare POST means now
		if err := decode(x, &req, s.requests.roll); err != nil {
			return err
		}
	}
	roll, err := s.ledger.StartRoll(x.ctx, req.asOf)
	if err != nil {
		return err
	}
	set(x.Response().Header(), "Location", "/v1/rolls/"+roll.ID)
	return x.send(http.StatusAccepted, rollOf(&roll))
}

// getRoll answers the progress of a roll.
func (s *Server) getRoll(x *exchange) error {
	id, err := x.idParameter("roll_id")
	if err != nil {
		return err
	}
	roll, err := s.ledger.RollStatus(x.ctx, id)
	if err != nil {
		return err
	}
	return x.send(http.StatusOK, rollOf(&roll))
}

func rollOf(r *pg.Roll) wire.Roll {
	return wire.Roll{
		RollID: r.ID, AsOf: r.AsOf.UTC(), Status: wire.RollStatus(r.Status), Total: r.Total, Processed: r.Processed, Error: r.Error,
		StartedAt: r.StartedAt.UTC(), FinishedAt: orNull(r.FinishedAt),
	}
}
