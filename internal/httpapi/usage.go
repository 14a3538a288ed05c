package httpapi

import (
	"net/http"

	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// usage answers the use of one balance per hour or day.
func (s *Server) usage(x *exchange) error {
	tenant, err := x.tenantParameter()
	if err != nil {
		return err
	}
	q := pg.UsageQuery{
		Tenant: tenant, Meter: x.query.requiredID("meter"), Subject: x.query.id("subject"), From: x.query.requiredInstant("from"),
		To: x.query.requiredInstant("to"), Zone: x.query.zone("timezone"),
	}
	q.Step = pg.UsageStep(x.query.word("by", string(pg.UsageByHour), string(pg.UsageByDay)))
	if q.Step == "" {
		q.Step = pg.UsageByDay
	}
	if err := x.query.err(); err != nil {
		return err
	}
	buckets, err := s.ledger.Usage(x.ctx, q)
	if err != nil {
		return err
	}
	return x.send(http.StatusOK, wire.UsageList{Items: mapSlice(buckets, func(u *pg.UsageBucket) wire.Usage {
		return wire.Usage{Start: u.Start.UTC(), Used: u.Used, Overage: u.Overage, Refunded: u.Refunded, Operations: u.Operations}
	})})
}
