// Package diff describes the changes of a catalogue that were made, or that a dry run would make: the fields of each
// object before and after. It has no clock and does no I/O. It knows an object (a meter, plan, limit, tenant or
// block) only as JSON. Only one goroutine may use a Report. A method fails if an object has no JSON form.
package diff
