package httpapi

import (
	"strconv"
	"strings"
	"testing"
)

// item is an Item of a structured field: a string with parameters that are integers.
type item struct {
	value      string
	parameters map[string]any
}

// parseList parses a List of such Items by RFC 9651, section 4.2, or fails the test. Anything the section lets a parser refuse
// is refused.
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
		if rest[0] != ',' {
			t.Fatalf("%q: no comma at %q", field, rest)
		}
		if rest = strings.TrimLeft(rest[1:], " \t"); rest == "" {
			t.Fatalf("%q: a comma at the end", field)
		}
	}
	return out
}

func parseItem(t testing.TB, field, rest string) (item, string) {
	t.Helper()
	it := item{parameters: map[string]any{}}
	if rest[0] != '"' {
		t.Fatalf("%q: no string at %q", field, rest)
	}
	rest = rest[1:]
	for {
		if rest == "" {
			t.Fatalf("%q: the string does not end", field)
		}
		c := rest[0]
		rest = rest[1:]
		if c == '"' {
			break
		}
		if c == '\\' {
			if rest == "" || rest[0] != '"' && rest[0] != '\\' {
				t.Fatalf("%q: a bad escape at %q", field, rest)
			}
			c, rest = rest[0], rest[1:]
		} else if c < ' ' || c > '~' {
			t.Fatalf("%q: byte %#x in a string", field, c)
		}
		it.value += string(c)
	}
	for strings.HasPrefix(rest, ";") {
		rest = strings.TrimLeft(rest[1:], " ")
		end := strings.IndexFunc(rest, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("_-.*", r)
		})
		if end <= 0 || rest[end] != '=' || rest[0] != '*' && (rest[0] < 'a' || rest[0] > 'z') {
			t.Fatalf("%q: a bad parameter at %q", field, rest)
		}
		key := rest[:end]
		rest = rest[end+1:]
		end = 0
		for end < len(rest) && (rest[end] >= '0' && rest[end] <= '9' || end == 0 && rest[end] == '-') {
			end++
		}
		n, err := strconv.ParseInt(rest[:end], 10, 64)
		if err != nil || end > 15 {
			t.Fatalf("%q: a bad integer at %q", field, rest)
		}
		it.parameters[key], rest = n, rest[end:]
	}
	return it, rest
}
