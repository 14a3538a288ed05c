package cowmap

import (
	"runtime"
	"slices"
)

// yieldEvery is the number of steps of a long computation after which others run: some tens of microseconds.
const yieldEvery = 256

// Yield is called in step i of a computation about everything. Without it, Go would let the computation have a processor for 10 ms at a time, while
// requests wait.
func Yield(i int) {
	if i%yieldEvery == yieldEvery-1 {
		runtime.Gosched()
	}
}

// Merged returns the elements of two lists, which are in order, in order. It compares few of those in many.
func Merged[T any](many, few []T, compare func(a, b T) int) []T {
	if len(few) == 0 {
		return many
	}
	all := make([]T, 0, len(many)+len(few))
	for _, v := range few {
		at, _ := slices.BinarySearchFunc(many, v, compare)
		all = append(append(all, many[:at]...), v)
		many = many[at:]
	}
	return append(all, many...)
}

// Added returns the elements of now that before lacks. Both are in order. It compares only those that are not in both.
func Added[T comparable](now, before []T, compare func(a, b T) int) (added []T) {
	for i, v := range now {
		Yield(i)
		for len(before) > 0 && before[0] != v && compare(before[0], v) < 0 {
			before = before[1:]
		}
		if len(before) > 0 && before[0] == v {
			before = before[1:]
		} else {
			added = append(added, v)
		}
	}
	return added
}
