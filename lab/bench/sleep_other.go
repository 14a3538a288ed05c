//go:build !linux

package bench

import "time"

// sleep waits for d.
func sleep(d time.Duration) { time.Sleep(d) }
