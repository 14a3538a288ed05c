package lane

import (
	"errors"
	"fmt"
)

var (
	// ErrFull means that the queue is full. Nothing was done. The caller may retry later.
	ErrFull = errors.New("lane: queue full")

	// ErrLate means that the batch of the item did not start before the deadline of DoBy or DoWithin. Nothing was
	// done.
	ErrLate = errors.New("lane: batch did not start in time")

	// ErrStopped means that the lane was stopped before the batch of the item started. Nothing was done.
	ErrStopped = errors.New("lane: stopped")

	// ErrUnfinished means that the deadline of Stop passed while the batch of the item was being processed. The item
	// may or may not have been processed. ErrUnfinished wraps ErrStopped. To distinguish the two errors, test for
	// ErrUnfinished first.
	ErrUnfinished = fmt.Errorf("%w: batch still in process, outcome unknown", ErrStopped)

	// ErrPanicked means that process panicked with the batch of the item. The outcome is unknown. The error is a
	// *PanicError.
	ErrPanicked = errors.New("lane: process panicked")

	// ErrAnswers means that the number of answers of process differs from the number of items, which is a bug of
	// process. The outcome is unknown.
	ErrAnswers = errors.New("lane: process returned a wrong number of answers")
)

// PanicError contains the value with which process panicked. It wraps ErrPanicked, and also the value if the value is
// an error.
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
