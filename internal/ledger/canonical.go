package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The canonical form of a value does not depend on how the value was written. It is hashed for fingerprints of
// requests and for the chains of the journal. The length of each text precedes the text, so that no two lists of
// values have the same bytes. The form never changes: stored hashes depend on it.

// An entry's encoding begins with one of these version numbers. An entry without an actor has version 1, like all
// entries from before actors existed. A new column of entries needs a new version.
const (
	chainVersion      = 1
	chainVersionActor = 2 // the same columns, then the actor
)

// appendTexts appends texts. The length of each text precedes it.
func appendTexts(b []byte, texts ...string) []byte {
	for _, t := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(t))), t...)
	}
	return b
}

// fingerprintOf hashes an encoded request, which begins with its kind and the version of the format.
func fingerprintOf(b []byte) [16]byte {
	full := sha256.Sum256(b)
	return [16]byte(full[:16])
}

func appendItems(b []byte, items []Item) []byte {
	b = binary.AppendVarint(b, int64(len(items)))
	for i := range items {
		b = binary.AppendVarint(appendTexts(b, items[i].Meter), items[i].Amount)
	}
	return b
}

// appendEntry appends the canonical form of e. It contains every column in a fixed order. Each text follows its
// length. Instants are microseconds since 1970. JSON is in its canonical form.
func appendEntry(b []byte, e *Entry) []byte {
	version := byte(chainVersion)
	if e.Actor != "" {
		version = chainVersionActor
	}
	b = append(b, version)
	b = appendTexts(b, e.Tenant, e.Meter, e.Subject)
	b = binary.AppendVarint(b, e.Seq)
	b = appendTexts(b, e.OperationID)
	b = binary.AppendVarint(b, int64(e.Line))
	b = appendTexts(b, string(e.Kind))
	b = binary.AppendVarint(b, e.PeriodStart.UnixMicro())
	b = appendTexts(b, e.Grant, string(e.Source))
	b = binary.AppendVarint(binary.AppendVarint(b, e.Amount), e.RemainingAfter)
	b = binary.AppendVarint(binary.AppendVarint(b, int64(e.Item)), e.Requested)
	b = append(binary.AppendUvarint(b, uint64(len(e.Fingerprint))), e.Fingerprint...)
	b = binary.AppendVarint(b, e.CreatedAt.UnixMicro())
	b = appendOptional(b, e.EffectiveAt)
	b = appendTexts(b, e.OpSubject)
	b = appendJSON(appendJSON(b, e.Detail), e.Metadata)
	if e.Actor != "" {
		b = appendTexts(b, e.Actor)
	}
	return b
}

// appendInstant appends an instant in microseconds since 1970. It appends -1 for the zero time.
func appendInstant(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(b, -1)
	}
	return binary.AppendVarint(b, t.UnixMicro())
}

// appendFlag appends 1 if set is true, otherwise 0.
func appendFlag(b []byte, set bool) []byte {
	if set {
		return binary.AppendVarint(b, 1)
	}
	return binary.AppendVarint(b, 0)
}

// appendOptional appends a 1 and the instant. It appends a 0 for the zero time.
func appendOptional(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	return binary.AppendVarint(append(b, 1), t.UnixMicro())
}

// appendJSON appends the canonical form of a document after its length; an absent document has length 0. PostgreSQL
// stores the documents as jsonb, which changes the order of members, spaces, escapes and the form of numbers. It
// keeps only the last of several members with equal names.
func appendJSON(b, document []byte) []byte {
	if len(document) == 0 {
		return append(b, 0)
	}
	decoder := json.NewDecoder(strings.NewReader(string(document)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic(fmt.Sprintf("ledger: an entry's document is not JSON: %v", err)) // validated, or created by the ledger
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
		return appendTexts(append(b, 's'), v)
	case json.Number:
		return appendTexts(append(b, 'd'), canonicalNumber(v.String()))
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
			b = appendValue(appendTexts(b, name), v[name])
		}
		return b
	default:
		panic(fmt.Sprintf("ledger: JSON value of type %T", value))
	}
}

// canonicalNumber returns the one form of a number: digits without a zero at either end, then e and the power of ten.
// 1.50, 15e-1 and 0.15E1 all become 15e-1; every zero becomes 0.
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
