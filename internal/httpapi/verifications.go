package httpapi

import (
	"maps"
	"net/http"
	"slices"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// verificationRequest is a VerificationRequest.
type verificationRequest struct{ tenant string }

func verificationMembers() []body.Member[verificationRequest] {
	return []body.Member[verificationRequest]{
		body.Optional("tenant", func(d *body.Document, v *verificationRequest) { v.tenant = d.ID() }),
	}
}

// startVerification begins to verify in the background.
func (s *Server) startVerification(x *exchange) error {
	if _, err := x.idempotencyKey(); err != nil {
		return err // verifying twice does no harm, but whoever sends a key must send a good one
	}
	var req verificationRequest
	if x.Request().ContentLength != 0 { // a bare POST means all tenants
		if err := decode(x, &req, s.requests.verification); err != nil {
			return err
		}
	}
	v, err := s.ledger.StartVerification(x.ctx, req.tenant)
	if err != nil {
		return err
	}
	set(x.Response().Header(), "Location", "/v1/verifications/"+v.ID)
	return x.send(http.StatusAccepted, verificationOf(&v))
}

// getVerification answers how far a verification is, and what it found.
func (s *Server) getVerification(x *exchange) error {
	id, err := x.idParameter("verification_id")
	if err != nil {
		return err
	}
	v, err := s.ledger.VerificationStatus(x.ctx, id)
	if err != nil {
		return err
	}
	return x.send(http.StatusOK, verificationOf(&v))
}

func verificationOf(v *pg.Verification) wire.Verification {
	r := &v.Report
	out := wire.Verification{
		VerificationID: v.ID, Tenant: v.Tenant, Status: wire.VerificationStatus(v.Status), Balances: r.Balances, Entries: r.Entries,
		Grants: r.Grants, Periods: r.Periods, Copies: r.Copies, StaleCopies: r.StaleCopies, DifferenceCount: r.Count, Error: v.Error,
		StartedAt: v.StartedAt.UTC(), FinishedAt: orNull(v.FinishedAt), Totals: []wire.VerifiedMeter{},
		Differences: mapSlice(r.Differences, func(d *audit.Difference) wire.Difference {
			return wire.Difference{Tenant: d.Tenant, Meter: d.Meter, Subject: d.Subject, What: d.What, Journal: d.Want, Stored: d.Got}
		}),
	}
	for _, meter := range slices.Sorted(maps.Keys(r.Totals)) {
		t := r.Totals[meter]
		out.Totals = append(out.Totals, wire.VerifiedMeter{
			Meter: meter, Issued: t.Issued, Used: t.Used, Refunded: t.Refunded, Expired: t.Expired, Adjusted: t.Adjusted,
			Remaining: t.Remaining, Held: t.Held, Partial: t.Partial,
		})
	}
	return out
}
