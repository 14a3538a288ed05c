package route

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNormalize_Forms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ route, form, want string }{
		{"/Search", FormCase, "/search"},
		{"/search/", FormTrailingSlash, "/search"},
		{"/search%20", FormTrailingSlash, "/search"},
		{"/search%00", FormTrailingSlash, "/search"},
		{"/search%7f/%0A ", FormTrailingSlash, "/search"},
		{"/", FormTrailingSlash, "/"},
		{"/%20", FormTrailingSlash, "/"},
		{"/search%21", FormTrailingSlash, "/search%21"},
		{"/search;x=1", FormMatrix, "/search"},
		{"/a;b/c;d=e/f", FormMatrix, "/a/c/f"},
		{"/..;/search", FormMatrix, "/search"},
		{"/x/..;a/search", FormMatrix, "/search"},
		{"/;x", FormMatrix, "/"},
		{"/search%2f", FormEncodedSlash, "/search/"},
		{"/x%2F..%2fsearch", FormEncodedSlash, "/search"},
		{"search of users", FormCase, "search of users"},
		{"GET-/V1/a;x", FormMatrix, "GET-/V1/a"},
	} {
		require.Equal(t, c.want, Normalize(c.route, FormsOf([]string{c.form})), c.route)
	}
	require.Equal(t, "/search", Normalize("/x/..;/..;a=b/Search;c%2f%00/%20/", AllForms))
	require.Equal(t, "/Search;x/", Normalize("/Search;x/", 0))
}

// Normalizing a route that is already normalized changes nothing.
func TestNormalize_Idempotent(t *testing.T) {
	t.Parallel()
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"/", ".", "..", ";", "%2f", "%2F", "%00", "%20", " ", "A", "b", "%", "x=1"}), 1, 16)
	rapid.Check(t, func(t *rapid.T) {
		route := strings.Join(parts.Draw(t, "parts"), "")
		forms := Forms(rapid.IntRange(0, int(AllForms)).Draw(t, "forms"))
		once := Normalize(route, forms)
		require.Equal(t, once, Normalize(once, forms), "%q becomes %q, and then", route, once)
		require.NotEmpty(t, once, "%q becomes nothing", route)
	})
}

func TestNormalize_NothingToDo_NoAllocation(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(100, func() { Normalize("/v1/items/4711", AllForms) }))
}

// Pattern.In returns patterns that match the normalized spelling of each route that the pattern matches.
func TestPattern_In_MatchesNormalizedRoutes(t *testing.T) {
	t.Parallel()
	matches := func(patterns []Pattern, route string) bool {
		return slices.ContainsFunc(patterns, func(p Pattern) bool { return p.Match(route) })
	}
	for pattern, routes := range map[string]struct{ yes, no string }{
		"/v1/Search":   {"/v1/search /V1/SEARCH/ /v1/search;x /v1%2fsearch /x/..;/v1/search", "/v1/searchx /v1"},
		"/v1/search/":  {"/v1/search /v1/search/", "/v1"},
		"/v1/**":       {"/v1/ /v1 /v1/a /V1/a/b/ /v1%2fa", "/v10 /v2"},
		"/v1/*/items":  {"/v1/A;v=1/items/ /v1/a/ITEMS%20", "/v1/items"},
		"/v1/*":        {"/v1/a/ /v1/a;b", "/v1/ /v1/a/b"},
		"**":           {"/ /a/", ""},
		"/**":          {"/ /a/", ""},
		"/v1/files%2f": {"/v1/files /v1/files/", "/v1/file"},
	} {
		p, err := Parse(pattern)
		require.NoError(t, err)
		for _, route := range strings.Fields(routes.yes) {
			require.True(t, matches(p.In(AllForms), Normalize(route, AllForms)), "%s should match %s", pattern, route)
		}
		for _, route := range strings.Fields(routes.no) {
			require.False(t, matches(p.In(AllForms), Normalize(route, AllForms)), "%s should not match %s", pattern, route)
		}
		require.Equal(t, []Pattern{p}, p.In(0))
	}
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"/a", "/B", "/;x", "/c;y=1", "/*", "/d%2fe"}), 1, 5)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(parts.Draw(t, "parts"), "") + rapid.SampledFrom([]string{"", "/", "/**"}).Draw(t, "end")
		p, err := Parse(text)
		require.NoError(t, err)
		forms := Forms(rapid.IntRange(0, int(AllForms)).Draw(t, "forms"))
		route := strings.ReplaceAll(p.text, "*", rapid.SampledFrom([]string{"x", "Y;z", "q"}).Draw(t, "star"))
		require.True(t, matches(p.In(forms), Normalize(route, forms)),
			"%s in forms %b is %v, and does not match %s", text, forms, p.In(forms), Normalize(route, forms))
	})
}
