package route

// The forms in which clients spell one route. A router behind the service may treat the spellings of a form as one.
const (
	FormCase          = "case"           // upper and lower case
	FormTrailingSlash = "trailing_slash" // a slash at the end
	FormMatrix        = "matrix"         // parameters of a segment, after a semicolon
	FormEncodedSlash  = "encoded_slash"  // %2f for a slash
)

// Forms returns all forms.
func Forms() []string { return []string{FormCase, FormTrailingSlash, FormMatrix, FormEncodedSlash} }
