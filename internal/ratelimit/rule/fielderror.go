package rule

// FieldError is the error for a value of a Spec or of a request that is not valid. Nothing was changed.
type FieldError struct {
	// Field is the name of the field in the API, for example "rate", "burst" or "charges[2].cost".
	Field string
	// Reason says in words which bound was exceeded. It contains no secret.
	Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }
