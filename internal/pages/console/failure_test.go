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
		{&client.Error{Code: client.CodeTimeout, Detail: "no answer", OutcomeUnknown: true}, http.StatusServiceUnavailable, true, "takes effect only once"},
		{&client.Error{Status: 409, Code: client.ProblemCodePreconditionFailed, Detail: "the tenant has another version"}, 409, false, "The tenant has another version."},
		{errors.New("connection refused"), 503, false, "Nothing was changed"},
		{&client.Error{Status: 200, Code: client.CodeNotTheService, Detail: "the answer is not that of this operation"}, 502, false, "The answer is not"},
		{&client.Error{Code: client.CodeTimeout, Detail: "no answer within 5s"}, 503, false, "No answer within 5s."},
	} {
		f := explain(tc.err)
		assert.True(t, f.status == tc.status && f.unknown == tc.unknown && strings.Contains(f.detail, tc.says),
			"%v: %+v", tc.err, f)
		assert.True(t, strings.HasPrefix(f.changed(), "Nothing") != tc.unknown, "%v: %s", tc.err, f.changed())
	}
}

// TestExplain_FailedRead_SaysSoWithItsStatus: a read that failed changes nothing, and its form need not be sent again.
func TestExplain_FailedRead_SaysSoWithItsStatus(t *testing.T) {
	t.Parallel()
	for title, err := range map[string]*client.Error{
		"Failed to read: not_the_service, status 200": {Status: 200, Code: client.CodeNotTheService},
		"Failed to read: not_the_service, status 413": {Status: 413, Code: client.CodeNotTheService},
		"Failed to read: internal, status 500":        {Status: 500, Code: client.ProblemCodeInternal, Problem: &client.Problem{}},
		"Failed to read: timeout":                     {Code: client.CodeTimeout},
		"The outcome is not known":                    {Status: 200, Code: client.CodeNotTheService, OutcomeUnknown: true},
		"The API refuses this (hold_not_active)":      {Status: 409, Code: client.ProblemCodeHoldNotActive, Problem: &client.Problem{}},
	} {
		f := explain(err)
		assert.Equal(t, title, f.title)
		assert.True(t, f.status >= 400, "%s: the page has status %d", title, f.status)
		assert.Equal(t, err.OutcomeUnknown, strings.Contains(f.detail, "Send the same form again"), "%s: %s", title, f.detail)
	}
}
