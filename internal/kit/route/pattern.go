package route

import (
	"cmp"
	"errors"
	"strings"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// Pattern matches routes. It is literal text with wildcards. * stands for one or more characters other than slashes.
// ** at the end stands for any text, even an empty text. The zero value matches every route, and also requests
// without a route.
//
// Matching compares bytes and allocates nothing. A star matches no slash, so backtracking never leaves a segment.
type Pattern struct {
	text    string
	literal int  // number of bytes before the first wildcard
	tail    int  // index after the last star
	rest    bool // the pattern ends with **, which is not part of text
}

// Parse parses a pattern. The error says what a pattern must look like.
func Parse(text string) (Pattern, error) {
	if !bound.Route(text) {
		return Pattern{}, errors.New(bound.MustBeRoute)
	}
	body, rest := strings.CutSuffix(text, "**")
	if strings.Contains(body, "**") || rest && strings.HasSuffix(body, "*") {
		return Pattern{}, errors.New("must have ** at its end only; * stands for one or more characters without a slash")
	}
	p := Pattern{text: body, literal: len(body), tail: strings.LastIndexByte(body, '*') + 1, rest: rest}
	if star := strings.IndexByte(body, '*'); star >= 0 {
		p.literal = star
	}
	return p, nil
}

// String returns the text from which the pattern was parsed.
func (p Pattern) String() string {
	if p.rest {
		return p.text + "**"
	}
	return p.text
}

// isAny reports whether the pattern is the zero value.
func (p Pattern) isAny() bool { return p == Pattern{} }

// Exact reports whether the pattern has no wildcard.
func (p Pattern) Exact() bool { return !p.rest && p.literal == len(p.text) && p.text != "" }

// Match reports whether the pattern matches route.
func (p Pattern) Match(route string) bool {
	if p.isAny() {
		return true
	}
	if route == "" || !strings.HasPrefix(route, p.text[:p.literal]) {
		return false
	}
	if !p.rest && !strings.HasSuffix(route, p.text[p.tail:]) { // cheap: patterns with the same beginning rarely have the same end
		return false
	}
	at, in := p.literal, p.literal // positions in the pattern and in the route
	star, taken := -1, 0           // index of the last star, and where its match in the route ends so far
	for {
		switch {
		case at == len(p.text) && (p.rest || in == len(route)):
			return true
		case at < len(p.text) && p.text[at] == '*' && in < len(route) && route[in] != '/':
			star, taken = at, in+1
			at, in = at+1, in+1
		case at < len(p.text) && p.text[at] != '*' && in < len(route) && p.text[at] == route[in]:
			at, in = at+1, in+1
		case star >= 0 && taken < len(route) && route[taken] != '/': // the last star matches one more character; earlier stars need not
			taken++
			at, in = star+1, taken
		default:
			return false
		}
	}
}

// Sample returns a route that the pattern matches.
func (p Pattern) Sample() string {
	if p.text == "" {
		return "/"
	}
	return strings.ReplaceAll(p.text, "*", "x")
}

// Compare orders patterns so that the most specific comes first. Patterns without wildcards come first. Then patterns
// with a longer text before the first wildcard come first, and then longer patterns. A final ** does not count for the
// length. The pattern that matches everything is last. Compare returns 0 for patterns of equal precedence.
func (p Pattern) Compare(o Pattern) int {
	first := func(is bool) int {
		if is {
			return -1
		}
		return 1
	}
	switch order := cmp.Compare(o.literal, p.literal); {
	case p.Exact() != o.Exact():
		return first(p.Exact())
	case order != 0:
		return order
	case len(p.text) != len(o.text):
		return cmp.Compare(len(o.text), len(p.text))
	case p.rest == o.rest:
		return 0
	case p.isAny() || o.isAny():
		return first(o.isAny())
	default:
		return first(o.rest)
	}
}
