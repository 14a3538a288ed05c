package drill

import (
	"fmt"
	"strings"

	"github.com/quotasvc/quotasvc/lab/bench/chart"
)

// perPoint is the number of moments of the timeline in one point of the chart. A point covers five seconds.
const perPoint = 10

// chart draws the outcomes of operations over time, with a line at each failover.
func (r *Result) chart(path string) error {
	return (&chart.Page{
		Title: fmt.Sprintf("Drill with seed %d: %d kills, %d failovers (lines)", r.Seed, r.kills(), r.failovers()),
		About: "Acknowledged and unanswered operations per second over time, with a line at each failover.",
		Panels: []*chart.Panel{
			r.panel("acknowledged/s", func(m *Moment) int { return m.Done }),
			r.panel("503 or no answer/s", func(m *Moment) int { return m.Unanswered }),
		},
	}).Save(path)
}

// panel draws the rate at which a count of the timeline grows.
func (r *Result) panel(y string, count func(*Moment) int) *chart.Panel {
	rate := chart.Curve{Ink: chart.Service}
	for i := perPoint; i < len(r.Timeline); i += perPoint {
		before, m := &r.Timeline[i-perPoint], &r.Timeline[i]
		rate.Points = append(rate.Points, chart.Point{X: m.At.Seconds(), Y: float64(count(m)-count(before)) / (m.At - before.At).Seconds()})
	}
	p := chart.NewPanel("seconds", y)
	p.Add(rate)
	for _, mark := range r.Marks {
		if strings.HasPrefix(string(mark.Action), string(Failover)) {
			p.Mark(mark.At.Seconds(), "")
		}
	}
	return p
}
