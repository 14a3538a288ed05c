// Package diff says what was, or would be, changed in a catalogue: for each object its fields before and after. It is pure, and knows objects as
// JSON only. A Report is for one goroutine. The error of a method says that an object has no JSON form.
package diff
