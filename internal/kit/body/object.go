package body

import (
	"encoding/json"
	"encoding/json/jsontext"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// Checked is a type that JSON can read: an object of a request by administrators or of a catalogue file.
type Checked interface {
	// Check returns all faults of the object. given has the paths of the fields that occur in the document. A given
	// field must be within its bounds, even if it has the same value as an absent field.
	Check(given Given) []Fault
}

// Given has the paths of the fields that occur in a document. The zero value has no paths.
type Given struct {
	paths map[string]bool
	at    string
}

// Has reports whether the field occurs in the document.
func (g Given) Has(field string) bool { return g.paths[g.at+field] }

// In returns the given fields of a part of the object, for example of allowances[0].
func (g Given) In(part string) Given { return Given{g.paths, g.at + part + "."} }

// Patch is a Checked in which null does not mean an absent field.
type Patch interface {
	Checked

	// Remove is called for an optional field that is null. It removes what the field sets.
	Remove(field string)
}

// Options are the options with which JSON reads a document.
type Options struct {
	// Without names fields of the struct that must not occur in the document: the URL contains their values, or they
	// do not apply.
	Without []string

	// File says that the document comes from a catalogue file. Then null means an absent field, even if the field is
	// required or is an amount of a map. Lists may be absent. Text may be written without quotes.
	File bool
}

// JSON reads text into the struct to which the argument `into` points, by the json tags of its fields. Then it calls
// the struct's Check. A field is required unless it is omitzero, omitempty or a bool. The error is an *Error with the
// faults of text and the faults that Check returns. A null in an optional field means that the field is absent, or is
// removed if the argument is a Patch.
func (d *Document) JSON(text []byte, into Checked, o Options) error {
	if err := d.begin(text); err != nil {
		return err
	}
	r := objectReader{Document: d, Options: o, given: map[string]bool{}, vague: map[string]bool{}, hints: map[string]string{}}
	isObject := r.object(reflect.ValueOf(into).Elem(), o.Without)
	d.end()
	if isObject && !d.broken {
		r.merge(into.Check(Given{paths: r.given}))
	}
	return d.faults.Err()
}

// Field is a field of a struct that JSON reads, with its name in documents.
type Field struct {
	Name     string
	Required bool

	index int
}

// Fields returns the fields that JSON reads into a struct of type t, except for those in the list `without`.
func Fields(t reflect.Type, without []string) []Field {
	var fields []Field
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" || slices.Contains(without, name) {
			continue
		}
		optional := strings.Contains(options, "omit") || t.Field(i).Type.Kind() == reflect.Bool
		fields = append(fields, Field{Name: name, Required: !optional, index: i})
	}
	return fields
}

// listMax bounds the elements of a list that are stored. Every list has a smaller bound, which Check enforces.
const listMax = 1000

// objectReader reads one document into a struct.
type objectReader struct {
	*Document
	Options

	given map[string]bool   // paths of the fields that the document has
	vague map[string]bool   // paths whose fault Check describes better, because Check knows the bounds
	hints map[string]string // by path: text that is appended to the sentence of the fault
}

// object reads an object into the struct v. It returns false if the value is not an object.
func (r *objectReader) object(v reflect.Value, without []string) bool {
	if !r.enter('{', "must be an object") {
		return false
	}
	fields := Fields(v.Type(), without)
	seen := make([]bool, len(fields))
	for !r.broken && r.dec.PeekKind() != '}' {
		name, ok := r.name()
		if !ok {
			return false
		}
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == string(name) })
		switch {
		case i < 0:
			r.fault("is an unknown field" + Similar(string(name), namesOf(fields)))
			r.skip()
		case r.absent(v.Field(fields[i].index), !fields[i].Required):
			if patch, ok := v.Addr().Interface().(Patch); ok {
				patch.Remove(fields[i].Name)
			}
		default:
			seen[i] = true
			r.given[r.path()] = true
			r.read(v.Field(fields[i].index))
		}
	}
	r.leave()
	for i, f := range fields {
		if f.Required && !seen[i] && !r.broken && !(r.File && v.Field(f.index).Kind() == reflect.Slice) {
			r.faults.Add(Join(r.path(), f.Name), mustBeGiven)
		}
	}
	return true
}

func namesOf(fields []Field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return names
}

// absent skips a null that means an absent field, and reports whether there was one. In a field of raw JSON of a file,
// null is a value.
func (r *objectReader) absent(v reflect.Value, optional bool) bool {
	if r.dec.PeekKind() != 'n' || r.File && isRaw(v) || !r.File && !optional {
		return false
	}
	r.skip()
	return true
}

func isRaw(v reflect.Value) bool {
	return v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8
}

// read reads any value into v.
func (r *objectReader) read(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(r.Instant()))
	case isRaw(v):
		if raw, ok := r.value(); ok {
			v.SetBytes(canonical(raw))
		}
	case v.Addr().Type().Implements(reflect.TypeFor[json.Unmarshaler]()):
		r.own(v.Addr().Interface().(json.Unmarshaler))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		r.read(v.Elem())
	case v.Kind() == reflect.Struct:
		r.object(v, nil)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // an empty list counts as given
		r.list(listMax, func() {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			r.read(v.Index(v.Len() - 1))
		})
	case v.Kind() == reflect.Map:
		r.amounts(v)
	case v.Kind() == reflect.Bool:
		v.SetBool(r.Boolean())
	case v.Kind() == reflect.String:
		if text, ok := r.text(); ok {
			v.SetString(text)
		} else {
			r.refuseText()
		}
	case v.CanInt():
		r.integer(v)
	default:
		panic(fmt.Sprintf("body: no way to read a %s", v.Type()))
	}
}

// own reads a value of a type that decodes itself. If decoding fails, the sentence of the fault is the text of the
// error.
func (r *objectReader) own(v json.Unmarshaler) {
	raw, ok := r.value()
	if !ok {
		return
	}
	if err := v.UnmarshalJSON(whole(raw)); err != nil {
		r.fault(err.Error())
	}
}

// integer reads an integer into v. For another value it records a fault that says how to write an integer.
func (r *objectReader) integer(v reflect.Value) {
	raw, ok := r.value()
	if !ok {
		return
	}
	if n, ok := ParseInteger(whole(raw)); ok && n <= bound.MaxAmount {
		v.SetInt(n)
		return
	}
	path := r.path()
	r.fault(bound.MustBeInteger(0, bound.MaxAmount))
	r.vague[path], r.hints[path] = true, integerHint(raw)
}

// integerHint returns a text that says how to write the number that raw probably means. It returns "" if that is not
// known.
func integerHint(raw jsontext.Value) string {
	text := strings.ToLower(strings.Trim(string(raw), `"`)) // a YAML reader reads 1e6 as text
	if slices.Contains([]string{"unlimited", "infinite", "infinity", "inf", ".inf", "none", "no limit"}, text) {
		return "; nothing is unlimited: leave an optional field out, choose a large amount, or allow overage"
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(strings.ReplaceAll(text, "_", ""), ",", ""), 64)
	_, digits := ParseInteger(text)
	switch {
	case err != nil || !(f >= 0 && f <= bound.MaxAmount) || digits && raw.Kind() == '0':
		return ""
	case f == math.Trunc(f):
		return fmt.Sprintf("; write %d", int64(f))
	default:
		return "; there are no fractions: count in a smaller unit"
	}
}

// refuseText records that the value that was read last is not a string.
func (r *objectReader) refuseText() {
	if r.File {
		r.fault("must be text; quote it if it looks like a number")
		return
	}
	r.fault("must be a string")
	r.vague[r.path()] = true
}

// canonical returns JSON without blanks and with sorted fields, as Metadata does. If raw cannot be formatted, it is
// returned unchanged, and Check refuses it.
func canonical(raw jsontext.Value) []byte {
	value := raw.Clone()
	if value.Format(jsontext.ReorderRawObjects(true)) != nil {
		return raw.Clone()
	}
	return value
}

// amounts reads an object into the map v. The field names are ids. The values are integers, features, or pointers to
// integers or features. If they are pointers, null becomes nil.
func (r *objectReader) amounts(v reflect.Value) {
	if !r.enter('{', "must be an object") {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	of := "feature"
	if value := reflect.New(v.Type().Elem()).Elem(); value.CanInt() || value.Type() == reflect.TypeFor[*int64]() {
		of = "meter"
	}
	for !r.broken && r.dec.PeekKind() != '}' {
		name, ok := r.name()
		if !ok {
			return
		}
		id, value := string(name), reflect.New(v.Type().Elem()).Elem()
		switch {
		case !bound.ID(id):
			r.fault("is not the name of a " + of + ", which " + bound.MustBeID)
			r.skip()
			continue
		case r.absent(value, false): // an amount or a feature that is null in a request is no absent one
			continue
		case r.dec.PeekKind() == 'n' && value.Kind() == reflect.Pointer:
			r.skip()
		default:
			r.read(value)
		}
		v.SetMapIndex(reflect.ValueOf(id), value)
	}
	r.leave()
}

// merge adds the faults that Check found to the faults of the document. If there are two faults with the same path,
// it keeps the sentence of the document. If the path is in vague, it uses the sentence of Check instead.
func (r *objectReader) merge(checked []Fault) {
	read := len(r.faults)
	for _, f := range checked {
		i := slices.IndexFunc(r.faults[:read], func(other Fault) bool { return other.Field == f.Field })
		switch {
		case i < 0:
			r.faults.Add(f.Field, f.Message)
		case r.vague[f.Field]:
			r.faults[i].Message = f.Message
			delete(r.vague, f.Field)
		}
	}
	for i := range r.faults[:read] {
		r.faults[i].Message += r.hints[r.faults[i].Field]
	}
}
