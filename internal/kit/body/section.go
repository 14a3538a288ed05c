package body

import (
	"bytes"
	"encoding/json/jsontext"
)

// Section reads an object or an array with any contents and returns its text without unnecessary escapes. kind says
// which of the two is expected. A null is a fault unless mayBeNull returns true for its path.
func (d *Document) Section(kind jsontext.Kind, mayBeNull func(path string) bool) []byte {
	must := "must be an object"
	if kind == '[' {
		must = "must be an array"
	}
	if !d.enter(kind, must) {
		return nil
	}
	var out bytes.Buffer
	enc := jsontext.NewEncoder(&out, jsontext.EscapeForJS(true), jsontext.AllowDuplicateNames(true)) // the decoder refuses duplicates
	next := jsontext.BeginObject
	if kind == '[' {
		next = jsontext.BeginArray
	}
	for depth := 0; ; {
		if next.Kind() == 'n' && !mayBeNull(d.path()) {
			d.fault("must not be null")
		}
		if err := enc.WriteToken(next); err != nil {
			d.breakOff(err)
			return nil
		}
		switch next.Kind() {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		default:
		}
		if depth == 0 {
			return bytes.TrimSpace(out.Bytes())
		}
		token, err := d.dec.ReadToken()
		if err != nil {
			d.breakOff(err)
			return nil
		}
		next = token
	}
}
