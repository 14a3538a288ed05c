package bench

import (
	"syscall"
	"time"
)

// sleep waits for d. The error is at most the kernel's timer slack of 50 µs.
func sleep(d time.Duration) {
	spec := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&spec, nil) // a signal may end the sleep early; the caller reads the clock again
}
