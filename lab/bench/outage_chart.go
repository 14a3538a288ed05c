package bench

import (
	"fmt"

	"github.com/quotasvc/quotasvc/lab/bench/chart"
	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// chart draws the timeline in three panels: latency, admissions and script calls.
func (r *OutageResult) chart(path string) error {
	latency := r.panel("ms",
		r.curve("check, p99 of 0.1 s", chart.Service, func(m *Moment) float64 { return m.CheckP99.Seconds() * 1000 }),
		r.curve("slowest request of 0.1 s", chart.Second, func(m *Moment) float64 { return m.Slowest.Seconds() * 1000 }))
	latency.LogY(0.1, 1000)
	admitted := r.panel("admitted in 0.1 s",
		r.curve("by Redis", chart.Service, func(m *Moment) float64 { return float64(m.AdmittedByRedis) }),
		r.curve("by the instances", chart.Second, func(m *Moment) float64 { return float64(m.AdmittedLocally) }))
	calls := r.panel("calls in 0.1 s", r.curve("script calls of Redis", chart.Third, func(m *Moment) float64 { return float64(m.Calls) }))
	return (&chart.Page{
		Title:  fmt.Sprintf("Redis is killed at %s requests/s and comes back empty", chart.Figure(float64(r.Rate))),
		About:  "Latency, admissions and script calls over time, with a line where Redis is killed and one where it is back.",
		Panels: []*chart.Panel{latency, admitted, calls},
	}).Save(path)
}

// Keep writes the picture below docs.
func (r *OutageResult) Keep(docs string) error { return r.chart(report.Picture(docs, "outage")) }

func (r *OutageResult) curve(name string, ink chart.Ink, of func(*Moment) float64) chart.Curve {
	c := chart.Curve{Name: name, Ink: ink}
	for i := range r.Timeline {
		m := &r.Timeline[i]
		c.Points = append(c.Points, chart.Point{X: m.At.Seconds(), Y: of(m)})
	}
	return c
}

// panel draws curves, and vertical lines at the kill and the return of Redis.
func (r *OutageResult) panel(y string, curves ...chart.Curve) *chart.Panel {
	p := chart.NewPanel("seconds", y)
	p.Add(curves...)
	p.Mark(r.Killed.Seconds(), "Redis killed")
	p.Mark(r.Back.Seconds(), "Redis back")
	return p
}
