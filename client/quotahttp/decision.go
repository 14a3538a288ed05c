package quotahttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// late is the time after which an abandoned attempt has certainly ended at the service, which answers within 5 s.
const late = 6 * time.Second

// Decision says whether a request may be served.
type Decision struct {
	Passed bool
	Status int         // of the refusal
	Header http.Header // for the client, whether or not the request passed
	Body   []byte      // of the refusal: application/problem+json

	settle func(status int)
}

// Settle refunds the units if the handler failed. Call it once after the handler, with the status of its answer. It
// does not wait.
func (d *Decision) Settle(status int) {
	if d.settle != nil {
		d.settle(status)
	}
}

// denials are the codes of refusals whose cause is the client. All other refusals are caused by this backend.
var denials = []client.ProblemCode{
	client.ProblemCodeQuotaExceeded, client.ProblemCodeCreditsExhausted, client.ProblemCodeRateLimited, client.ProblemCodeTenantSuspended,
	client.ProblemCodeMeterNotInPlan, "feature_not_in_plan", client.ProblemCodeCostExceedsCapacity,
}

// Decide charges a request. An error is a fault of this backend (a wrong key, an unknown tenant) or a context that
// ended.
func Decide[R any](ctx context.Context, c *client.Client, o *Rules[R], req R, seen Seen) (*Decision, error) {
	body, err := o.consume(req, seen)
	if err != nil {
		return nil, err
	}
	if body == nil {
		return &Decision{Passed: true}, nil
	}
	given := call(o.IdempotencyKey, req)
	key := given
	if key == "" {
		key = client.NewKey()
	}
	var meta client.Meta
	options := []client.Option{
		client.WithKey(key), client.WithTimeout(o.Timeout), client.WithDeadline(o.Deadline), client.KeepDenial(), client.WithMeta(&meta),
	}
	if o.FailOpen != nil {
		options = append(options, client.WithFailOpen(*o.FailOpen))
	}
	answer, err := c.Consume(ctx, *body, options...)
	if failed := client.AsError(err); failed != nil {
		if failed.OutcomeUnknown && given == "" {
			c.UndoLater(ctx, body.Tenant, key, late)
		}
		return refuse(failed)
	}
	if err != nil {
		return nil, err
	}
	d := &Decision{Passed: true, Header: passOn(meta.Header)}
	// An earlier request with the same key may have been served. Its charge must not be refunded.
	if served := given != "" && meta.Replayed && meta.Attempts == 1; !meta.FailedOpen && !served {
		d.settle = func(status int) {
			if o.Refund(status) {
				c.UndoLater(ctx, body.Tenant, answer.OperationID, 0)
			}
		}
	}
	return d, nil
}

// refuse returns the refusal for the client. If the client must not see the problem, it returns an error.
func refuse(e *client.Error) (*Decision, error) {
	if errors.Is(e, client.ErrUndecided) {
		return undecided(e), nil
	}
	p := e.Problem
	if p == nil {
		return nil, e
	}
	// rate_limited without a violated limit means that this backend has sent wrong keys.
	wrongKeys := p.Code == client.ProblemCodeRateLimited && len(p.ViolatedPolicies) == 0
	switch {
	case wrongKeys:
		return undecided(e), nil
	case slices.Contains(denials, p.Code):
		return refused(e.Status, passOn(e.Header), p)
	case p.Blocked != nil:
		// The client must not learn which block refused the request, and why.
		return refused(http.StatusForbidden, nil, &client.Problem{
			Type: p.Type, Title: p.Title, Status: http.StatusForbidden, Detail: "blocked", Code: p.Code, RequestID: p.RequestID,
		})
	}
	return nil, fmt.Errorf("quota: the service refused this backend: %w", e)
}

func undecided(e *client.Error) *Decision {
	seconds := max(int64((e.RetryAfter+time.Second-1)/time.Second), 1)
	d, _ := refused(http.StatusServiceUnavailable, http.Header{"Retry-After": {strconv.FormatInt(seconds, 10)}}, &client.Problem{
		Type: "about:blank", Title: "Unavailable", Code: client.ProblemCodeUnavailable, RequestID: e.RequestID,
		Detail: fmt.Sprintf("the quota could not be decided now; retry after %d s", seconds),
	})
	return d
}

func refused(status int, header http.Header, p *client.Problem) (*Decision, error) {
	answer := *p
	answer.Status = status
	body, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("quota: encode the refusal: %w", err)
	}
	return &Decision{Status: status, Header: header, Body: body}, nil
}

// passOn returns the headers for the client, with the spelling of their specifications.
func passOn(header http.Header) http.Header {
	out := http.Header{}
	for name, values := range header {
		switch spelled := strings.Replace(strings.Replace(name, "Ratelimit", "RateLimit", 1), "X-Ratelimit", "X-RateLimit", 1); {
		case strings.HasPrefix(name, "X-Quota-") && name != "X-Quota-Source", strings.HasPrefix(name, "Ratelimit"),
			strings.HasPrefix(name, "X-Ratelimit-"), name == "Retry-After":
			out[spelled] = values
		}
	}
	return out
}
