package bench

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// handled contains the number of checks and consumes that all instances handled within each bound. The bounds are in
// seconds. The numbers are sums of the instances' histograms, so they do not include delays of the load generator.
type handled map[float64]int64

const handledMetric = "quotasvc_http_request_duration_seconds_bucket{"

// handlingTimes returns the sum of the histograms of all instances since their start.
func (c *OutageConfig) handlingTimes(ctx context.Context) (handled, error) {
	sum := handled{}
	for _, in := range c.Instances {
		_, text, err := ask(ctx, http.MethodGet, "http://"+in.Ops+"/metrics", "", "")
		if err != nil {
			return nil, fmt.Errorf("scrape: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			sum.read(line)
		}
	}
	return sum, nil
}

// read adds a line of /metrics to h if the line belongs to the histograms of checks or consumes.
func (h handled) read(line string) {
	labels, ours := strings.CutPrefix(line, handledMetric)
	if !ours || !strings.Contains(labels, `route="/v1/check"`) && !strings.Contains(labels, `route="/v1/consume"`) {
		return
	}
	_, rest, _ := strings.Cut(labels, `le="`)
	bound, _, _ := strings.Cut(rest, `"`)
	le, err := strconv.ParseFloat(bound, 64) // parses +Inf as well
	if err != nil {
		return
	}
	count, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
	if err == nil {
		h[le] += int64(count)
	}
}

func (h handled) minus(o handled) handled {
	out := handled{}
	for le, n := range h {
		out[le] = n - o[le]
	}
	return out
}

// within returns the lowest bound of the histogram within which at least this share of all requests was handled. It
// returns 0 if there were no requests.
func (h handled) within(part float64) time.Duration {
	bounds := slices.Sorted(maps.Keys(h))
	if len(bounds) == 0 {
		return 0
	}
	all := float64(h[bounds[len(bounds)-1]])
	for _, le := range bounds {
		if float64(h[le]) >= part*all {
			return time.Duration(min(le, time.Hour.Seconds()) * float64(time.Second))
		}
	}
	return 0
}
