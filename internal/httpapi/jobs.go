package httpapi

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/ledger/verifier"
	"github.com/quotasvc/quotasvc/internal/report/testclock"
)

// rollRequest is the body of POST /v1/rolls.
type rollRequest struct{ asOf *time.Time }

func rollMembers() []body.Member[rollRequest] {
	return []body.Member[rollRequest]{
		body.Optional("as_of", func(d *body.Document, r *rollRequest) {
			at := d.Instant()
			r.asOf = &at
		}),
	}
}

// startRoll starts a roll that runs in the background.
func (s *Server) startRoll(rc *request) error {
	if _, err := rc.idempotencyKey(); err != nil {
		return err // a roll is idempotent without a key; a key that is sent must be valid
	}
	var req rollRequest
	if rc.Request().ContentLength != 0 { // without a body, periods that have ended by now are closed
		if err := decode(rc, &req, s.bodies.roll); err != nil {
			return err
		}
	}
	roll, err := s.ledger.StartRoll(rc.ctx, req.asOf)
	if err != nil {
		return err
	}
	set(rc.Response().Header(), "Location", "/v1/rolls/"+roll.ID)
	return rc.send(http.StatusAccepted, answers.Roll(&roll))
}

// getRoll answers with the progress of the roll in the path.
func (s *Server) getRoll(rc *request) error {
	roll, err := s.ledger.RollStatus(rc.ctx, rc.parameter("roll_id"))
	return sendObject(rc, http.StatusOK, &roll, err, answers.Roll)
}

// verificationRequest is the body of POST /v1/verifications. If tenant is empty, all tenants are verified.
type verificationRequest struct{ tenant string }

func verificationMembers() []body.Member[verificationRequest] {
	return []body.Member[verificationRequest]{
		body.Optional("tenant", func(d *body.Document, v *verificationRequest) { v.tenant = d.Name() }),
	}
}

// startVerification starts a verification that runs in the background.
func (s *Server) startVerification(rc *request) error {
	if _, err := rc.idempotencyKey(); err != nil {
		return err // a second verification does no harm, so it needs no key; a key that is sent must be valid
	}
	var req verificationRequest
	if rc.Request().ContentLength != 0 { // without a body, all tenants are verified
		if err := decode(rc, &req, s.bodies.verification); err != nil {
			return err
		}
	}
	if err := rc.ofTenant(req.tenant); err != nil {
		return err
	}
	v, err := s.cfg.Verifier.StartVerification(rc.ctx, req.tenant)
	if err != nil {
		return err
	}
	set(rc.Response().Header(), "Location", "/v1/verifications/"+v.ID)
	return rc.send(http.StatusAccepted, answers.Verification(&v))
}

// listVerifications answers with the verifications that clients started, the newest first.
func (s *Server) listVerifications(rc *request) error {
	q := verifier.Query{Tenant: rc.query.name("tenant")}
	q.Limit, q.Cursor = rc.query.page()
	if err := rc.query.err(); err != nil {
		return err
	}
	if q.Tenant == "" {
		q.Tenant = rc.key.Tenant
	} else if err := rc.ofTenant(q.Tenant); err != nil {
		return err
	}
	list, next, err := s.cfg.Verifier.Verifications(rc.ctx, q)
	return sendPage(rc, list, next, err, answers.VerificationSummary)
}

// getVerification answers with the progress of a verification, and with its result after it has ended.
func (s *Server) getVerification(rc *request) error {
	v, err := s.cfg.Verifier.VerificationStatus(rc.ctx, rc.parameter("verification_id"))
	if err != nil {
		return err
	}
	if err := rc.ofTenant(v.Tenant); err != nil {
		return err
	}
	return rc.send(http.StatusOK, answers.Verification(&v))
}

// listSeals answers with a page of sealed days. The cursor is the position of the last seal on the previous page.
func (s *Server) listSeals(rc *request) error {
	limit, cursor := rc.query.page()
	before := int64(math.MaxInt64)
	if cursor != "" {
		var err error
		if before, err = strconv.ParseInt(cursor, 10, 64); err != nil || before < 0 {
			rc.query.faults.Add("cursor", mustBeCursor)
		}
	}
	if err := rc.query.err(); err != nil {
		return err
	}
	list, err := s.cfg.Verifier.Seals(rc.ctx, before, limit)
	if err != nil {
		return err
	}
	out := client.SealList{Items: answers.Map(list, answers.SealSummary)}
	if len(list) == limit && list[limit-1].Position > 0 {
		out.NextCursor = nextCursor(strconv.FormatInt(list[limit-1].Position, 10))
	}
	return rc.send(http.StatusOK, out)
}

// getSeal answers with the seal of the day in the path, in the format of a seal file.
func (s *Server) getSeal(rc *request) error {
	day, err := time.Parse(time.DateOnly, rc.parameter("day"))
	if err != nil {
		return body.Refuse("day", "must be a day such as 2026-11-22")
	}
	sealed, err := s.cfg.Verifier.SealOfDay(rc.ctx, day)
	if err != nil {
		return err
	}
	return rc.send(http.StatusOK, sealed)
}

// getStatus answers with the state of the service.
func (s *Server) getStatus(rc *request) error {
	found := s.cfg.Status.Read(rc.ctx)
	return rc.send(http.StatusOK, answers.Status(&found))
}

func clockMembers() []body.Member[time.Duration] {
	return []body.Member[time.Duration]{
		body.Required("advance", func(d *body.Document, by *time.Duration) { *by = d.Duration(testclock.Least, testclock.Most) }),
	}
}

// getTestClock answers with the ledger's time in a server with a test clock.
func (s *Server) getTestClock(rc *request) error {
	return rc.send(http.StatusOK, answers.Clock(s.cfg.TestClock.State()))
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
	rc.markReplayed(state.Replayed)
	return rc.send(http.StatusOK, answers.Clock(state))
}
