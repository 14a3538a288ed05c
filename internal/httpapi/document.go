package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
)

const (
	// BodyMax is the largest request body in bytes. A full batch of 1000 debits with an id of the greatest length in each
	// place is a third of it.
	BodyMax = 1 << 20

	// faultsMax bounds the faults reported at once: more than any person reads, and a hostile body cannot make the answer
	// larger than itself.
	faultsMax = 32

	// pathMax bounds a field's path in an answer in bytes, because unknown names are the client's.
	pathMax = 160
)

// document takes a JSON document apart, strictly and in one pass. Readers such as readObject and text consume one value each;
// what is wrong with a value is collected under its path and reading goes on, so that a client learns of all faults at once.
// Only text that is not JSON ends the reading.
//
// A document is reused: strings it returns are copies, the bytes it holds are not.
type document struct {
	dec    jsontext.Decoder
	in     bytes.Buffer
	faults []wire.FieldError
	broken bool // the text is not JSON from here on
}

// invalid is a refused request: nothing was done.
type invalid struct{ fields []wire.FieldError }

// Error names every field at fault.
func (e *invalid) Error() string {
	var b strings.Builder
	for i, f := range e.fields {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(f.Field + " " + f.Message)
	}
	return b.String()
}

// invalidField refuses one field.
func invalidField(field, format string, args ...any) *invalid {
	return &invalid{fields: []wire.FieldError{{Field: field, Message: fmt.Sprintf(format, args...)}}}
}

// member is a field of an object: which one, and how to read it into T.
type member[T any] struct {
	name     string
	required bool
	read     func(d *document, into *T)
}

// decodeBody reads body, which must hold one object of these members and nothing else. The error is *invalid.
func decodeBody[T any](d *document, body []byte, into *T, members []member[T]) error {
	d.reset(body)
	if len(bytes.TrimLeft(body, " \t\r\n")) == 0 {
		return invalidField("body", "must be a JSON object; it is empty")
	}
	readObject(d, into, members)
	if !d.broken {
		if _, err := d.dec.ReadToken(); !errors.Is(err, io.EOF) {
			d.fault("body", "must end after the JSON object")
		}
	}
	if len(d.faults) == 0 {
		return nil
	}
	return &invalid{fields: append([]wire.FieldError(nil), d.faults...)}
}

func (d *document) reset(body []byte) {
	d.in = *bytes.NewBuffer(body)
	d.dec.Reset(&d.in)
	d.faults, d.broken = d.faults[:0], false
}

// readObject reads an object of these members. Others are faults, and so are required ones that are missing.
func readObject[T any](d *document, into *T, members []member[T]) {
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
			d.fault(d.path(), "is not a field of this request")
			d.skip()
			continue
		}
		seen |= 1 << i
		members[i].read(d, into)
	}
	d.leave()
	for i := range members {
		if members[i].required && seen&(1<<i) == 0 && !d.broken {
			d.fault(joinPath(d.path(), members[i].name), "is required")
		}
	}
}

func memberIndex[T any](members []member[T], name []byte) int {
	for i := range members {
		if members[i].name == string(name) {
			return i
		}
	}
	return -1
}

// readList reads an array of low to high values, each by read.
func readList[T any](d *document, into *[]T, low, high int, read func(d *document, into *T)) {
	if !d.enter('[', "must be an array") {
		return
	}
	n := 0
	for ; !d.broken && d.dec.PeekKind() != ']'; n++ {
		if n >= high {
			d.skip()
			continue
		}
		*into = append(*into, *new(T))
		read(d, &(*into)[n])
	}
	d.leave()
	if !d.broken && (n < low || n > high) {
		d.fault(d.path(), fmt.Sprintf("must have %d to %d elements; it has %d", low, high, n))
	}
}

// readMap reads an object of at most high members with names of the client's. read is called for each after its name was read.
func readMap(d *document, high int, read func(name string)) {
	if !d.enter('{', "must be an object") {
		return
	}
	n := 0
	for ; !d.broken && d.dec.PeekKind() != '}'; n++ {
		name, ok := d.name()
		if !ok {
			return
		}
		if n >= high {
			d.skip()
			continue
		}
		read(string(name))
	}
	d.leave()
	if !d.broken && n > high {
		d.fault(d.path(), fmt.Sprintf("must have at most %d members; it has %d", high, n))
	}
}

// enter consumes the opening delimiter of an object or array.
func (d *document) enter(kind jsontext.Kind, must string) bool {
	if d.broken {
		return false
	}
	if got := d.dec.PeekKind(); got != kind && got != jsontext.KindInvalid {
		d.skip()
		d.faultHere(must)
		return false
	}
	if _, err := d.dec.ReadToken(); err != nil {
		d.breakOff(err)
		return false
	}
	return true
}

// leave consumes the closing delimiter.
func (d *document) leave() {
	if d.broken {
		return
	}
	if _, err := d.dec.ReadToken(); err != nil {
		d.breakOff(err)
	}
}

// name reads a member's name. The bytes are good until the next read.
func (d *document) name() ([]byte, bool) {
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

// value reads any value. The bytes are good until the next read.
func (d *document) value() (jsontext.Value, bool) {
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

func (d *document) skip() {
	if err := d.dec.SkipValue(); err != nil {
		d.breakOff(err)
	}
}

// breakOff ends the reading of text that is not JSON.
func (d *document) breakOff(err error) {
	d.broken = true
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case ok && errors.Is(syntax.Err, jsontext.ErrDuplicateName):
		d.fault(d.pathOf(syntax.JSONPointer), "is there twice")
	case ok && !errors.Is(syntax.Err, io.ErrUnexpectedEOF):
		d.fault(d.pathOf(syntax.JSONPointer), fmt.Sprintf("is not JSON at byte %d: %v", syntax.ByteOffset, syntax.Err))
	default:
		d.fault("body", fmt.Sprintf("is not JSON: it ends early, at byte %d", d.dec.InputOffset()))
	}
}

// faultHere records what is wrong with the value read last.
func (d *document) faultHere(must string) {
	if !d.broken {
		d.fault(d.path(), must)
	}
}

func (d *document) fault(path, must string) {
	if len(d.faults) < faultsMax {
		d.faults = append(d.faults, wire.FieldError{Field: path, Message: must})
	}
}

// path is where the value read last stands: items[0].amount, or body for the document itself.
func (d *document) path() string { return d.pathOf(d.dec.StackPointer()) }

func (d *document) pathOf(pointer jsontext.Pointer) string {
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
			path = joinPath(path, token)
		}
		if len(path) > pathMax {
			return strings.ToValidUTF8(path[:pathMax], "") + "..."
		}
	}
	if path == "" {
		return "body"
	}
	return path
}

func joinPath(path, name string) string {
	if path == "" || path == "body" {
		return name
	}
	return path + "." + name
}

// unquote returns a JSON string's text. Without escapes it is part of raw.
func unquote(raw jsontext.Value) ([]byte, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	return jsontext.AppendUnquote(nil, raw)
}
