package console

import (
	"maps"
	"net/url"
	"slices"
)

// form has the values of a sent form, keyed by the names of its fields.
type form map[string][]string

// get returns the first value of a field.
func (f form) get(name string) string { return url.Values(f).Get(name) }

// without returns a copy of the form without the fields that have these names.
func (f form) without(names ...string) form {
	rest := form{}
	for name, values := range f {
		if !slices.Contains(names, name) {
			rest[name] = values
		}
	}
	return rest
}

// names returns the names of the form's fields in alphabetical order.
func (f form) names() []string { return slices.Sorted(maps.Keys(f)) }
