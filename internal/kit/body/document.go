package body

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Document is a JSON object that is being read. Functions such as ReadObject, ID and Amount read one value each. If a
// value is wrong, they record a fault under its path and continue.
//
// A Document can be reused for another text. Strings that it returns are copies; byte slices are not.
type Document struct {
	dec    jsontext.Decoder
	in     bytes.Buffer
	faults Faults
	broken bool // reading has stopped: the rest cannot be read
}

// Member is a field of an object: its name, whether it is required, and the function that reads it into T.
type Member[T any] struct {
	Name     string
	Required bool
	Read     func(d *Document, into *T)
}

// Required returns a required member.
func Required[T any](name string, read func(d *Document, into *T)) Member[T] {
	return Member[T]{Name: name, Required: true, Read: read}
}

// Optional returns a member that may be absent.
func Optional[T any](name string, read func(d *Document, into *T)) Member[T] {
	return Member[T]{Name: name, Read: read}
}

// Decode reads text, which must be one object with these members and nothing else. The error is an *Error.
func Decode[T any](d *Document, text []byte, into *T, members []Member[T]) error {
	if err := d.begin(text); err != nil {
		return err
	}
	ReadObject(d, into, members)
	d.end()
	return d.faults.Err()
}

// begin prepares the document for text.
func (d *Document) begin(text []byte) error {
	if len(bytes.TrimLeft(text, " \t\r\n")) == 0 {
		return Refuse(root, "must be a JSON object; it is empty")
	}
	d.in = *bytes.NewBuffer(text)
	d.dec.Reset(&d.in)
	d.faults, d.broken = d.faults[:0], false
	return nil
}

// end records a fault if any text follows the object.
func (d *Document) end() {
	if d.broken {
		return
	}
	if _, err := d.dec.ReadToken(); !errors.Is(err, io.EOF) {
		d.faults.Add(root, "must end after the JSON object")
	}
}

// ReadObject reads an object with these members. Unknown fields and missing required fields are faults. A null in an
// optional field is read as if the field were absent: many clients send all fields.
func ReadObject[T any](d *Document, into *T, members []Member[T]) {
	if !d.enter('{', "must be an object") {
		return
	}
	var seen uint32
	for !d.broken && d.dec.PeekKind() != '}' {
		name, ok := d.name()
		if !ok {
			return
		}
		i := memberIndex(members, name)
		if i < 0 {
			d.refuseField()
			continue
		}
		if !members[i].Required && d.dec.PeekKind() == 'n' {
			d.skip()
			continue
		}
		seen |= 1 << i
		members[i].Read(d, into)
	}
	d.leave()
	for i := range members {
		if members[i].Required && seen&(1<<i) == 0 && !d.broken {
			d.faults.Add(Join(d.path(), members[i].Name), mustBeGiven)
		}
	}
}

const mustBeGiven = "is required"

func memberIndex[T any](members []Member[T], name []byte) int {
	for i := range members {
		if members[i].Name == string(name) {
			return i
		}
	}
	return -1
}

// refuseField records that the field that was read last is unknown, and skips its value.
func (d *Document) refuseField() {
	d.fault("is an unknown field")
	d.skip()
}

// ReadList reads an array of `low` to `high` elements. It calls the function `read` for each element, and skips the
// elements after the first `high` ones.
func ReadList[T any](d *Document, into *[]T, low, high int, read func(d *Document, into *T)) {
	n := d.list(high, func() {
		*into = append(*into, *new(T))
		read(d, &(*into)[len(*into)-1])
	})
	if n >= 0 && (n < low || n > high) {
		d.fault(fmt.Sprintf("must have %d to %d elements; it has %d", low, high, n))
	}
}

// list reads an array and calls the function `read` for at most `high` elements. It returns the length of the array, or
// -1 if the value is not an array or cannot be read.
func (d *Document) list(high int, read func()) int {
	if !d.enter('[', "must be an array") {
		return -1
	}
	n := 0
	for ; !d.broken && d.dec.PeekKind() != ']'; n++ {
		if n < high {
			read()
		} else {
			d.skip()
		}
	}
	d.leave()
	if d.broken {
		return -1
	}
	return n
}

// enter consumes the opening delimiter of an object or array. If the value is of another kind, it records a fault
// with the text `must`, and returns false.
func (d *Document) enter(kind jsontext.Kind, must string) bool {
	if d.broken {
		return false
	}
	if got := d.dec.PeekKind(); got != kind && got != jsontext.KindInvalid {
		d.skip()
		d.fault(must)
		return false
	}
	if _, err := d.dec.ReadToken(); err != nil {
		d.breakOff(err)
		return false
	}
	return true
}

// leave consumes the closing delimiter.
func (d *Document) leave() {
	if d.broken {
		return
	}
	if _, err := d.dec.ReadToken(); err != nil {
		d.breakOff(err)
	}
}

// name reads the name of a field. The bytes are valid until the next read.
func (d *Document) name() ([]byte, bool) {
	raw, ok := d.value()
	if !ok {
		return nil, false
	}
	name, err := unquote(raw)
	if err != nil {
		d.breakOff(err)
		return nil, false
	}
	return name, true
}

// value reads any value. The bytes are valid until the next read.
func (d *Document) value() (jsontext.Value, bool) {
	if d.broken {
		return nil, false
	}
	raw, err := d.dec.ReadValue()
	if err != nil {
		d.breakOff(err)
		return nil, false
	}
	return raw, true
}

// skip consumes any value.
func (d *Document) skip() {
	if d.broken {
		return
	}
	if err := d.dec.SkipValue(); err != nil {
		d.breakOff(err)
	}
}

// breakOff stops reading because the text is not JSON or has a duplicate field.
func (d *Document) breakOff(err error) {
	d.broken = true
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case ok && errors.Is(syntax.Err, jsontext.ErrDuplicateName):
		d.faults.Add(d.pathOf(syntax.JSONPointer), "is a duplicate field")
	case ok && !errors.Is(syntax.Err, io.ErrUnexpectedEOF):
		d.faults.Add(d.pathOf(syntax.JSONPointer), fmt.Sprintf("is not JSON at byte %d: %v", syntax.ByteOffset, syntax.Err))
	default:
		d.faults.Add(root, fmt.Sprintf("is not JSON: it ends early, at byte %d", d.dec.InputOffset()))
	}
}

// fault records a fault of the value that was read last. The text `must` says what the value must be.
func (d *Document) fault(must string) { d.FaultIn("", must) }

// FaultIn records a fault in a part of the value that was read last.
func (d *Document) FaultIn(part, must string) {
	if !d.broken {
		d.faults.Add(d.path()+part, must)
	}
}

// Withdraw removes the fault of a field of the object that was read last, so that this fault does not refuse the whole
// document. It returns the fault under the field's name as an *Error, or nil if the field has no fault.
func (d *Document) Withdraw(field string) error {
	if d.broken {
		return nil
	}
	path := Join(d.path(), field)
	i := slices.IndexFunc(d.faults, func(f Fault) bool { return f.Field == path })
	if i < 0 {
		return nil
	}
	refused := &Error{Faults: []Fault{{Field: field, Message: d.faults[i].Message}}}
	d.faults = slices.Delete(d.faults, i, i+1)
	return refused
}

// root is the path of the document itself.
const root = "body"

// path returns the path of the value that was read last.
func (d *Document) path() string { return d.pathOf(d.dec.StackPointer()) }

func (d *Document) pathOf(pointer jsontext.Pointer) string {
	path, level := "", 0
	for token := range pointer.Tokens() {
		level++
		inArray := false
		if level <= d.dec.StackDepth() {
			kind, _ := d.dec.StackIndex(level)
			inArray = kind == '['
		}
		if inArray {
			path += "[" + token + "]"
		} else {
			path = Join(path, token)
		}
		if len(path) > pathMax {
			return Clip(path)
		}
	}
	if path == "" {
		return root
	}
	return path
}

// Join returns the path of a field of the object at path.
func Join(path, field string) string {
	if path == "" || path == root {
		return field
	}
	return path + "." + field
}

// unquote returns the text of a JSON string. If the string has no escapes, the result shares memory with raw.
func unquote(raw jsontext.Value) ([]byte, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	return jsontext.AppendUnquote(nil, raw)
}

// OneOf returns the sentence of a fault for a value that must be one of words.
func OneOf(words ...string) string { return "must be one of: " + strings.Join(words, ", ") }
