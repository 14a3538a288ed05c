package httpapi

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/period"
)

const (
	mustBeZone   = `must be an IANA zone name such as "Europe/Berlin" or "UTC"`
	mustBeReason = "must be 1 to 500 bytes of UTF-8 without control characters"
)

// text reads a string that check accepts, or records what it must be.
func (d *document) text(check func(string) bool, must string) string {
	raw, ok := d.value()
	if !ok {
		return ""
	}
	if raw.Kind() == '"' {
		if plain, err := unquote(raw); err == nil {
			if text := string(plain); check(text) {
				return text
			}
		}
	}
	d.faultHere(must)
	return ""
}

func (d *document) id() string { return d.text(bound.ID, bound.MustBeID) }

func (d *document) key() string { return d.text(bound.Key, bound.MustBeKey) }

func (d *document) route() string { return d.text(bound.Route, bound.MustBeRoute) }

// prose reads text written for people: low to high characters, without control characters but for line ends and tabs.
func (d *document) prose(low, high int) string {
	return d.text(func(s string) bool { return isProse(s, low, high) },
		fmt.Sprintf("must be %d to %d characters without control characters", low, high))
}

// word reads one of a few words.
func (d *document) word(words ...string) string {
	return d.text(func(s string) bool { return slices.Contains(words, s) }, "must be "+strings.Join(words, ", "))
}

// amount reads an amount of units.
func (d *document) amount() int64 { return d.integer(1, bound.MaxAmount) }

// integer reads a JSON integer written without fraction or exponent.
func (d *document) integer(low, high int64) int64 {
	raw, ok := d.value()
	if !ok {
		return 0
	}
	if n, ok := parseInteger(raw); ok && n >= low && n <= high {
		return n
	}
	d.faultHere(bound.MustBeInteger(low, high))
	return 0
}

// integerOrNull reads an integer, or null, which is nil.
func (d *document) integerOrNull(low, high int64) *int64 {
	if !d.broken && d.dec.PeekKind() == 'n' {
		d.skip()
		return nil
	}
	n := d.integer(low, high)
	return &n
}

// parseInteger reads decimal digits. No bound of this API is negative or over 2^53-1, so nothing else needs a value.
func parseInteger[B ~[]byte | ~string](digits B) (int64, bool) {
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

func (d *document) boolean() bool {
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
		d.faultHere("must be true or false")
		return false
	}
}

// instant reads an RFC 3339 time within the bounds of package period.
func (d *document) instant() (t time.Time) {
	d.text(func(s string) (ok bool) { t, ok = parseInstant(s); return ok }, mustBeInstant())
	return t
}

func mustBeInstant() string {
	return fmt.Sprintf("must be an RFC 3339 time from %s to before %s", period.Earliest.Format(time.RFC3339),
		period.Latest.Format(time.RFC3339))
}

// parseInstant cuts to microseconds, which is what PostgreSQL keeps.
func parseInstant(text string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Before(period.Earliest) || !t.Before(period.Latest) {
		return time.Time{}, false
	}
	return t.UTC().Truncate(time.Microsecond), true
}

// address reads an IP address; an IPv4 address written as IPv6 becomes itself.
func (d *document) address() (address netip.Addr) {
	d.text(func(s string) bool {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" {
			return false
		}
		address = a.Unmap()
		return true
	}, "must be an IPv4 or IPv6 address")
	return address
}

// metadata reads the client's own object and returns it without blanks and with its members in order, so that the same
// metadata is the same bytes however a retry writes it.
func (d *document) metadata() []byte {
	raw, ok := d.value()
	if !ok {
		return nil
	}
	if raw.Kind() == '{' {
		value := raw.Clone()
		if err := value.Format(jsontext.ReorderRawObjects(true)); err == nil && bound.Metadata(value) {
			return value
		}
	}
	d.faultHere(bound.MustBeMetadata)
	return nil
}

// isProse reports whether s is low to high characters, none of them a control character but line ends and tabs.
func isProse(s string, low, high int) bool {
	if n := utf8.RuneCountInString(s); n < low || n > high || !utf8.ValidString(s) {
		return false
	}
	for _, c := range s {
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
