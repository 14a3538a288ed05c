package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quotasvc/quotasvc/internal/period"
)

const (
	// MaxAmount is the largest amount: the largest integer that every JSON reader holds exactly.
	MaxAmount = 1<<53 - 1

	// MaxMetadata is the size of a tenant's metadata in bytes, blanks not counted: notes, not documents.
	MaxMetadata = 4096

	// metadataDepth bounds nesting; deeper objects are not notes.
	metadataDepth = 16

	// A number in metadata must fit PostgreSQL's numeric, which jsonb stores: it has up to 131,072 digits, and 1e999 fits.
	metadataNumber   = 64
	metadataExponent = 3
)

// checker collects what is wrong with an object.
type checker struct {
	fields []FieldError
}

func (c *checker) require(ok bool, field, format string, args ...any) bool {
	if !ok {
		c.fields = append(c.fields, FieldError{field, fmt.Sprintf(format, args...)})
	}
	return ok
}

// within takes over what is wrong with a part of the object.
func (c *checker) within(prefix string, fields []FieldError) {
	for _, f := range fields {
		c.fields = append(c.fields, FieldError{prefix + "." + f.Field, f.Message})
	}
}

func (c *checker) id(field, id string) {
	c.require(validID(id), field, "must match ^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")
}

func (c *checker) amount(field string, n, low int64) bool {
	return c.require(n >= low && n <= MaxAmount, field, "must be an integer from %d to %d", low, int64(MaxAmount))
}

// text checks length in bytes and that PostgreSQL can store it.
func (c *checker) text(field, s string, low, high int) {
	if c.require(len(s) >= low && len(s) <= high, field, "must have %d to %d bytes", low, high) {
		c.require(utf8.ValidString(s) && !strings.ContainsRune(s, 0), field, "must be UTF-8 without the character U+0000")
	}
}

func (c *checker) oneOf(field, s string, choices ...string) {
	c.require(slices.Contains(choices, s), field, "must be one of %s", strings.Join(choices, ", "))
}

func (c *checker) instant(field string, t time.Time) {
	c.require(!t.Before(period.Earliest) && t.Before(period.Latest), field, "must be a time from %s to before %s",
		period.Earliest.Format(time.RFC3339), period.Latest.Format(time.RFC3339))
}

// err is nil or the *Error that lists everything.
func (c *checker) err() error {
	if len(c.fields) == 0 {
		return nil
	}
	return &Error{Code: CodeInvalidArgument, Fields: c.fields}
}

// validID reports whether id can name a tenant, meter, plan or rule.
func validID(id string) bool {
	if len(id) < 1 || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		alnum := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != ':' && c != '-') {
			return false
		}
	}
	return true
}

// metadata checks a JSON object that jsonb must be able to store, and returns it without blanks.
func (c *checker) metadata(field string, raw []byte) []byte {
	v := jsontext.Value(bytes.Clone(raw))
	if !c.require(v.Compact() == nil && v.Kind() == '{', field, "must be a JSON object, each name once") ||
		!c.require(len(v) <= MaxMetadata, field, "must have at most %d bytes without blanks", MaxMetadata) {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(v))
	for range len(v) {
		token, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return v
		}
		if !c.require(err == nil, field, "must be a JSON object, each name once") {
			return nil
		}
		ok := c.require(dec.StackDepth() <= metadataDepth, field, "must be at most %d levels deep", metadataDepth)
		switch token.Kind() {
		case '"':
			ok = ok && c.require(!strings.ContainsRune(token.String(), 0), field, "must not contain the character U+0000")
		case '0':
			ok = ok && c.require(storableNumber(token.String()), field,
				"must not contain numbers beyond %d characters or with an exponent beyond %d digits", metadataNumber, metadataExponent)
		}
		if !ok {
			return nil
		}
	}
	return v
}

func storableNumber(s string) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	return len(s) <= metadataNumber && len(strings.TrimLeft(exponent, "+-0")) <= metadataExponent
}

// rateForm is the outline of a rate; what it means, and its bounds, are the limiter's to say.
var rateForm = regexp.MustCompile(`^[1-9][0-9]{0,15}/[0-9]{0,9}[a-z]{1,7}$`)
