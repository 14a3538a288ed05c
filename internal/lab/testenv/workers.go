package testenv

import "sync"

// Together calls f n times at once, with the numbers from 0 to n-1, and waits until all calls have returned.
func Together(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}
