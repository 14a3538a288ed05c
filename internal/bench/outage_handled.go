package bench

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// handled are the services' own histograms of handling times of checks and consumes: how many took at most so many seconds.
// Unlike the times of the load generator they know nothing of its own delays.
type handled map[float64]int64

const handledMetric = "quotasvc_http_request_duration_seconds_bucket{"

// handlingTimes adds up what all instances have measured since they were started.
func (c *OutageConfig) handlingTimes(ctx context.Context) (handled, error) {
	sum := handled{}
	for _, in := range c.Instances {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+in.Ops+"/metrics", nil)
		if err != nil {
			return nil, fmt.Errorf("scrape: %w", err)
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, fmt.Errorf("scrape: %w", err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("scrape: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			sum.read(line)
		}
	}
	return sum, nil
}

// read adds a line of /metrics if it is one of ours.
func (h handled) read(line string) {
	labels, ours := strings.CutPrefix(line, handledMetric)
	if !ours || !strings.Contains(labels, `route="/v1/check"`) && !strings.Contains(labels, `route="/v1/consume"`) {
		return
	}
	_, rest, _ := strings.Cut(labels, `le="`)
	bound, _, _ := strings.Cut(rest, `"`)
	le, err := strconv.ParseFloat(bound, 64) // +Inf, too
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

// within is the least bound that a part of all requests kept, as far as the histogram's bounds can tell; 0 without requests.
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
