package console

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
)

// TestExplain_UnknownOutcome_IsNotCalledNothing: if it is not known whether something was changed, a page does not
// say that nothing was changed.
func TestExplain_UnknownOutcome_IsNotCalledNothing(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err     error
		status  int
		unknown bool
		says    string
	}{
		{&client.Error{Status: 503, Code: client.ProblemCodeOutcomeUnknown, Detail: "the outcome is not known", OutcomeUnknown: true}, 503, true, "Send the same form again"},
		{&client.Error{Code: client.CodeTimeout, Detail: "no answer", OutcomeUnknown: true}, http.StatusServiceUnavailable, true, "takes effect once"},
		{&client.Error{Status: 409, Code: client.ProblemCodePreconditionFailed, Detail: "the tenant has another version"}, 409, false, "The tenant has another version."},
		{errors.New("connection refused"), 503, false, "Nothing was changed"},
	} {
		f := explain(tc.err)
		assert.True(t, f.status == tc.status && f.unknown == tc.unknown && strings.Contains(f.detail, tc.says),
			"%v: %+v", tc.err, f)
		assert.True(t, strings.HasPrefix(f.changed(), "Nothing") != tc.unknown, "%v: %s", tc.err, f.changed())
	}
}
