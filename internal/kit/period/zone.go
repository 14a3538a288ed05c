package period

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// MaxZoneName is the largest accepted length of a zone name, in bytes. The longest name in the zone database has 32
// bytes.
const MaxZoneName = 64

// ParseZone loads the IANA zone with this name. Its error is an ErrInvalid whose text names the field timezone and
// says what is valid.
//
// It refuses the empty name and "Local", because they mean a different zone on every machine. It refuses "posix/" and
// "right/", because only some machines have them ("right/" counts leap seconds).
func ParseZone(name string) (*time.Location, error) {
	switch {
	case name == "":
		return nil, fmt.Errorf(`%w timezone "": must be an IANA zone name such as "Europe/Berlin" or "UTC"`, ErrInvalid)
	case len(name) > MaxZoneName:
		return nil, fmt.Errorf("%w timezone: must be an IANA zone name of at most %d bytes", ErrInvalid, MaxZoneName)
	case strings.EqualFold(name, "local"), strings.EqualFold(name, "localtime"), strings.EqualFold(name, "posixrules"),
		strings.HasPrefix(name, "posix/"), strings.HasPrefix(name, "right/"):
		return nil, fmt.Errorf("%w timezone %q: must be an IANA zone name that means the same everywhere", ErrInvalid, name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf(`%w timezone %q: unknown; must be an IANA zone name such as "Europe/Berlin"`, ErrInvalid, name)
	}
	return loc, nil
}

// Zones is a cache for ParseZone, so that all tenants in a zone share one *time.Location. It caches only existing
// names, so its size is bounded by the zone database. The zero value is ready to use.
type Zones struct {
	known sync.Map // string -> *time.Location
}

// Parse returns the cached location of name, or calls ParseZone.
func (z *Zones) Parse(name string) (*time.Location, error) {
	if loc, ok := z.known.Load(name); ok {
		return loc.(*time.Location), nil
	}
	loc, err := ParseZone(name)
	if err != nil {
		return nil, err
	}
	kept, _ := z.known.LoadOrStore(name, loc)
	return kept.(*time.Location), nil
}
