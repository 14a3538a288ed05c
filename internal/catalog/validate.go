package catalog

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/period"
)

// checker collects the faults of an object.
type checker struct {
	given  body.Given // what the document gave of the object
	fields []body.Fault
}

// has reports whether a field is to be checked: it is set, or the document gave it.
func (c *checker) has(field string, set bool) bool { return set || c.given.Has(field) }

func (c *checker) require(ok bool, field, format string, args ...any) bool {
	if !ok {
		c.fields = append(c.fields, body.Fault{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	return ok
}

// within adds the faults that check finds in a part of the object.
func (c *checker) within(part string, check func(*checker)) {
	inner := checker{given: c.given.In(part)}
	check(&inner)
	for _, f := range inner.fields {
		c.fields = append(c.fields, body.Fault{Field: part + "." + f.Field, Message: f.Message})
	}
}

func (c *checker) id(field, id string) {
	c.require(bound.ID(id), field, bound.MustBeID)
}

func (c *checker) amount(field string, n, low int64) bool {
	return c.require(n >= low && n <= bound.MaxAmount, field, "%s", bound.MustBeInteger(low, bound.MaxAmount))
}

// text checks text for people.
func (c *checker) text(field, s string, low, high int) {
	c.require(bound.Text(s, low, high), field, "%s", bound.MustBeText(low, high))
}

func (c *checker) oneOf(field, s string, choices ...string) {
	c.require(slices.Contains(choices, s), field, "%s", body.OneOf(choices...))
}

func (c *checker) instant(field string, t time.Time) {
	c.require(!t.Before(period.Earliest) && t.Before(period.Latest), field, "%s", body.MustBeInstant())
}

// zone checks the name of a time zone.
func (c *checker) zone(field, name string) {
	c.require(body.IsZone(name), field, body.MustBeZone)
}

// err returns nil, or an *Error with all faults.
func (c *checker) err() error { return invalid(c.fields) }

// validate returns nil, or an *Error with CodeInvalidArgument and all faults of o.
func validate(o body.Checked) error { return invalid(o.Check(body.Given{})) }

// invalid returns nil if there are no faults, and otherwise an *Error with CodeInvalidArgument.
func invalid(faults []body.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	return &Error{Code: CodeInvalidArgument, Fields: faults}
}

// metadata checks a JSON object for a jsonb column, and returns it without blanks. It returns nil for a fault.
func (c *checker) metadata(raw []byte) []byte {
	v := jsontext.Value(bytes.Clone(raw))
	if !c.require(v.IsValid() && v.Compact() == nil && bound.Metadata(v), "metadata", bound.MustBeMetadata) {
		return nil
	}
	return v
}

// rateForm is the syntax of a rate. The limiter checks its meaning and its bounds.
var rateForm = regexp.MustCompile(`^[1-9][0-9]{0,15}/[0-9]{0,9}[a-z]{1,7}$`)
