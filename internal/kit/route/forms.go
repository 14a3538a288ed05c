package route

import (
	"slices"
	"strings"
)

// The forms: the ways in which clients can spell one route differently. A router behind the service may treat spellings
// that differ only in a form as the same route.
const (
	FormCase          = "case"           // upper-case and lower-case letters
	FormTrailingSlash = "trailing_slash" // slashes, blanks and control characters at the end of the route
	FormMatrix        = "matrix"         // parameters of a segment, after a semicolon
	FormEncodedSlash  = "encoded_slash"  // %2f for a slash
)

// FormNames returns the names of all forms. Name i belongs to bit i of Forms.
func FormNames() []string {
	return []string{FormCase, FormTrailingSlash, FormMatrix, FormEncodedSlash}
}

// Forms is a set of forms. The zero value is empty.
type Forms uint8

const (
	letterCase Forms = 1 << iota
	trailingSlash
	matrix
	encodedSlash

	// AllForms has all forms.
	AllForms = letterCase | trailingSlash | matrix | encodedSlash
)

// FormsOf returns the set of the forms with these names. It ignores unknown names.
func FormsOf(forms []string) Forms {
	var set Forms
	for i, name := range FormNames() {
		if slices.Contains(forms, name) {
			set |= 1 << i
		}
	}
	return set
}

// Normalize returns the normalized spelling of a route. All spellings that differ only in these forms have the same
// normalized spelling. Normalize allocates nothing if the route already has this spelling.
//
// If parameters or encoded slashes are removed, the result may have new segments . and .., which are then resolved.
// For example, /..;/search becomes /search.
func Normalize(route string, forms Forms) string {
	if forms == 0 || isNormal(route) {
		return route
	}
	for {
		before := route
		if forms&encodedSlash != 0 {
			route = strings.ReplaceAll(strings.ReplaceAll(route, "%2F", "/"), "%2f", "/")
		}
		if forms&matrix != 0 {
			route = withoutParameters(route)
		}
		if route != before {
			route = resolve(route)
		}
		if forms&trailingSlash != 0 {
			route = withoutEnd(route)
		}
		if route == before { // one step may make another step necessary, as in /x/..%2f%00
			break
		}
	}
	if forms&letterCase != 0 {
		route = strings.ToLower(route)
	}
	return route
}

// isNormal reports whether no form changes the route.
func isNormal(route string) bool {
	for i := range len(route) {
		if c := route[i]; c >= 'A' && c <= 'Z' || c == ';' || c == '%' {
			return false
		}
	}
	return route == "" || withoutEnd(route) == route
}

// withoutParameters removes the semicolon in each segment, and the text after it.
func withoutParameters(route string) string {
	if strings.IndexByte(route, ';') < 0 {
		return route
	}
	b := make([]byte, 0, len(route))
	skip := false
	for i := range len(route) {
		switch route[i] {
		case '/':
			skip = false
		case ';':
			skip = true
		}
		if !skip {
			b = append(b, route[i])
		}
	}
	return string(b)
}

// withoutEnd removes slashes, blanks and control characters at the end of the route, even if they are escaped. It
// never removes the first character.
func withoutEnd(route string) string {
	for n := len(route); n > 1; n = len(route) {
		switch c := route[n-1]; {
		case c == '/' || c == ' ':
			route = route[:n-1]
		case n > 3 && route[n-3] == '%' && isBlank(nibble(route, n-2), nibble(route, n-1)):
			route = route[:n-3]
		default:
			return route
		}
	}
	return route
}

// isBlank reports whether two hexadecimal digits are the code of a blank or of a control character.
func isBlank(high, low int) bool {
	c := high<<4 | low
	return high >= 0 && low >= 0 && (c <= ' ' || c == 0x7f)
}

// In returns patterns for normalized routes. If p matches a route, they match its normalized spelling. A normalized
// route may lack its last slash. So for /v1/** there is a second pattern, /v1.
func (p Pattern) In(forms Forms) []Pattern {
	keep := forms
	if p.rest {
		keep &^= trailingSlash
	}
	text := Normalize(p.text, keep)
	if p.rest {
		text += "**"
	}
	normal, err := Parse(text)
	if err != nil { // no text of the pattern is left
		return []Pattern{p}
	}
	patterns := []Pattern{normal}
	if p.rest && forms&trailingSlash != 0 && len(normal.text) > 1 && strings.HasSuffix(normal.text, "/") {
		if bare, err := Parse(withoutEnd(normal.text)); err == nil {
			patterns = append(patterns, bare)
		}
	}
	return patterns
}

// Spellings caches the normalized spellings of one route, for two sets of forms, because few sets are in use. The zero
// value is empty.
type Spellings [2]struct {
	forms Forms // 0: this element is unused
	text  string
}

// In returns the normalized spelling of the route text for a set of forms. text must be the same in all calls.
func (s *Spellings) In(text string, forms Forms) string {
	if forms == 0 {
		return text
	}
	for i := range s {
		if s[i].forms == 0 {
			s[i].forms, s[i].text = forms, Normalize(text, forms)
		}
		if s[i].forms == forms {
			return s[i].text
		}
	}
	return Normalize(text, forms)
}
