package catalog

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/period"
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
	c.require(bound.ID(id), field, bound.MustBeID)
}

func (c *checker) amount(field string, n, low int64) bool {
	return c.require(n >= low && n <= bound.MaxAmount, field, "%s", bound.MustBeInteger(low, bound.MaxAmount))
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

// metadata checks a JSON object that jsonb must be able to store, and returns it without blanks. It returns nil after a fault.
func (c *checker) metadata(field string, raw []byte) []byte {
	v := jsontext.Value(bytes.Clone(raw))
	if !c.require(v.IsValid() && v.Compact() == nil && bound.Metadata(v), field, bound.MustBeMetadata) {
		return nil
	}
	return v
}

// rateForm is the outline of a rate; what it means, and its bounds, are the limiter's to say.
var rateForm = regexp.MustCompile(`^[1-9][0-9]{0,15}/[0-9]{0,9}[a-z]{1,7}$`)
