package rule

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseRate_ReadsCountAndPeriod(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Rate{
		"60/s":               {Count: 60, Period: time.Second},
		"60/sec":             {Count: 60, Period: time.Second},
		"60/second":          {Count: 60, Period: time.Second},
		"100/min":            {Count: 100, Period: time.Minute},
		"100/m":              {Count: 100, Period: time.Minute},
		"100/minutes":        {Count: 100, Period: time.Minute},
		"1000/h":             {Count: 1000, Period: time.Hour},
		"1000/hour":          {Count: 1000, Period: time.Hour},
		"5/30s":              {Count: 5, Period: 30 * time.Second},
		"10/day":             {Count: 10, Period: Day},
		"10/2d":              {Count: 10, Period: 2 * Day},
		"3/w":                {Count: 3, Period: 7 * Day},
		"1/week":             {Count: 1, Period: 7 * Day},
		"1/ms":               {Count: 1, Period: time.Millisecond},
		"7/250ms":            {Count: 7, Period: 250 * time.Millisecond},
		"1/366d":             {Count: 1, Period: 366 * Day},
		"9007199254740991/s": {Count: 1<<53 - 1, Period: time.Second},
		"1000/month":         {Count: 1000, Period: 31 * Day, Month: true},
		"1000/1month":        {Count: 1000, Period: 31 * Day, Month: true},
	} {
		got, err := ParseRate(in)
		assert.True(t, err == nil && got == want, "ParseRate(%q) = %+v, %v; want %+v", in, got, err, want)
	}
}

func TestParseRate_RefusesAndNamesTheBound(t *testing.T) {
	t.Parallel()
	for in, bound := range map[string]string{
		"":                                   "<count>/<period>",
		"60":                                 "<count>/<period>",
		"60/":                                "ms, s, min, h, day, week",
		"/s":                                 "1 to 9007199254740991",
		"0/s":                                "1 to 9007199254740991",
		"-1/s":                               "1 to 9007199254740991",
		"+1/s":                               "1 to 9007199254740991",
		"1.5/s":                              "1 to 9007199254740991",
		"1e3/s":                              "1 to 9007199254740991",
		"NaN/s":                              "1 to 9007199254740991",
		" 60/s":                              "1 to 9007199254740991",
		"60 /s":                              "1 to 9007199254740991",
		"9007199254740992/s":                 "1 to 9007199254740991",
		"1" + strings.Repeat("0", 30):        "<count>/<period>",
		"1" + strings.Repeat("0", 30) + "/s": "1 to 9007199254740991",
		"60/ s":                              "ms, s, min, h, day, week",
		"60/2month":                          "one month",
		"60/months":                          "one month",
		"60/us":                              "ms, s, min, h, day, week",
		"60/s/s":                             "ms, s, min, h, day, week",
		"60/S":                               "ms, s, min, h, day, week",
		"60/0s":                              "1 to 9007199254740991",
		"60/367d":                            "366 days",
		"60/31622400001ms":                   "366 days",
		"60/9007199254740991w":               "366 days",
		"60/99999999999999999999s":           "1 to 9007199254740991",
		"60/" + strings.Repeat("x", 1e6):     "ms, s, min, h, day, week",
	} {
		_, err := ParseRate(in)
		var field *FieldError
		assert.True(t, errors.As(err, &field) && field.Field == "rate" && strings.Contains(field.Reason, bound),
			"ParseRate(%q): %v; want an error on rate that names %q", clip(in), err, bound)
		if err != nil {
			assert.LessOrEqual(t, len(err.Error()), 200, "ParseRate(%q): bytes of the error", clip(in))
		}
	}
}

func TestRate_String_IsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := Rate{
			Count:  rapid.Int64Range(1, maxExact).Draw(t, "count"),
			Period: time.Duration(rapid.Int64Range(1, int64(maxPeriod/time.Millisecond)).Draw(t, "ms")) * time.Millisecond,
		}
		if rapid.IntRange(0, 9).Draw(t, "month") == 0 {
			r.Period, r.Month = longestMonth, true
		}
		got, err := ParseRate(r.String())
		require.True(t, err == nil && got == r, "ParseRate(%q) = %+v, %v; want %+v", r, got, err, r)
	})
}

func TestRate_String_IsTheShortestForm(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"60/60s": "60/min", "1/7d": "1/week", "5/30s": "5/30s", "1/24h": "1/day", "9/1500ms": "9/1500ms",
	} {
		r, err := ParseRate(in)
		assert.True(t, err == nil && fmt.Sprint(r) == want, "%s prints as %s (%v), want %s", in, r, err, want)
	}
}
