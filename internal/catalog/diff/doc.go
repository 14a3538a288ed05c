// Package diff describes what was, or would be, changed in a catalogue: the fields of each object before and after.
// It has no clock, does no I/O, and handles objects only as JSON. Only one goroutine may use a Report. A method fails
// if an object has no JSON form.
package diff
