package httpapi

import (
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/gauge"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/httpapi/catalogdoc"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// putMeter creates or replaces a meter.
func (s *Server) putMeter(rc *request) error {
	m := catalog.Meter{ID: rc.parameter("meter")}
	if err := rc.decodeObject(&m, "meter"); err != nil {
		return err
	}
	stored, created, err := s.store.PutMeter(rc.ctx, m)
	return sendObject(rc, createdStatus(created), &stored, err, answers.Meter)
}

// getMeter answers with the meter in the path.
func (s *Server) getMeter(rc *request) error {
	m, err := s.store.Meter(rc.ctx, rc.parameter("meter"))
	return sendObject(rc, http.StatusOK, &m, err, answers.Meter)
}

// listMeters answers with a page of meters.
func (s *Server) listMeters(rc *request) error {
	return listPage(rc, s.store.ListMeters, answers.Meter)
}

// deleteMeter deletes the meter in the path, which must be unused.
func (s *Server) deleteMeter(rc *request) error {
	return rc.sendNoContent(s.store.DeleteMeter(rc.ctx, rc.parameter("meter")))
}

// setGauge sets a gauge to a value, or changes it by a difference.
func (s *Server) setGauge(rc *request) error {
	k, err := rc.gaugeParameters()
	if err != nil {
		return err
	}
	c := withDryRun[gauge.Change]{request: gauge.Change{Key: k}}
	if err := readOperation(rc, &c, s.bodies.gauge, &c.request.Tenant, &c.request.OperationID); err != nil {
		return err
	}
	c.request.DryRun = c.dryRun
	state, err := s.gauges.Set(rc.ctx, c.request)
	if err != nil {
		return err
	}
	rc.markReplayed(state.Replayed)
	answer := answers.Gauge(&state)
	answer.Before, answer.DryRun = &state.Before, c.dryRun
	return rc.send(http.StatusOK, answer)
}

func gaugeMembers() []body.Member[gauge.Change] {
	return []body.Member[gauge.Change]{
		body.Optional("value", func(d *body.Document, c *gauge.Change) {
			n := d.Integer(0, bound.MaxAmount)
			c.Value = &n
		}),
		body.Optional("delta", func(d *body.Document, c *gauge.Change) { c.Delta = d.Difference() }),
	}
}

// gaugeParameters returns the tenant, the meter and the subject of the gauge in the path and the query.
func (rc *request) gaugeParameters() (gauge.Key, error) {
	k := gauge.Key{Tenant: rc.tenant, Meter: rc.parameter("meter"), Subject: rc.query.name("subject")}
	return k, rc.query.err()
}

// getGauge answers with the present value of a gauge.
func (s *Server) getGauge(rc *request) error {
	k, err := rc.gaugeParameters()
	if err != nil {
		return err
	}
	state, err := s.gauges.Get(rc.ctx, k)
	return sendObject(rc, http.StatusOK, &state, err, answers.Gauge)
}

// listGauges answers with a page of the gauges of a tenant.
func (s *Server) listGauges(rc *request) error {
	q := gauge.Query{Tenant: rc.tenant, Meter: rc.query.id("meter")}
	if q.Limit, q.Cursor = rc.query.page(); rc.query.err() != nil {
		return rc.query.err()
	}
	list, err := s.gauges.List(rc.ctx, q)
	return sendPage(rc, list.Items, list.NextCursor, err, answers.Gauge)
}

// listGaugeEntries answers with a page of a gauge's entries, the newest first.
func (s *Server) listGaugeEntries(rc *request) error {
	k, err := rc.gaugeParameters()
	if err != nil {
		return err
	}
	limit, cursor := rc.query.page()
	before, ok := int64(math.MaxInt64), true
	if cursor != "" {
		before, ok = body.ParseInteger(cursor)
	}
	if !ok || before == 0 {
		rc.query.faults.Add("cursor", mustBeCursor)
	}
	if err := rc.query.err(); err != nil {
		return err
	}
	entries, err := s.gauges.Entries(rc.ctx, k, before, limit+1)
	if err != nil {
		return err
	}
	next := ""
	if len(entries) > limit {
		entries = entries[:limit]
		next = strconv.FormatInt(entries[limit-1].Seq, 10)
	}
	return rc.send(http.StatusOK, client.GaugeEntryList{NextCursor: nextCursor(next), Items: answers.Map(entries, func(e *gauge.Entry) client.GaugeEntry {
		return client.GaugeEntry{Seq: e.Seq, OperationID: e.OperationID, Before: e.Before, After: e.After, Limit: e.Limit, CreatedAt: e.At, Actor: e.Actor}
	})})
}

// putPlan creates a new version of a plan.
func (s *Server) putPlan(rc *request) error {
	p := catalog.Plan{ID: rc.parameter("plan")}
	if err := rc.decodeObject(&p, "plan"); err != nil {
		return err
	}
	stored, created, warnings, err := s.store.PutPlanWarning(rc.ctx, p)
	if err != nil {
		return err
	}
	answer := answers.Plan(&stored)
	answer.Warnings = warnings
	return rc.send(createdStatus(created), answer)
}

// getPlan answers with the newest version of a plan.
func (s *Server) getPlan(rc *request) error {
	p, err := s.store.Plan(rc.ctx, rc.parameter("plan"), 0)
	return sendObject(rc, http.StatusOK, &p, err, answers.Plan)
}

// listPlans answers with a page of plans, each in its newest version.
func (s *Server) listPlans(rc *request) error {
	return listPage(rc, s.store.ListPlans, answers.Plan)
}

// exportCatalog answers with the catalogue as one document.
func (s *Server) exportCatalog(rc *request) error {
	f, err := s.store.Export(rc.ctx)
	if err != nil {
		return err
	}
	answer, err := catalogdoc.Export(f)
	tag, noTag := catalogdoc.Tag(f)
	if err = errors.Join(err, noTag); err != nil {
		return err
	}
	set(rc.Response().Header(), headerETag, tag)
	return rc.send(http.StatusOK, answer)
}

// applyCatalog changes the catalogue so that it has the objects of a document.
func (s *Server) applyCatalog(rc *request) error {
	var r catalogdoc.Request
	if err := decode(rc, &r, s.bodies.catalog); err != nil {
		return err
	}
	if _, err := rc.idempotencyKey(); err != nil {
		return err // applying a document again changes nothing, so it needs no key; a key that is sent must be valid
	}
	f, err := r.File()
	if err != nil {
		return err
	}
	f.Expect = catalogdoc.Expect(headerIfMatch, rc.Request().Header[headerIfMatch])
	apply := s.store.Apply
	if r.Prune {
		apply = s.store.ApplyPruning
	}
	report, err := apply(rc.ctx, f, r.DryRun)
	if err != nil {
		return err
	}
	return rc.send(http.StatusOK, catalogdoc.Diff(report))
}
