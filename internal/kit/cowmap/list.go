package cowmap

import (
	"runtime"
	"slices"
)

// yieldEvery is the number of steps of a long computation after which other goroutines may run. That many steps take
// some tens of microseconds.
const yieldEvery = 256

// Yield lets other goroutines run if i is the last of yieldEvery steps of a long computation. Without Yield, Go would
// let the computation use a processor for 10 ms at a time, while requests wait.
func Yield(i int) {
	if i%yieldEvery == yieldEvery-1 {
		runtime.Gosched()
	}
}

// Merged returns one sorted list with the elements of two sorted lists. The number of comparisons is about len(few)
// times the logarithm of len(many).
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

// Added returns the elements of the list `now` that are not in the list `before`. Both lists must be sorted. It calls
// compare only for elements that are not in both lists.
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
