package rule

import (
	"encoding/binary"
	"strings"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// Layout describes the common form of the keys of a rule's buckets. Rules with the same id in different plans can
// have several layouts.
type Layout struct {
	ID        string
	Kind      Kind
	Shared    bool
	Dimension bool // whether each bucket has a dimension
}

// Layout returns the layout of a compiled rule.
func (r *Rule) Layout(dimension bool) Layout {
	return Layout{ID: r.ID, Kind: r.Kind, Shared: r.Shared, Dimension: dimension}
}

// Pattern returns a glob pattern for Redis (SCAN MATCH) that matches all keys of the layout, and hardly any other
// keys. The id needs no escaping, because ids have no special characters of patterns.
func (l Layout) Pattern() string {
	dimension := ""
	if l.Dimension {
		dimension = "*"
	}
	key, _ := bucketKeyOf(l.Kind.letter(), l.Shared, "*", l.ID, dimension)
	return key
}

// Parse returns the tenant and the dimension of a key. ok is false if the key does not have the layout.
func (l Layout) Parse(key string) (tenant, dimension string, ok bool) {
	tag, _, closed := strings.Cut(strings.TrimPrefix(key, "rl:{"), "}")
	if !closed {
		return "", "", false
	}
	if l.Dimension {
		dimension = key[strings.LastIndexByte(key, '/')+1:]
		if l.Shared {
			dimension = tag[strings.LastIndexByte(tag, '/')+1:]
		}
		if dimension == "" || !IsDimension(dimension) {
			return "", "", false
		}
	}
	if !l.Shared {
		tenant = bound.Untag(tag)
	}
	want, _ := bucketKeyOf(l.Kind.letter(), l.Shared, tenant, l.ID, dimension)
	return tenant, dimension, key == want
}

// Used returns the number of tokens that are missing in a bucket at the given moment, rounded up. stored is the
// stored value of the bucket, in the format of lua/limits.lua. ok is false if stored is not a bucket of the rule's
// kind. r must be compiled, and not of kind concurrency.
func (r *Rule) Used(stored string, at Moment) (tokens int64, ok bool) {
	s, ok := r.state(stored)
	if !ok {
		return 0, false
	}
	return r.UsedIn(s, at), true
}

// UsedIn returns the number of tokens that are missing in a bucket with the state s at the given moment, rounded up.
// r must be compiled, and not of kind concurrency.
func (r *Rule) UsedIn(s State, at Moment) (tokens int64) {
	level := r.limit.Advance(s, at)
	switch l := r.limit.(type) {
	case bucket:
		return CeilDiv(level.Used, l.s)
	case leaky:
		return CeilDiv(level.Used, l.s)
	case slidingWindow:
		return CeilDiv(l.level(level), l.ticks)
	default:
		return level.Used
	}
}

// timeBytes is the length of a stored time in bytes.
const timeBytes = 7

// state decodes the stored value of a bucket. ok is false if it is not a bucket of the rule's kind.
func (r *Rule) state(stored string) (s State, ok bool) {
	if len(stored) <= timeBytes {
		return s, false
	}
	s.At, ok = bigEndian(stored[:timeBytes])
	rest := stored[timeBytes:]
	if !ok {
		return s, false
	}
	switch r.Kind {
	case KindTokenBucket, KindLeakyBucket:
		return s, s.readBucket(rest)
	case KindFixedWindow:
		if len(rest) > 2 && rest[0] == 0 {
			rest = rest[2:] // skip the rest of the window, which only decisions need
		}
		s.Used, ok = bigEndian(rest)
		return s, ok
	case KindSlidingWindow:
		return s, s.readWindow(rest)
	default:
		return s, s.readLog(rest)
	}
}

func (s *State) readBucket(rest string) (ok bool) {
	var form int64
	if form, rest, ok = varint(rest); !ok {
		return false
	}
	s.Num = 1
	if len(rest) > 1+timeBytes && rest[0] == 0 {
		s.Num, ok = bigEndian(rest[1 : 1+timeBytes])
		rest = rest[1+timeBytes:]
	}
	if s.Unit = long(form); !ok || s.Num < 1 || s.Unit < 1 {
		return false
	}
	s.Used, ok = bigEndian(rest)
	return ok
}

func (s *State) readWindow(rest string) (ok bool) {
	var form int64
	if form, rest, ok = varint(rest); !ok {
		return false
	}
	if s.Unit = long(form) * 1000; s.Unit < 1 || s.Unit > maxExact {
		return false
	}
	if s.Used, rest, ok = varint(rest); ok {
		s.Prev, ok = bigEndian(rest)
	}
	return ok
}

// readLog decodes the stored value of a sliding log, without its first bytes, the time.
func (s *State) readLog(rest string) (ok bool) {
	if len(rest) > (maxLog+1)*timeBytes {
		return false
	}
	for ; len(rest) >= timeBytes; rest = rest[timeBytes:] {
		at, ok := bigEndian(rest[:timeBytes])
		if !ok {
			return false
		}
		s.Log = append(s.Log, at)
	}
	s.Used = int64(len(s.Log))
	return true
}

// varint reads an integer in the varint format of lua/limits.lua. It returns the integer and the rest of text.
func varint(text string) (n int64, rest string, ok bool) {
	v, read := binary.Uvarint([]byte(text))
	if read <= 0 || v > maxExact {
		return 0, "", false
	}
	return int64(v), text[read:], true
}

// bigEndian reads an integer of 1 to 7 bytes, the highest byte first.
func bigEndian(text string) (n int64, ok bool) {
	if len(text) < 1 || len(text) > timeBytes {
		return 0, false
	}
	for i := range len(text) {
		n = n<<8 | int64(text[i])
	}
	return n, n <= maxExact
}

// long returns the number that has the given short form, or 0 if this number is not below 2^53.
func long(form int64) int64 {
	n, zeros := form/8, form%8
	if form < 128 {
		n, zeros = int64(mantissas[form/8]), form%8+1
	} else {
		n -= 128 / 8
	}
	for ; zeros > 0; zeros-- {
		n = mulCap(n, 10)
	}
	if n > maxExact {
		return 0
	}
	return n
}
