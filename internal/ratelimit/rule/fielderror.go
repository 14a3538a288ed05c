package rule

// FieldError is the error for a refused value of a Spec or of a request. Nothing was done.
type FieldError struct {
	// Field is the name of the field in the API: "rate", "burst", "charges[2].cost".
	Field string
	// Reason names the bound that was exceeded. It is for people and contains no secret.
	Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }
