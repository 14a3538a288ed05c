package access

import (
	"slices"
	"strings"
)

// Scope is a set of rights of a key.
type Scope uint8

// The scopes. Admin includes the other scopes.
const (
	Use Scope = 1 << iota
	Read
	onlyAdmin

	Admin = onlyAdmin | Use | Read
)

// namedScope is a scope with its name in the REST contract.
type namedScope struct {
	name  string
	scope Scope
}

// scopeNames lists the scopes with their names, in the order in which they are shown.
var scopeNames = []namedScope{{"use", Use}, {"read", Read}, {"admin", Admin}}

// Has reports whether s includes all rights of wanted.
func (s Scope) Has(wanted Scope) bool { return s&wanted == wanted }

// Names returns the names of the scopes in s. If s is Admin, it returns only admin.
func (s Scope) Names() []string {
	if s.Has(Admin) {
		return []string{"admin"}
	}
	var names []string
	for _, n := range scopeNames {
		if s.Has(n.scope) {
			names = append(names, n.name)
		}
	}
	return names
}

// ScopeNames returns the names of all scopes.
func ScopeNames() []string {
	names := make([]string, len(scopeNames))
	for i := range scopeNames {
		names[i] = scopeNames[i].name
	}
	return names
}

// ParseScopes returns the union of the scopes with these names. It returns false if names is empty or has an unknown
// name.
func ParseScopes(names []string) (Scope, bool) {
	var all Scope
	for _, name := range names {
		i := slices.IndexFunc(scopeNames, func(n namedScope) bool { return n.name == name })
		if i < 0 {
			return 0, false
		}
		all |= scopeNames[i].scope
	}
	return all, all != 0
}

// String returns the names, separated by commas.
func (s Scope) String() string { return strings.Join(s.Names(), ",") }
