package route

import (
	"slices"
	"strings"

	"github.com/quotasvc/quotasvc/internal/kit/cowmap"
)

// Index finds the patterns that match a route. It is a tree of segments (the texts between slashes). So the time of a
// search does not grow with the number of patterns that have the same beginning. T is the type of a pattern's value.
// The zero value is empty. Many goroutines may read and fork an Index that no longer changes.
type Index[T comparable] struct {
	exact  cowmap.Map[[]T] // patterns without a wildcard
	root   segment[T]
	any    []T    // values of the pattern that matches every route
	forked *owner // owner of the nodes that no other index shares; nil: this index owns all nodes
}

// owner identifies the index to which a node belongs.
type owner struct{ _ byte }

// segment is a node of the tree: the segments of a pattern up to a slash. All patterns that begin with these segments
// go through the node.
type segment[T comparable] struct {
	owner   *owner
	literal *cowmap.Map[*segment[T]] // nodes of next segments without a star; nil: there are none
	star    *segment[T]              // node of a next segment that is only a star
	partial []partial[T]             // nodes of next segments with a star and other text

	ends []T       // values of patterns that end here
	rest []T       // values of patterns that end here with **
	tail []tail[T] // values of patterns whose last segment has text before **
}

// partial is the node of a segment with a star and other text, such as v*-beta.
type partial[T comparable] struct {
	pattern Pattern
	next    *segment[T]
}

// tail is the last segment of a pattern with text before **, such as a** in /v1/a**.
type tail[T comparable] struct {
	pattern Pattern
	value   T
}

// Fork returns an index that begins as a copy of x and may be changed. x must not be changed from then on. The fork
// shares its nodes with x, so a change copies only the nodes of one pattern.
func (x *Index[T]) Fork() Index[T] {
	by := &owner{}
	return Index[T]{exact: x.exact.Fork(), root: *x.root.fork(by), any: slices.Clip(x.any), forked: by}
}

// fork returns a copy of n that may be changed.
func (n *segment[T]) fork(by *owner) *segment[T] {
	other := &segment[T]{
		owner: by, star: n.star, partial: slices.Clone(n.partial), ends: slices.Clip(n.ends), rest: slices.Clip(n.rest), tail: slices.Clip(n.tail),
	}
	if n.literal != nil {
		literal := n.literal.Fork()
		other.literal = &literal
	}
	return other
}

// Add adds a value for pattern p.
func (x *Index[T]) Add(p Pattern, value T) {
	switch {
	case p.isAny():
		x.any = append(x.any, value)
	case p.Exact():
		x.exact.Set(p.text, append(slices.Clip(x.exact.Get(p.text)), value))
	default:
		x.root.add(x.forked, p.text, p.rest, value)
	}
}

// Remove removes a value that was added for p.
func (x *Index[T]) Remove(p Pattern, value T) {
	switch {
	case p.isAny():
		x.any = without(x.any, value)
	case p.Exact():
		if left := without(x.exact.Get(p.text), value); len(left) > 0 {
			x.exact.Set(p.text, left)
		} else {
			x.exact.Delete(p.text)
		}
	default:
		x.root.remove(x.forked, p.text, p.rest, value)
	}
}

// without returns a copy of list without value.
func without[T comparable](list []T, value T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return v == value })
}

// add adds a value below the node n, which the caller may change. left and rest describe the part of the pattern that
// follows the node.
func (n *segment[T]) add(by *owner, left string, rest bool, value T) {
	text, after, more := strings.Cut(left, "/")
	switch {
	case !more && rest && text == "":
		n.rest = append(n.rest, value)
	case !more && rest:
		n.tail = append(n.tail, tail[T]{part(text, true), value})
	case more:
		n.child(by, text).add(by, after, rest, value)
	default:
		child := n.child(by, text)
		child.ends = append(child.ends, value)
	}
}

// remove removes a value below the node n, which the caller may change.
func (n *segment[T]) remove(by *owner, left string, rest bool, value T) {
	text, after, more := strings.Cut(left, "/")
	switch {
	case !more && rest && text == "":
		n.rest = without(n.rest, value)
		return
	case !more && rest:
		n.tail = without(n.tail, tail[T]{part(text, true), value})
		return
	}
	child := n.child(by, text)
	if more {
		child.remove(by, after, rest, value)
	} else {
		child.ends = without(child.ends, value)
	}
	if child.isEmpty() {
		n.drop(text)
	}
}

// isEmpty reports whether no pattern ends at n or below n.
func (n *segment[T]) isEmpty() bool {
	return (n.literal == nil || n.literal.Len() == 0) && n.star == nil && len(n.partial) == 0 && len(n.ends) == 0 && len(n.rest) == 0 && len(n.tail) == 0
}

// drop removes the child node for a segment.
func (n *segment[T]) drop(text string) {
	switch {
	case text == "*":
		n.star = nil
	case strings.Contains(text, "*"):
		n.partial = slices.DeleteFunc(n.partial, func(p partial[T]) bool { return p.pattern.text == text })
	default:
		n.literal.Delete(text)
	}
}

// part returns the Pattern for one segment of a pattern.
func part(text string, rest bool) Pattern {
	p := Pattern{text: text, literal: len(text), tail: strings.LastIndexByte(text, '*') + 1, rest: rest}
	if star := strings.IndexByte(text, '*'); star >= 0 {
		p.literal = star
	}
	return p
}

// child returns the child node for a segment, and creates the node if necessary. If the caller may change n, it may
// also change this node.
func (n *segment[T]) child(by *owner, text string) *segment[T] {
	mine := func(next *segment[T]) *segment[T] {
		switch {
		case next == nil:
			return &segment[T]{owner: by}
		case by != nil && next.owner != by:
			return next.fork(by)
		}
		return next
	}
	switch {
	case text == "*":
		n.star = mine(n.star)
		return n.star
	case strings.Contains(text, "*"):
		for i := range n.partial {
			if p := &n.partial[i]; p.pattern.text == text {
				p.next = mine(p.next)
				return p.next
			}
		}
		n.partial = append(n.partial, partial[T]{part(text, false), mine(nil)})
		return n.partial[len(n.partial)-1].next
	}
	if n.literal == nil {
		n.literal = &cowmap.Map[*segment[T]]{}
	}
	before := n.literal.Get(text)
	next := mine(before)
	if next != before {
		n.literal.Set(text, next)
	}
	return next
}

// Append appends to list the values of the patterns that match route. Only the zero Pattern matches an empty route.
func (x *Index[T]) Append(list []T, route string) []T {
	list = append(list, x.any...)
	if route == "" {
		return list
	}
	list = append(list, x.exact.Get(route)...)
	return x.root.append(list, route, true)
}

// append appends the values of patterns that match the rest of a route below the node n. more is false if the route
// has no further segment.
func (n *segment[T]) append(list []T, route string, more bool) []T {
	if !more {
		return append(list, n.ends...)
	}
	list = append(list, n.rest...)
	for i := range n.tail {
		if n.tail[i].pattern.Match(route) {
			list = append(list, n.tail[i].value)
		}
	}
	if n.star == nil && n.literal == nil && n.partial == nil {
		return list
	}
	text, after, more := strings.Cut(route, "/")
	if n.literal != nil {
		if next := n.literal.Get(text); next != nil {
			list = next.append(list, after, more)
		}
	}
	if text == "" {
		return list
	}
	if n.star != nil {
		list = n.star.append(list, after, more)
	}
	for i := range n.partial {
		if n.partial[i].pattern.Match(text) {
			list = n.partial[i].next.append(list, after, more)
		}
	}
	return list
}
