package bound

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestID_MatchesItsSentence(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(strings.TrimPrefix(MustBeID, "must match "))
	for _, s := range []string{
		"", "a", "Z9", "a.b_c:d-e", "-a", ".a", "_a", ":a", "a b", " a", "a/b", "{a}", "a{b}", "é", "a\x00", "\x7f", "a\n",
		strings.Repeat("x", MaxID), strings.Repeat("x", MaxID+1),
	} {
		got, want := ID(s), pattern.MatchString(s) && !strings.HasSuffix(s, "\n")
		assert.True(t, got == want, "ID(%.20q), %d bytes: %v, want %v", s, len(s), got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z0-9._:-]{0,130}`)).Draw(t, "id")
		got, want := ID(s), pattern.MatchString(s) && !strings.HasSuffix(s, "\n")
		require.True(t, got == want, "ID(%q): %v, want %v", s, got, want)
	})
}

func TestName_VisibleASCIIWithoutEight_NoDotFirst(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		want := c > ' ' && c <= '~' && !strings.ContainsRune(`"%\?#<>`, rune(c))
		assert.True(t, Name("x"+string([]byte{byte(c)})) == want, "x and %q", byte(c))
		assert.True(t, Name(string([]byte{byte(c)})) == (want && c != '.'), "%q alone", byte(c))
	}
	assert.True(t, Name(strings.Repeat("/", MaxName)) && !Name(strings.Repeat("/", MaxName+1)) && !Name(""))
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._:-]{0,127}`).Draw(t, "id")
		require.True(t, ID(s) && Name(s), "each id is a name: %q", s)
	})
}

func TestJoinAndTag_DifferentNames_DifferentTexts(t *testing.T) {
	t.Parallel()
	name := rapid.StringMatching(`[ab/{}:]{1,4}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := [3]string{name.Draw(t, "a"), name.Draw(t, "a"), name.Draw(t, "a")}, [3]string{name.Draw(t, "b"), name.Draw(t, "b"), name.Draw(t, "b")}
		require.True(t, (Join(a[:]...) == Join(b[:]...)) == (a == b), "%q and %q: %q", a, b, Join(a[:]...))
		require.True(t, (Tag(a[0]) == Tag(b[0])) == (a[0] == b[0]), "%q and %q", a[0], b[0])
		require.True(t, Untag(Tag(a[0])) == a[0] && !strings.ContainsAny(Tag(a[0]), "{}"), "%q", a[0])
		first, last, ok := Cut(Join(a[:2]...))
		require.True(t, ok && first == a[0] && last == a[1], "%q", a[:2])
	})
}

func TestAmount_EndsAreIncluded(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64][2]bool{ // results of Amount and Difference
		-MaxAmount - 1: {false, false}, -MaxAmount: {false, true}, -1: {false, true}, 0: {false, false}, 1: {true, true},
		MaxAmount: {true, true}, MaxAmount + 1: {false, false}, -1 << 63: {false, false}, 1<<63 - 1: {false, false},
	} {
		assert.Equal(t, want, [2]bool{Amount(n), Difference(n)}, "%d: amount, difference", n)
	}
	assert.Equal(t, MustBeAmount, MustBeInteger(1, MaxAmount))
}

func TestASCII_LengthAndAlphabetOfKeyRouteAdminKey(t *testing.T) {
	t.Parallel()
	x := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		check     func(string) bool
		good, bad []string
	}{
		"key":       {Key, []string{"!", "~", "a-b", x(MaxKey)}, []string{"", " ", "a b", "a\n", "\x7f", "é", x(MaxKey + 1)}},
		"route":     {Route, []string{" ", "/a b", "~", x(MaxRoute)}, []string{"", "\n", "/\x00", "\x7f", "/é", x(MaxRoute + 1)}},
		"admin key": {AdminKey, []string{x(MinAdminKey), x(MaxAdminKey)}, []string{"", x(MinAdminKey - 1), x(MaxAdminKey + 1), x(MinAdminKey) + " ", x(MinAdminKey) + "é"}},
	} {
		for _, s := range c.good {
			assert.True(t, c.check(s), "%s: %.20q is refused", name, s)
		}
		for _, s := range c.bad {
			assert.False(t, c.check(s), "%s: %.20q is accepted", name, s)
		}
	}
}

func TestMetadata_SizeDepthTextAndNumbers(t *testing.T) {
	t.Parallel()
	nested := func(levels int) string { return strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels) }
	filled := func(size int) string { return `{"a":"` + strings.Repeat("x", size-len(`{"a":""}`)) + `"}` }
	digits := strings.Repeat("9", maxMetadataNumber)
	for _, good := range []string{
		`{}`, `{"a":null,"b":[true,{"c":-1.5e-3}]}`, `{"a":"\\u0000"}`, `{"a":"\"\\"}`, filled(MaxMetadata), nested(MaxMetadataDepth),
		`{"a":1e-999,"b":` + digits + `}`, `{"a":1e001}`, `{"a":[{"b":-1.7976931348623158e308}]}`, `{"a":0e999}`, `{"a":"1e1000"}`, `{"a":"[[[[[[[[[[[[[[[[["}`,
	} {
		assert.True(t, Metadata([]byte(good)), "%.40s is refused", good)
	}
	for _, bad := range []string{
		``, `1`, `[]`, `"x"`, `null`, `{"a":"\u0000"}`, `{"\u0000":1}`, `{"a":["\\\u0000"]}`, filled(MaxMetadata + 1), nested(MaxMetadataDepth + 1),
		`{"a":1.7976931348623159e308}`, `{"a":[{"b":-1e309}]}`, `{"a":1,"b":1E+999}`, `{"a":` + digits[1:60] + `e250}`,
		`{"a":1e1000}`, `{"a":1E+1000}`, `{"a":9` + digits + `}`, `{"a":1e0001}`, `{"a":1e-0001}`,
	} {
		assert.False(t, Metadata([]byte(bad)), "%.40s is accepted", bad)
	}
}

// The checks get bytes from unknown clients. Metadata must not panic for any bytes, and must not accept a number that
// PostgreSQL's numeric cannot store, or that is infinite for a reader with float64.
func FuzzMetadata(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1e0001}`, `{"a":1e309}`, `{"`, `{"\`, `{"a":[-`, `{"a":"\u0000"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		accepted := Metadata(object)
		var plain map[string]json.Number
		if !accepted || json.Unmarshal(object, &plain) != nil {
			return
		}
		for name, number := range plain {
			value, err := number.Float64()
			assert.True(t, len(number) <= maxMetadataNumber && err == nil && !math.IsInf(value, 0), "%q: %s", name, number)
		}
	})
}
