package httpapi

import (
	"net/http"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
)

// putMeter creates or replaces a meter.
func (s *Server) putMeter(x *exchange) error {
	id, err := x.idParameter("meter")
	if err != nil {
		return err
	}
	m := catalog.Meter{ID: id}
	if err := x.decodeObject(&m, "meter"); err != nil {
		return err
	}
	stored, created, err := s.store.PutMeter(x.ctx, m)
	if err != nil {
		return err
	}
	return x.send(putStatus(created), meterOf(&stored))
}

// getMeter answers one meter.
func (s *Server) getMeter(x *exchange) error {
	id, err := x.idParameter("meter")
	if err != nil {
		return err
	}
	m, err := s.store.Meter(x.ctx, id)
	if err != nil {
		return err
	}
	return x.send(http.StatusOK, meterOf(&m))
}

// listMeters answers a page of meters.
func (s *Server) listMeters(x *exchange) error {
	page, err := x.catalogPage()
	if err != nil {
		return err
	}
	list, err := s.store.ListMeters(x.ctx, page)
	if err != nil {
		return err
	}
	return x.send(http.StatusOK, wire.MeterList{Items: mapSlice(list.Items, meterOf), NextCursor: nextCursor(list.NextCursor)})
}

// deleteMeter deletes a meter that nothing refers to.
func (s *Server) deleteMeter(x *exchange) error {
	id, err := x.idParameter("meter")
	if err != nil {
		return err
	}
	if err := s.store.DeleteMeter(x.ctx, id); err != nil {
		return err
	}
	return x.NoContent(http.StatusNoContent)
}

func meterOf(m *catalog.Meter) wire.Meter {
	return wire.Meter{
		Meter: m.ID, Unit: m.Unit, Description: m.Description, DenialReplay: m.DenialReplay, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt,
	}
}
