package route

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

func TestFromURI_OneSpelling(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"/search":                        "/search",
		"/search?q=/../x":                "/search",
		"/search#x":                      "/search",
		"/search%3Fq":                    "/search%3Fq",
		"//search":                       "/search",
		"/./search":                      "/search",
		"/a/../search":                   "/search",
		"/a/%2e%2E/search":               "/search",
		"/%73%65arch":                    "/search",
		"/../../search":                  "/search",
		"/a/b/..":                        "/a/",
		"/a/.":                           "/a/",
		"/..":                            "/",
		"":                               "/",
		"?q":                             "/",
		"/":                              "/",
		"///":                            "/",
		"/a/":                            "/a/",
		"/a//b///":                       "/a/b/",
		"/files/a%2fb":                   "/files/a%2Fb",
		"/100%":                          "/100%25",
		"/100%25":                        "/100%25",
		"/%2":                            "/%252",
		"/%zz":                           "/%25zz",
		"/%2541":                         "/%2541",
		"/a b":                           "/a%20b",
		"/a%20b":                         "/a%20b",
		"/\u00e9":                        "/%C3%A9",
		"/%c3%a9":                        "/%C3%A9",
		"/a%0d%0aX: y":                   "/a%0D%0AX:%20y",
		"/Search;v=1":                    "/Search;v=1",
		"/~user/{id}":                    "/~user/{id}",
		"https://example.com/search?q":   "/search",
		"https://example.com":            "/",
		"/to?u=https://example.com/x":    "/to",
		"/to/https://example.com/x":      "/to/https:/example.com/x",
		"*":                              "/*",
		"search":                         "/search",
		"/" + strings.Repeat("%41", 900): "/" + strings.Repeat("A", 900),
	} {
		assert.Equal(t, want, FromURI(uri), "%.60q", uri)
	}
}

// All spellings of a path give the same route, and the catalogue accepts this route.
func TestFromURI_OtherSpellingsGiveSameRoute(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		segment := rapid.StringMatching(`[a-z][A-Za-z0-9._~!$&'()*+,;=:@-]{0,6}`)
		segments := rapid.SliceOfN(segment, 1, 5).Draw(t, "segments")
		want := "/" + strings.Join(segments, "/")
		var b strings.Builder
		for _, s := range segments {
			b.WriteString(rapid.SampledFrom([]string{"/", "//", "/./", "/x/../", "/%2e/", "/y/%2E./"}).Draw(t, "before"))
			for i := range len(s) {
				switch rapid.IntRange(0, 2).Draw(t, "spelling") {
				case 0:
					b.WriteByte(s[i])
				case 1:
					fmt.Fprintf(&b, "%%%02x", s[i])
				default:
					fmt.Fprintf(&b, "%%%02X", s[i])
				}
			}
		}
		b.WriteString(rapid.SampledFrom([]string{"", "?", "?a=/b/..", "#f"}).Draw(t, "behind"))
		assert.Equal(t, want, FromURI(b.String()), "%q", b.String())
	})
}

func TestFromURI_PrintableAndIdempotent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		uri := string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "uri"))
		if rapid.Bool().Draw(t, "dotted") {
			uri = strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"/", ".", "..", "%2f", "%", "2", "e", "?", "a"}), 0, 20).Draw(t, "parts"), "")
		}
		got := FromURI(uri)
		assert.Equal(t, got, FromURI(got), "%q becomes %q, and then", uri, got)
		assert.True(t, got[0] == '/' && bound.ASCII(got, '!', 1, 4*40), "%q becomes %q", uri, got)
		if plain := path.Clean(got); got != plain && got != plain+"/" {
			t.Errorf("%q becomes %q, and path.Clean has more to clean: %q", uri, got, plain)
		}
	})
}
