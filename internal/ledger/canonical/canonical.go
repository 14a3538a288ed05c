package canonical

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// appendText appends a text after its length.
func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// AppendNumber appends an integer.
func AppendNumber(b []byte, n int64) []byte { return binary.AppendVarint(b, n) }

// AppendInstant appends an instant in microseconds since 1970, and -1 for none.
func AppendInstant(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return AppendNumber(b, -1)
	}
	return AppendNumber(b, t.UnixMicro())
}

// AppendFlag appends 1 or 0.
func AppendFlag(b []byte, set bool) []byte {
	if set {
		return AppendNumber(b, 1)
	}
	return AppendNumber(b, 0)
}

// AppendOptional appends an instant after a 1, and a 0 for none.
func AppendOptional(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	return AppendNumber(append(b, 1), t.UnixMicro())
}

// AppendJSON appends the canonical form of a document with its length; nothing has length 0. PostgreSQL stores the documents as jsonb,
// which changes the order of members, spaces, escapes and the form of numbers, and keeps the last of equal members.
func AppendJSON(b, document []byte) []byte {
	if len(document) == 0 {
		return append(b, 0)
	}
	decoder := json.NewDecoder(strings.NewReader(string(document)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic(fmt.Sprintf("canonical: an entry's document is not JSON: %v", err)) // it was checked, or made here
	}
	canonical := appendValue(nil, value)
	return append(binary.AppendUvarint(b, uint64(len(canonical))), canonical...)
}

// appendValue appends one JSON value: a letter for its type, then its content with lengths. Members are sorted by name.
func appendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(b, 'n')
	case bool:
		if v {
			return append(b, 't')
		}
		return append(b, 'f')
	case string:
		return appendText(append(b, 's'), v)
	case json.Number:
		return appendText(append(b, 'd'), canonicalNumber(v.String()))
	case []any:
		b = binary.AppendUvarint(append(b, 'a'), uint64(len(v)))
		for _, element := range v {
			b = appendValue(b, element)
		}
		return b
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		b = binary.AppendUvarint(append(b, 'o'), uint64(len(v)))
		for _, name := range names {
			b = appendValue(appendText(b, name), v[name])
		}
		return b
	default:
		panic(fmt.Sprintf("canonical: JSON value of type %T", value))
	}
}

// canonicalNumber returns a number without the choices of its writer: digits without a zero at either end, then e and the power of ten. All of
// 1.50, 15e-1 and 0.15E1 are 15e-1; every zero is 0.
func canonicalNumber(text string) string {
	digits, sign := text, ""
	if rest, negative := strings.CutPrefix(digits, "-"); negative {
		digits, sign = rest, "-"
	}
	exponent := 0
	if at := strings.IndexAny(digits, "eE"); at >= 0 {
		_, _ = fmt.Sscan(digits[at+1:], &exponent) // a JSON number has digits there
		digits = digits[:at]
	}
	if whole, fraction, found := strings.Cut(digits, "."); found {
		digits, exponent = whole+fraction, exponent-len(fraction)
	}
	digits = strings.TrimLeft(digits, "0")
	significant := strings.TrimRight(digits, "0")
	if significant == "" {
		return "0"
	}
	return fmt.Sprint(sign, significant, "e", exponent+len(digits)-len(significant))
}
