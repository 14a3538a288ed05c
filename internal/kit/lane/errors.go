package lane

import (
	"errors"
	"fmt"
)

var (
	// ErrFull means that the queue is full. Nothing was done. The caller may retry later.
	ErrFull = errors.New("lane: queue full")

	// ErrLate means that the item's batch did not start before the deadline of DoBy or DoWithin. Nothing was done.
	ErrLate = errors.New("lane: batch did not start in time")

	// ErrStopped means that the lane stopped before the item's batch started. Nothing was done.
	ErrStopped = errors.New("lane: stopped")

	// ErrUnfinished means that Stop's deadline passed while the item's batch was in process. The item may or may not
	// have been processed. ErrUnfinished wraps ErrStopped: if the difference matters, test for ErrUnfinished first.
	ErrUnfinished = fmt.Errorf("%w: batch still in process, outcome unknown", ErrStopped)

	// ErrPanicked means that process panicked on the item's batch. The outcome is unknown. The error is a *PanicError.
	ErrPanicked = errors.New("lane: process panicked")

	// ErrAnswers means that process broke its contract: the number of answers differs from the number of items. The outcome
	// is unknown.
	ErrAnswers = errors.New("lane: process returned a wrong number of answers")
)

// PanicError contains the value with which process panicked. It wraps ErrPanicked. If the value is an error, it wraps
// the value, too.
type PanicError struct {
	Value any
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("%v: %v", ErrPanicked, e.Value)
}

// Unwrap returns ErrPanicked, and the panic value if it is an error.
func (e *PanicError) Unwrap() []error {
	if cause, ok := e.Value.(error); ok {
		return []error{ErrPanicked, cause}
	}
	return []error{ErrPanicked}
}
