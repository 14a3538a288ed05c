package route

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

func TestPattern_Match(t *testing.T) {
	t.Parallel()
	for pattern, routes := range map[string]struct{ yes, no string }{
		"/v1/search":    {"/v1/search", "/v1/search/ /v1/searc /v1/searchx /V1/search"},
		"/v1/*":         {"/v1/a /v1/abc /v1/*", "/v1/ /v1/a/ /v1/a/b /v1 /v2/a"},
		"/v1/*/items":   {"/v1/a/items", "/v1//items /v1/a/b/items /v1/a/items/ /v1/aitems"},
		"/v1/**":        {"/v1/ /v1/a /v1/a/b/c /v1//", "/v1 /v2/a"},
		"**":            {"/ a /v1/a/b", ""},
		"*":             {"a search", "/a a/b"},
		"/a*b*c":        {"/aXbYc /axbbcbc /aXXbYYc", "/abc /aXbc /aXbYcZ /aX/bYc"},
		"/*/b*/**":      {"/a/bx/ /a/bx/y/z", "/a/b/ /a/x/bx/ //bx/"},
		"*.json":        {"a.json a.json.json", ".json a/b.json a.json/"},
		"GET-/v1/*":     {"GET-/v1/a", "POST-/v1/a"},
		"/a*a*a*a*a*b":  {"/aaaaaaaaaaab", "/aaaaaaaaaaa /a/aaaaaaaaab"},
		"/x/*y/*y/*z":   {"/x/yy/ayy/zzz /x/1y/2y/3z", "/x/y/2y/3z /x/1y/2y/3y"},
		"/a/**":         {"/a/**", "/a"},
		"/{id}/[a-z]/?": {"/{id}/[a-z]/?", "/1/a/b"},
	} {
		p, err := Parse(pattern)
		require.NoError(t, err, pattern)
		require.Equal(t, pattern, p.String())
		require.Equal(t, !strings.Contains(pattern, "*"), p.Exact(), pattern)
		for _, route := range strings.Fields(routes.yes) {
			require.True(t, p.Match(route), "%s should match %s", pattern, route)
		}
		for _, route := range strings.Fields(routes.no) {
			require.False(t, p.Match(route), "%s should not match %s", pattern, route)
		}
		require.True(t, p.Match(p.Sample()), "%s should match %s", pattern, p.Sample())
		require.False(t, p.Match(""), "%s should not match a request without a route", pattern)
	}
	require.True(t, Pattern{}.Match(""))
	require.True(t, Pattern{}.Match("/a"))
}

func TestPattern_MatchesLikeRegexp(t *testing.T) {
	t.Parallel()
	text := rapid.StringOfN(rapid.SampledFrom([]rune("ab/*")), 1, 12, -1)
	route := rapid.StringOfN(rapid.SampledFrom([]rune("ab/")), 1, 16, -1)
	rapid.Check(t, func(t *rapid.T) {
		pattern := text.Draw(t, "pattern")
		body, rest := strings.CutSuffix(pattern, "**")
		p, err := Parse(pattern)
		if strings.Contains(body, "**") || rest && strings.HasSuffix(body, "*") {
			require.Error(t, err, "%s is accepted", pattern)
			return
		}
		require.NoError(t, err)
		expression := "^" + strings.ReplaceAll(regexp.QuoteMeta(body), `\*`, `[^/]+`)
		if !rest {
			expression += "$"
		}
		r := route.Draw(t, "route")
		want := regexp.MustCompile(expression).MatchString(r)
		require.True(t, p.Match(r) == want, "%s matches %s: %v, want %v", pattern, r, !want, want)
	})
}

func TestPattern_Compare(t *testing.T) {
	t.Parallel()
	// Patterns without wildcards come first. Then come patterns with a longer text before the first wildcard, then
	// longer patterns. The pattern that matches everything is last.
	want := []string{"/v1/search/x", "/v1/search", "/a", "/v1/search/*", "/v1/search/**", "/v1/*/items", "/v1/*", "/v1/**", "/*", "*", "**", ""}
	patterns := make([]Pattern, len(want))
	for i, text := range want {
		if text != "" {
			var err error
			patterns[i], err = Parse(text)
			require.NoError(t, err)
		}
	}
	shuffled := slices.Clone(patterns)
	slices.Reverse(shuffled)
	slices.SortStableFunc(shuffled, Pattern.Compare)
	for i, p := range shuffled {
		require.Equal(t, want[i], p.String())
	}
	require.Zero(t, patterns[3].Compare(patterns[3]))
	require.True(t, patterns[len(patterns)-1].isAny())
}

func TestParse_Ambiguous_Refused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "/a/**/b", "***", "/a***", "**/a", "****", "/\n", "/\x00", "/é", strings.Repeat("x", bound.MaxRoute+1), strings.Repeat("x", 1<<20), "\xff",
	} {
		_, err := Parse(text)
		require.Error(t, err, "%.20q", text)
		require.Less(t, len(err.Error()), 200)
	}
	_, err := Parse(strings.Repeat("x", bound.MaxRoute))
	require.NoError(t, err)
}

func BenchmarkPattern(b *testing.B) {
	p, err := Parse("/v1/*/items/*/parts/**")
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if !p.Match("/v1/shop-17/items/4711/parts/x/y") {
			b.Fatal("no match")
		}
	}
}
