package limitheaders

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// item is an Item of a structured field: a string with parameters that are integers or strings.
type item struct {
	value      string
	parameters map[string]any
}

// parseList parses a List of such Items by RFC 9651, section 4.2. It fails the test if that section allows a parser
// to refuse the field.
func parseList(t testing.TB, field string) []item {
	t.Helper()
	rest := strings.Trim(field, " ")
	var out []item
	for rest != "" {
		var it item
		it, rest = parseItem(t, field, rest)
		out = append(out, it)
		rest = strings.TrimLeft(rest, " \t")
		if rest == "" {
			return out
		}
		require.True(t, rest[0] == ',', "%q: no comma at %q", field, rest)
		rest = strings.TrimLeft(rest[1:], " \t")
		require.NotEmpty(t, rest, "%q: a comma at the end", field)
	}
	return out
}

func parseItem(t testing.TB, field, rest string) (item, string) {
	t.Helper()
	it := item{parameters: map[string]any{}}
	it.value, rest = parseString(t, field, rest)
	for strings.HasPrefix(rest, ";") {
		rest = strings.TrimLeft(rest[1:], " ")
		end := strings.IndexFunc(rest, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("_-.*", r)
		})
		require.True(t, end > 0 && rest[end] == '=' && (rest[0] == '*' || rest[0] >= 'a' && rest[0] <= 'z'),
			"%q: a bad parameter at %q", field, rest)
		key := rest[:end]
		if _, twice := it.parameters[key]; twice {
			t.Fatalf("%q: duplicate %s", field, key) // the RFC permits a duplicate, but the service must not send one
		}
		rest = rest[end+1:]
		if strings.HasPrefix(rest, `"`) {
			it.parameters[key], rest = parseString(t, field, rest)
		} else {
			it.parameters[key], rest = parseInt(t, field, rest)
		}
	}
	return it, rest
}

// parseString parses a string at the start of a text (RFC 9651, section 4.2.5). It also returns the text after the
// string.
func parseString(t testing.TB, field, rest string) (value, after string) {
	t.Helper()
	require.True(t, rest != "" && rest[0] == '"', "%q: no string at %q", field, rest)
	rest = rest[1:]
	for {
		require.NotEmpty(t, rest, "%q: the string does not end", field)
		c := rest[0]
		rest = rest[1:]
		if c == '"' {
			return value, rest
		}
		if c == '\\' {
			require.True(t, rest != "" && (rest[0] == '"' || rest[0] == '\\'), "%q: a bad escape at %q", field, rest)
			c, rest = rest[0], rest[1:]
		} else if c < ' ' || c > '~' {
			t.Fatalf("%q: byte %#x in a string", field, c)
		}
		value += string(c)
	}
}

// parseInt parses an integer at the start of a text (RFC 9651, section 4.2.4, without decimals). It also returns the
// text after the integer.
func parseInt(t testing.TB, field, rest string) (n int64, after string) {
	t.Helper()
	end := 0
	for end < len(rest) && (rest[end] >= '0' && rest[end] <= '9' || end == 0 && rest[end] == '-') {
		end++
	}
	n, err := strconv.ParseInt(rest[:end], 10, 64)
	require.True(t, err == nil && end <= 15, "%q: a bad integer at %q", field, rest)
	return n, rest[end:]
}
