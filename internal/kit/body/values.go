package body

import (
	"bytes"
	"encoding/json/jsontext"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// text reads a string. It returns false for a value of another type.
func (d *Document) text() (string, bool) {
	raw, ok := d.value()
	if !ok || raw.Kind() != '"' {
		return "", false
	}
	plain, err := unquote(raw)
	return string(plain), err == nil
}

// valid reads a string that the function `is` accepts. For another value it records a fault with the text `must`.
func (d *Document) valid(is func(string) bool, must string) string {
	if text, ok := d.text(); ok && is(text) {
		return text
	}
	d.fault(must)
	return ""
}

// ID reads an id.
func (d *Document) ID() string { return d.valid(bound.ID, bound.MustBeID) }

// Name reads the id of a tenant, subject, grant or hold.
func (d *Document) Name() string { return d.valid(bound.Name, bound.MustBeName) }

// Key reads an idempotency key.
func (d *Document) Key() string { return d.valid(bound.Key, bound.MustBeKey) }

// Route reads a route.
func (d *Document) Route() string { return d.valid(bound.Route, bound.MustBeRoute) }

// Method reads an HTTP method.
func (d *Document) Method() string { return d.valid(bound.Method, bound.MustBeMethod) }

// Visible reads a string of 1 to `high` visible ASCII characters.
func (d *Document) Visible(high int) string {
	if text, ok := d.text(); ok && bound.ASCII(text, '!', 1, high) {
		return text
	}
	d.fault(fmt.Sprintf("must be 1 to %d visible ASCII characters", high))
	return ""
}

// Prose reads text for people. The length of the text is `low` to `high` bytes.
func (d *Document) Prose(low, high int) string {
	if text, ok := d.text(); ok && bound.Text(text, low, high) {
		return text
	}
	d.fault(bound.MustBeText(low, high))
	return ""
}

// Characters reads text for people. The length of the text is `low` to `high` characters.
func (d *Document) Characters(low, high int) string {
	if text, ok := d.text(); ok && IsText(text, low, high) {
		return text
	}
	d.fault(MustBeCharacters(low, high))
	return ""
}

// IsText reports whether s has `low` to `high` characters and no control characters except line ends and tabs.
func IsText(s string, low, high int) bool {
	n := utf8.RuneCountInString(s)
	return n >= low && n <= high && bound.Text(s, low, len(s))
}

// MustBeCharacters returns the sentence of the fault for text that IsText refuses.
func MustBeCharacters(low, high int) string {
	return fmt.Sprintf("must be %d to %d characters without control characters", low, high)
}

// Word reads a string that must be one of words.
func (d *Document) Word(words ...string) string {
	if text, ok := d.text(); ok && slices.Contains(words, text) {
		return text
	}
	d.fault(OneOf(words...))
	return ""
}

// Duration reads a duration from low to high, such as 90s, 36h or 31d.
func (d *Document) Duration(low, high time.Duration) time.Duration {
	if text, ok := d.text(); ok {
		if by, ok := ParseDuration(text); ok && by >= low && by <= high {
			return by
		}
	}
	d.fault(fmt.Sprintf("must be a duration such as 90s, 36h or 31d, from %s to %dd", low, int64(high/day)))
	return 0
}

// day is the length of a day for ParseDuration, which uses no calendar.
const day = 24 * time.Hour

// ParseDuration parses a duration as time.ParseDuration does. The text may begin with a number of days of 24 hours, as
// in 31d and 1d12h.
func ParseDuration(text string) (time.Duration, bool) {
	digits, rest, found := strings.Cut(text, "d")
	if !found {
		out, err := time.ParseDuration(text)
		return out, err == nil
	}
	days, ok := ParseInteger(digits)
	if !ok || days < 0 || days > int64(math.MaxInt64/day) {
		return 0, false
	}
	out := time.Duration(days) * day
	if rest == "" {
		return out, true
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 || more > math.MaxInt64-out {
		return 0, false
	}
	return out + more, true
}

// Amount reads a number of units from 1 to bound.MaxAmount.
func (d *Document) Amount() int64 { return d.Integer(1, bound.MaxAmount) }

// Difference reads a number of units that is added to a balance, or subtracted if it is negative.
func (d *Document) Difference() int64 {
	raw, ok := d.value()
	if !ok {
		return 0
	}
	digits, sign := string(whole(raw)), int64(1)
	if len(digits) > 0 && digits[0] == '-' {
		digits, sign = digits[1:], -1
	}
	n, ok := ParseInteger(digits)
	if !ok || !bound.Amount(n) {
		d.fault(bound.MustBeDifference)
		return 0
	}
	return sign * n
}

// Integer reads a JSON integer from low to high, without exponent. A fraction may have zeros only: 1.0 is 1.
func (d *Document) Integer(low, high int64) int64 {
	raw, ok := d.value()
	if !ok {
		return 0
	}
	if n, ok := ParseInteger(whole(raw)); ok && n >= low && n <= high {
		return n
	}
	d.fault(bound.MustBeInteger(low, high))
	return 0
}

// whole removes the fraction of a JSON number if it has only zeros, because some programs write whole numbers as
// floats. It returns any other value unchanged.
func whole(raw jsontext.Value) jsontext.Value {
	if i := bytes.IndexByte(raw, '.'); i > 0 && raw.Kind() == '0' && len(bytes.Trim(raw[i+1:], "0")) == 0 {
		return raw[:i]
	}
	return raw
}

// ParseInteger parses decimal digits, at most as many as the largest amount has. It returns false for any other text.
func ParseInteger[B ~[]byte | ~string](digits B) (int64, bool) {
	if len(digits) == 0 || len(digits) > len("9007199254740991") {
		return 0, false
	}
	var n int64
	for i := range len(digits) {
		c := digits[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// Boolean reads true or false.
func (d *Document) Boolean() bool {
	raw, ok := d.value()
	if !ok {
		return false
	}
	switch raw.Kind() {
	case 't':
		return true
	case 'f':
		return false
	default:
		d.fault("must be true or false")
		return false
	}
}

// Instant reads an RFC 3339 time within the bounds of package period.
func (d *Document) Instant() time.Time {
	if text, ok := d.text(); ok {
		if t, ok := ParseInstant(text); ok {
			return t
		}
	}
	d.fault(MustBeInstant())
	return time.Time{}
}

// InstantOrNull reads an instant or null. For null it returns the zero time.
func (d *Document) InstantOrNull() time.Time {
	raw, ok := d.value()
	if !ok || raw.Kind() == 'n' {
		return time.Time{}
	}
	if raw.Kind() == '"' {
		plain, err := unquote(raw)
		if t, ok := ParseInstant(string(plain)); ok && err == nil {
			return t
		}
	}
	d.fault(MustBeInstant() + ", or null")
	return time.Time{}
}

// MustBeInstant returns the sentence of the fault for text that ParseInstant refuses.
func MustBeInstant() string {
	return fmt.Sprintf("must be an RFC 3339 time from %s to before %s", period.Earliest.Format(time.RFC3339),
		period.Latest.Format(time.RFC3339))
}

// ParseInstant parses an RFC 3339 time within the bounds of package period. Its letters may be lower case. It returns
// the time in UTC, cut to microseconds, which is the precision of PostgreSQL. It returns false for any other text.
func ParseInstant(text string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, strings.ToUpper(text))
	if err != nil || t.Before(period.Earliest) || !t.Before(period.Latest) {
		return time.Time{}, false
	}
	return t.UTC().Truncate(time.Microsecond), true
}

// MustBeZone is the sentence of the fault for a name that IsZone refuses.
const MustBeZone = `must be an IANA zone name such as "Europe/Berlin" or "UTC"`

// IsZone reports whether name is the name of an IANA time zone.
func IsZone(name string) bool {
	_, err := period.ParseZone(name)
	return err == nil
}

// Address reads an IP address. If an IPv4 address is written as IPv6, the result is the IPv4 address.
func (d *Document) Address() netip.Addr {
	if text, ok := d.text(); ok {
		if address, ok := ParseAddress(text); ok {
			return address
		}
	}
	d.fault(MustBeAddress)
	return netip.Addr{}
}

// MustBeAddress is the sentence of the fault for a value that ParseAddress refuses.
const MustBeAddress = "must be an IPv4 or IPv6 address"

// ParseAddress parses an IP address without a zone. If an IPv4 address is written as IPv6, the result is the IPv4
// address.
func ParseAddress(text string) (address netip.Addr, ok bool) {
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return netip.Addr{}, false
	}
	return address.Unmap(), true
}

// Metadata reads an object that the client defines. It returns the object without blanks and with sorted fields. So a
// retry gives the same bytes even if it writes the same metadata differently. It returns an object beyond the bounds
// together with its fault.
func (d *Document) Metadata() []byte {
	raw, ok := d.value()
	if !ok {
		return nil
	}
	value := raw.Clone()
	if raw.Kind() != '{' || value.Format(jsontext.ReorderRawObjects(true)) != nil {
		d.fault(bound.MustBeMetadata)
		return nil
	}
	if !bound.Metadata(value) {
		d.fault(bound.MustBeMetadata)
	}
	return value
}
