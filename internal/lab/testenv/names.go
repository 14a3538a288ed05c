package testenv

// Patterns of ids for rapid.StringMatching. Most ids have the characters by which the service joins ids, so that two
// that are joined wrongly give one text.
const (
	// NamePattern is the pattern of ids of tenants, subjects, grants and holds.
	NamePattern = `[ab/:{}|@=+*~_-][ab/:{}|@=+*~_.-]{0,4}|[!$&-\-/-;=@-\[\]-~][!$&-;=@-\[\]-~]{0,254}`

	// IDPattern is the pattern of ids of meters, plans and rules.
	IDPattern = `[ab][ab:.-]{0,3}|[A-Za-z0-9][A-Za-z0-9._:-]{0,127}`
)

// OwnNames are ids as other systems have them.
func OwnNames() []string {
	return []string{
		"auth0|5f7c8e", "ann@example.com", "gid://app/User/12", "a/b", "_x", "-x", "arn:aws:iam::1:user/x", "Zm9v+/=",
		"}x", "{x", "{a}{b}", "a~!$&'()*,;[]^`", "*", "(other)", "a:b",
	}
}
