package rule

// FieldError is a refused value: a rule's at Compile, or a request's. Nothing was done.
type FieldError struct {
	// Field is the field's name as the API writes it: "rate", "burst", "charges[2].cost".
	Field string
	// Reason names the bound that was broken. It is meant for people and carries no secret.
	Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }
