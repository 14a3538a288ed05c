package bound

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// MaxID is the largest length of an id in bytes.
	MaxID = 128

	// MustBeID is the sentence for a value that ID refuses.
	MustBeID = "must match ^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"
)

// ID reports whether s can be the id of a meter, plan, rule or feature. These ids are chosen by the people who write
// the catalogue.
func ID(s string) bool {
	if len(s) < 1 || len(s) > MaxID {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alphanumeric := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alphanumeric && (i == 0 || c != '.' && c != '_' && c != ':' && c != '-') {
			return false
		}
	}
	return true
}

const (
	// MaxName is the largest length of a name in bytes.
	MaxName = 255

	// MustBeName is the sentence for a value that Name refuses.
	MustBeName = `must be 1 to 255 visible ASCII characters, not begin with a dot, and have none of " % \ ? # < >`
)

// Name reports whether s can be the id of a tenant, subject, grant or hold. Callers have these ids from other systems:
// auth0|5f7c8e, ann@example.com, gid://app/User/12. Every ID is a Name. A Name has no percent sign, so it can be
// escaped: see Tag.
func Name(s string) bool {
	if len(s) < 1 || len(s) > MaxName || s[0] == '.' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c < '!' || c > '~' || strings.IndexByte(`"%\?#<>`, c) >= 0 {
			return false
		}
	}
	return true
}

// Join joins ids and names by slashes. It escapes the slashes in all of them except the last. So two different lists
// of the same length give different texts.
func Join(parts ...string) string {
	escaped := slices.Clone(parts)
	for i := range len(parts) - 1 {
		if strings.IndexByte(parts[i], '/') >= 0 {
			escaped[i] = strings.ReplaceAll(parts[i], "/", "%2F")
		}
	}
	return strings.Join(escaped, "/")
}

// Cut returns the two parts that Join joined. ok is false if joined has no slash.
func Cut(joined string) (first, last string, ok bool) {
	first, last, ok = strings.Cut(joined, "/")
	return strings.ReplaceAll(first, "%2F", "/"), last, ok
}

// Tag returns a name for use between the braces of a Redis key. A brace in the name would move the key to another slot.
func Tag(name string) string {
	if strings.IndexByte(name, '{') < 0 && strings.IndexByte(name, '}') < 0 {
		return name
	}
	return braces.Replace(name)
}

// Untag returns the name of which Tag returned tag.
func Untag(tag string) string {
	if strings.IndexByte(tag, '%') < 0 {
		return tag
	}
	return unbraces.Replace(tag)
}

var (
	braces   = strings.NewReplacer("{", "%7B", "}", "%7D")
	unbraces = strings.NewReplacer("%7B", "{", "%7D", "}")
)

const (
	// MaxAmount is the largest amount: 2^53-1. JSON clients and Redis scripts compute with doubles, which represent
	// every integer up to this amount exactly.
	MaxAmount = 1<<53 - 1

	// MustBeAmount is the sentence for a value that Amount refuses.
	MustBeAmount = "must be an integer from 1 to 9007199254740991"

	// MustBeDifference is the sentence for a value that Difference refuses.
	MustBeDifference = "must be an integer from -9007199254740991 to 9007199254740991 and not 0"
)

// Amount reports whether n can be an amount in a request: 1 to MaxAmount units.
func Amount(n int64) bool { return n >= 1 && n <= MaxAmount }

// Difference reports whether a balance can be adjusted by n: n or -n must be an amount.
func Difference(n int64) bool { return n != 0 && n >= -MaxAmount && n <= MaxAmount }

// MustBeInteger returns the sentence for an integer that is not in the range from low to high.
func MustBeInteger(low, high int64) string {
	return fmt.Sprintf("must be an integer from %d to %d", low, high)
}

const (
	// MaxKey is the largest length of an idempotency key in bytes.
	MaxKey = 255

	// MustBeKey is the sentence for a value that Key refuses.
	MustBeKey = "must be 1 to 255 visible ASCII characters"
)

// Key reports whether s can be an Idempotency-Key: 1 to MaxKey visible ASCII characters.
func Key(s string) bool { return ASCII(s, '!', 1, MaxKey) }

const (
	// MaxRoute is the largest length of a route, or of a pattern of routes, in bytes. The routes of services are
	// shorter.
	MaxRoute = 256

	// MustBeRoute is the sentence for a value that Route refuses.
	MustBeRoute = "must be 1 to 256 printable ASCII characters"
)

// Route reports whether s can be a route: 1 to MaxRoute printable ASCII characters, which may be blanks.
func Route(s string) bool { return ASCII(s, ' ', 1, MaxRoute) }

const (
	// maxMethod is the largest length of a method in bytes. All known methods are shorter.
	maxMethod = 32

	// MustBeMethod is the sentence for a value that Method refuses.
	MustBeMethod = "must be an HTTP method in upper case, as in POST"
)

// Method reports whether s can be an HTTP method: only upper-case letters and hyphens, as in all known methods.
func Method(s string) bool {
	if len(s) < 1 || len(s) > maxMethod || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'A' || c > 'Z') && c != '-' {
			return false
		}
	}
	return true
}

const (
	// MinAdminKey is the smallest length of the admin key in bytes: 32 random characters cannot be guessed.
	MinAdminKey = 32

	// MaxAdminKey is the largest length of the admin key in bytes. An Authorization header can carry it.
	MaxAdminKey = 512

	// MustBeAdminKey is the sentence for a value that AdminKey refuses.
	MustBeAdminKey = "must be 32 to 512 visible ASCII characters, which an Authorization header can carry"
)

// AdminKey reports whether s can be the admin key: MinAdminKey to MaxAdminKey visible ASCII characters.
func AdminKey(s string) bool { return ASCII(s, '!', MinAdminKey, MaxAdminKey) }

// Text reports whether s is text for people: `low` to `high` bytes of UTF-8 without control characters. Line ends and
// tabs are allowed.
func Text(s string, low, high int) bool {
	if len(s) < low || len(s) > high || !utf8.ValidString(s) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// MustBeText returns the sentence for text that Text refuses.
func MustBeText(low, high int) string {
	return fmt.Sprintf("must be %d to %d bytes of UTF-8 without control characters", low, high)
}

// ASCII reports whether s has `low` to `high` characters, each from `first` to '~'. Other packages call it for bounds
// that only they need.
func ASCII(s string, first byte, low, high int) bool {
	if len(s) < low || len(s) > high {
		return false
	}
	for i := range len(s) {
		if s[i] < first || s[i] > '~' {
			return false
		}
	}
	return true
}

// Storable reports whether PostgreSQL can store s as text: it is UTF-8 without NUL.
func Storable(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// SaturatingAdd returns a+b for values that are not negative. If the sum is too large, it returns the largest int64.
// It is used for sums of demands. These sums are lower bounds, so a sum that is too small is still correct.
func SaturatingAdd(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
