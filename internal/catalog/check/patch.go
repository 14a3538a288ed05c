package check

import "maps"

// Patched returns members with the given changes. The value nil in changes removes a member. If no members remain,
// Patched returns nil. It does not modify the map members, which may be shared.
func Patched[M ~map[string]V, V any](members M, changes map[string]*V) M {
	if len(changes) == 0 {
		return members
	}
	after := M{}
	maps.Copy(after, members)
	for name, v := range changes {
		if v == nil {
			delete(after, name)
		} else {
			after[name] = *v
		}
	}
	if len(after) == 0 {
		return nil
	}
	return after
}

// PatchTo returns the changes that turn an empty map into members: see Patched.
func PatchTo[M ~map[string]V, V any](members M) map[string]*V {
	changes := make(map[string]*V, len(members))
	for name, v := range members {
		changes[name] = &v
	}
	return changes
}
