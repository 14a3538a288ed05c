package rule

// FieldError is a refused value of a Spec or of a request. Nothing was done.
type FieldError struct {
	// Field is the field's name as the API writes it: "rate", "burst", "charges[2].cost".
	Field string
	// Reason names the bound that was broken. It is for people and contains no secret.
	Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }
