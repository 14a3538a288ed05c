package httpapi

import (
	"net/http"
	"time"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
	"github.com/quotasvc/quotasvc/internal/testclock"
)

func clockMembers() []body.Member[time.Duration] {
	return []body.Member[time.Duration]{
		body.Required("advance", func(d *body.Document, by *time.Duration) { *by = d.Duration(testclock.Least, testclock.Most) }),
	}
}

// getTestClock answers with the ledger's time.
func (s *Server) getTestClock(rc *request) error {
	return rc.send(http.StatusOK, clockOf(s.cfg.TestClock.State()))
}

// advanceTestClock moves the ledger's time forward.
func (s *Server) advanceTestClock(rc *request) error {
	key, err := rc.idempotencyKey()
	if err != nil {
		return err
	}
	var by time.Duration
	if err := decode(rc, &by, s.bodies.clock); err != nil {
		return err
	}
	state, err := s.cfg.TestClock.Advance(rc.ctx, by, key)
	if err != nil {
		return err
	}
	if state.Replayed {
		set(rc.Response().Header(), headerReplayed, "true")
	}
	return rc.send(http.StatusOK, clockOf(state))
}

func clockOf(s testclock.State) wire.TestClock {
	return wire.TestClock{Now: s.Now, OffsetSeconds: int64(s.Ahead / time.Second)}
}
