package lane

import (
	"errors"
	"fmt"
)

var (
	// ErrFull says that the queue is full. Nothing was done; the caller may retry later.
	ErrFull = errors.New("lane: queue full")

	// ErrLate says that DoBy's time had come before the item's batch started. Nothing was done.
	ErrLate = errors.New("lane: the item's turn did not come in time")

	// ErrStopped says that the lane no longer accepts items, or stopped before the item's batch started. Nothing was done.
	ErrStopped = errors.New("lane: stopped")

	// ErrUnfinished says that the lane's stop deadline passed while the item's batch was in process. The item may or may
	// not have been processed. It matches ErrStopped too: test for ErrUnfinished first where the difference matters.
	ErrUnfinished = fmt.Errorf("%w: batch still in process, outcome unknown", ErrStopped)

	// ErrPanicked says that process panicked on the item's batch. The outcome is unknown. The error is a *PanicError.
	ErrPanicked = errors.New("lane: process panicked")

	// ErrAnswers says that process broke its contract and returned another number of answers than it got items. The outcome
	// is unknown.
	ErrAnswers = errors.New("lane: process returned a wrong number of answers")
)

// PanicError carries what process panicked with. It matches ErrPanicked, and the value itself where that is an error.
type PanicError struct {
	Value any
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("%v: %v", ErrPanicked, e.Value)
}

// Unwrap makes errors.Is and errors.As see ErrPanicked and a panic value that is an error.
func (e *PanicError) Unwrap() []error {
	if cause, ok := e.Value.(error); ok {
		return []error{ErrPanicked, cause}
	}
	return []error{ErrPanicked}
}
