package testenv

import "github.com/stretchr/testify/require"

// Results takes the results of calls that a test expects to succeed.
type Results struct{ t require.TestingT }

// Must returns the Results of test t. An example: text := testenv.Must(t).Get(os.ReadFile(path)).
func Must(t require.TestingT) Results { return Results{t} }

// Get returns value. If err is not nil, Get ends the test. Call it only in the goroutine of the test.
func (r Results) Get[V any](value V, err error) V {
	if t, ok := r.t.(interface{ Helper() }); ok {
		t.Helper()
	}
	require.NoError(r.t, err)
	return value
}
