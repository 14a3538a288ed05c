package bound

import (
	"bytes"
	"strconv"
)

const (
	// MaxMetadata is the largest size of metadata in bytes, without blanks. Every entry of an operation contains its
	// metadata, and 4 KiB is a hundred times the size of the rest of an entry.
	MaxMetadata = 4096

	// MaxMetadataDepth is the largest number of nested objects and arrays, with the outermost object.
	MaxMetadataDepth = 16

	// The bounds of a number in metadata. PostgreSQL stores it as numeric, which can store 1e999 but not every
	// exponent.
	maxMetadataNumber   = 64 // characters
	maxMetadataExponent = 3  // digits of the exponent as written, without the sign

	// MustBeMetadata is the sentence for a value that Metadata refuses.
	MustBeMetadata = "must be a JSON object of at most 4096 bytes without blanks and 16 levels, without duplicate names, without U+0000 " +
		"and without numbers beyond 1.797e308, 64 characters or an exponent of 3 digits"
)

// Metadata reports whether object is a JSON object within the bounds of metadata. object must be valid JSON without
// duplicate names and without blanks between its tokens. Metadata does not check this.
func Metadata(object []byte) bool {
	if len(object) < len("{}") || len(object) > MaxMetadata || object[0] != '{' {
		return false
	}
	depth := 0
	for i := 0; i < len(object); i++ {
		switch c := object[i]; {
		case c == '{' || c == '[':
			if depth++; depth > MaxMetadataDepth {
				return false
			}
		case c == '}' || c == ']':
			depth--
		case c == '"':
			end, ok := stringEnd(object, i)
			if !ok {
				return false
			}
			i = end
		case c == '-' || c >= '0' && c <= '9':
			end := numberEnd(object, i)
			if !isNumber(object[i:end]) {
				return false
			}
			i = end - 1
		}
	}
	return true
}

// stringEnd returns the index of the closing quote of the JSON string that begins at start. It returns false if the
// string contains U+0000 or does not end.
func stringEnd(object []byte, start int) (int, bool) {
	for i := start + 1; i < len(object); i++ {
		switch object[i] {
		case '"':
			return i, true
		case '\\':
			if bytes.HasPrefix(object[i:], []byte(`\u0000`)) {
				return 0, false
			}
			i++ // the escaped character is not the closing quote
		}
	}
	return 0, false
}

// numberEnd returns the index after the JSON number that begins at start.
func numberEnd(object []byte, start int) int {
	end := start
	for end < len(object) && bytes.IndexByte([]byte("+-.0123456789Ee"), object[end]) >= 0 {
		end++
	}
	return end
}

// isNumber reports whether jsonb can store a JSON number, and whether the nearest float64 is finite. Most languages read
// numbers as float64: some of them refuse a whole document with a number beyond it, others read infinity.
func isNumber(number []byte) bool {
	if len(number) > maxMetadataNumber {
		return false
	}
	e := bytes.IndexAny(number, "eE")
	if e < 0 {
		return true // 64 digits are far below 1.797e308
	}
	_, err := strconv.ParseFloat(string(number), 64)
	return err == nil && len(bytes.TrimLeft(number[e+1:], "+-")) <= maxMetadataExponent
}
