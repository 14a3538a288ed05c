package route

import "strings"

// Index finds the patterns that match a route, in a time that does not grow with the number of patterns that begin alike. It is a tree of
// segments, the texts between slashes. T is what a pattern stands for. The zero value is empty. An Index may be read by many goroutines
// once nothing is added any more.
type Index[T any] struct {
	exact map[string][]T // patterns without a wildcard
	root  segment[T]
	any   []T // of the pattern that matches everything
}

// segment is a node: all patterns that begin alike, up to a slash.
type segment[T any] struct {
	literal map[string]*segment[T] // the next segment has no star
	star    *segment[T]            // it is a star
	partial []partial[T]           // it has a star and other text

	ends []T       // the pattern ends here
	rest []T       // it ends here with **
	tail []tail[T] // it ends in the middle of the next segment, with **
}

// partial is a segment as in v*-beta.
type partial[T any] struct {
	pattern Pattern
	next    *segment[T]
}

// tail is the end of a pattern as in /v1/a**.
type tail[T any] struct {
	pattern Pattern
	value   T
}

// Add adds what p stands for.
func (x *Index[T]) Add(p Pattern, value T) {
	switch {
	case p.isAny():
		x.any = append(x.any, value)
		return
	case p.Exact():
		if x.exact == nil {
			x.exact = map[string][]T{}
		}
		x.exact[p.text] = append(x.exact[p.text], value)
		return
	}
	at, left := &x.root, p.text
	for {
		text, after, more := strings.Cut(left, "/")
		switch {
		case !more && p.rest && text == "":
			at.rest = append(at.rest, value)
			return
		case !more && p.rest:
			at.tail = append(at.tail, tail[T]{part(text, true), value})
			return
		}
		at = at.child(text)
		if !more {
			at.ends = append(at.ends, value)
			return
		}
		left = after
	}
}

// part returns the pattern of a part of a pattern.
func part(text string, rest bool) Pattern {
	p := Pattern{text: text, literal: len(text), tail: strings.LastIndexByte(text, '*') + 1, rest: rest}
	if star := strings.IndexByte(text, '*'); star >= 0 {
		p.literal = star
	}
	return p
}

// child returns the node behind a segment.
func (n *segment[T]) child(text string) *segment[T] {
	switch {
	case text == "*":
		if n.star == nil {
			n.star = &segment[T]{}
		}
		return n.star
	case strings.Contains(text, "*"):
		for i := range n.partial {
			if n.partial[i].pattern.text == text {
				return n.partial[i].next
			}
		}
		n.partial = append(n.partial, partial[T]{part(text, false), &segment[T]{}})
		return n.partial[len(n.partial)-1].next
	}
	next := n.literal[text]
	if next == nil {
		if n.literal == nil {
			n.literal = map[string]*segment[T]{}
		}
		next = &segment[T]{}
		n.literal[text] = next
	}
	return next
}

// Append appends to list what the patterns stand for that match route. An empty route is matched by the zero Pattern alone.
func (x *Index[T]) Append(list []T, route string) []T {
	list = append(list, x.any...)
	if route == "" {
		return list
	}
	list = append(list, x.exact[route]...)
	return x.root.append(list, route, true)
}

// append appends what matches the rest of a route. more is false behind its last segment.
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
	if next := n.literal[text]; next != nil {
		list = next.append(list, after, more)
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
