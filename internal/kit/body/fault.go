package body

import (
	"fmt"
	"strings"
)

const (
	// faultsMax bounds the faults that are reported at once. People do not read more.
	faultsMax = 32

	// pathMax bounds a path in bytes, because a path contains names of unknown fields, which clients choose.
	pathMax = 160
)

// Fault is one fault of a request or an object: a field that is wrong.
type Fault struct {
	Field   string `json:"field"`   // a path such as allowances[0].amount
	Message string `json:"message"` // what the field must be
}

// Error returns field and message.
func (f *Fault) Error() string { return f.Field + " " + f.Message }

// Faults collects faults.
type Faults []Fault

// Add adds a fault unless there are faultsMax faults already.
func (f *Faults) Add(field, message string) {
	if len(*f) < faultsMax {
		*f = append(*f, Fault{Field: field, Message: message})
	}
}

// Err returns nil if there are no faults. Otherwise it returns an *Error with a copy of the faults.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return f.refuse()
}

// refuse returns an *Error with a copy of the faults, because a Document reuses its list of faults.
func (f Faults) refuse() error { return &Error{Faults: append([]Fault(nil), f...)} }

// Error says that a request was refused because of its faults. Nothing was done.
type Error struct{ Faults []Fault }

// Error returns all faults, separated by semicolons.
func (e *Error) Error() string {
	var b strings.Builder
	for i := range e.Faults {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(e.Faults[i].Error())
	}
	return b.String()
}

// Refuse returns an *Error with one fault of one field.
func Refuse(field, format string, args ...any) *Error {
	return &Error{Faults: []Fault{{Field: field, Message: fmt.Sprintf(format, args...)}}}
}

// Clip shortens a name that a client sent to at most pathMax bytes and makes it valid UTF-8.
func Clip(name string) string {
	if len(name) <= pathMax {
		return strings.ToValidUTF8(name, "")
	}
	return strings.ToValidUTF8(name[:pathMax], "") + "..."
}
