package console

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/access"
)

// failure is an error with texts for the people who use the console.
type failure struct {
	status int
	title  string // what failed
	detail string // what was not done, and what the person can do now
	fields []client.FieldError
	id     string // the request id, which is in the log
	wait   string // when to try again, for the header Retry-After; empty: no header
	// unknown is true if it is not known whether something was changed.
	unknown bool
}

// Error returns the title and the detail, for logs.
func (f *failure) Error() string { return f.title + ": " + f.detail }

// changed returns a sentence that says whether something was changed.
func (f *failure) changed() string {
	if f.unknown {
		return "The change may have been made or not."
	}
	return "Nothing was changed."
}

// badForm returns the error for a body that is not a form or that is too large.
func badForm(err error) error {
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return &failure{status: http.StatusRequestEntityTooLarge, title: "The form is too large", detail: "Nothing was changed. A form may have 64 KiB, and the text of the catalogue 256 KiB."}
	}
	return &failure{status: http.StatusBadRequest, title: "The form cannot be read", detail: "Nothing was changed. Open the page again and send its form."}
}

// explain returns err as an error with texts for people.
func explain(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	r, refused := errors.AsType[*access.Refusal](err)
	if refused && r.Reason == access.TooMany {
		return &failure{status: http.StatusTooManyRequests, title: "Too many sessions that do not exist", wait: r.Seconds(), detail: "Nothing was changed. Wait a second and try again."}
	}
	if refused && r.Reason != access.Unknown {
		return &failure{status: http.StatusServiceUnavailable, title: "The key cannot be checked now", detail: "Nothing was changed. Try again in a moment."}
	}
	if e := client.AsError(err); e != nil {
		return ofAPI(e)
	}
	return &failure{status: http.StatusServiceUnavailable, title: "PostgreSQL does not answer", detail: "Sessions are stored there, so no page can be shown. Nothing was changed. Try again in a moment."}
}

// titles has titles of error pages, keyed by the code of the API's error. Errors with another code have a general
// title.
var titles = map[client.ProblemCode]string{
	client.ProblemCodeInvalidArgument: "The API does not accept this", client.ProblemCodeForbidden: "This key may not do that",
	client.ProblemCodeUnauthenticated: "The key no longer works", client.ProblemCodeTenantNotFound: "There is no such tenant",
	client.ProblemCodeNotFound: "There is nothing with this id", client.ProblemCodeGrantNotFound: "There is no such grant",
	client.ProblemCodeOperationNotFound: "There is no such operation", client.ProblemCodeMeterNotInPlan: "The tenant's plan does not have this meter",
	client.ProblemCodeTenantSuspended: "The tenant is suspended", client.ProblemCodePreconditionFailed: "Someone else changed it",
	client.ProblemCodeTooMany:            "The tenant's keys have created as many as they may",
	client.ProblemCodeTooManyGrants:      "The balance has too many open grants",
	client.ProblemCodeRefundExceedsDebit: "More than the operation used cannot be refunded", client.ProblemCodeArchived: "This was archived",
	client.ProblemCodeReportTooSlow: "This report takes too long", client.ProblemCodeQueueFull: "Too many requests wait",
	client.ProblemCodeUnavailable: "The service cannot decide now", client.ProblemCodeOutcomeUnknown: "The outcome is not known",
	client.ProblemCodeCreditsExhausted: "Not enough units", client.ProblemCodeQuotaExceeded: "Not enough units",
	client.ProblemCodeIdempotencyKeyReused: "This form was sent before with other values",
}

// titleOf returns the title of an error page. An error whose code has no title is a refusal by the API, a change whose
// outcome is unknown, or a failure to read from the API.
func titleOf(e *client.Error) string {
	refused := e.Problem != nil && e.Status < http.StatusInternalServerError
	switch {
	case titles[e.Code] != "":
		return titles[e.Code]
	case refused:
		return "The API refuses this (" + string(e.Code) + ")"
	case e.OutcomeUnknown:
		return titles[client.ProblemCodeOutcomeUnknown]
	case e.Status == 0:
		return "Failed to read: " + string(e.Code)
	default:
		return fmt.Sprintf("Failed to read: %s, status %d", e.Code, e.Status)
	}
}

// ofAPI returns an error of the API as an error with texts for people.
func ofAPI(e *client.Error) *failure {
	f := &failure{status: e.Status, title: titleOf(e), detail: sentence(e.Detail), id: e.RequestID}
	switch {
	case e.Status == 0:
		f.status = http.StatusServiceUnavailable
	case e.Status < http.StatusBadRequest: // an answer that the client cannot read is no success of the page
		f.status = http.StatusBadGateway
	}
	if e.Problem != nil {
		f.fields = e.Problem.Errors
	}
	if f.unknown = e.OutcomeUnknown; f.unknown {
		f.detail += " Send the same form again: it takes effect only once."
	}
	return f
}

// fail shows an error page, or a section with the error if htmx requested a section.
func (c *call) fail(err error) {
	f := explain(err)
	if f.status >= http.StatusInternalServerError {
		c.console.cfg.Log.LogAttrs(c.ctx, slog.LevelWarn, "console page not shown", slog.String("error", err.Error()), slog.String("route", c.r.Pattern))
	}
	if f.wait != "" {
		c.w.Header().Set("Retry-After", f.wait)
	}
	content := failurePage(c, f)
	if c.partial() {
		content = problem(f)
	}
	if failed := c.render(f.status, content); failed != nil {
		c.console.cfg.Log.LogAttrs(c.ctx, slog.LevelError, "console page not made", slog.String("error", failed.Error()))
		c.status = http.StatusInternalServerError
		http.Error(c.w, "The page could not be created. Nothing was changed.", c.status)
	}
}

// showNowhere returns the error for a path that has no page.
func showNowhere(c *call) error {
	return &failure{status: http.StatusNotFound, title: "There is no such page", detail: fmt.Sprintf("%s is not a page of the console.", c.r.URL.Path)}
}
