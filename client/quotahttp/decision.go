package quotahttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// late is a time after which an attempt that got no answer has certainly ended at the service. The service answers
// within 5 s.
const late = 6 * time.Second

// Decision says whether a request may be served, and how a refused request is answered.
type Decision struct {
	Passed bool
	Status int         // status of the answer, if the request is refused
	Header http.Header // headers for the client's answer, whether or not the request passed
	Body   []byte      // body of the answer if the request is refused, as application/problem+json

	settle func(status int)
}

// Settle refunds the units if the status of the handler's answer requires a refund (see Rules.Refund). Call it once,
// after the handler. It does not wait for the refund.
func (d *Decision) Settle(status int) {
	if d.settle != nil {
		d.settle(status)
	}
}

// denials lists the codes of refusals whose cause is the client of this backend. The cause of other refusals is this
// backend.
var denials = []client.ProblemCode{
	client.ProblemCodeQuotaExceeded, client.ProblemCodeCreditsExhausted, client.ProblemCodeRateLimited, client.ProblemCodeTenantSuspended,
	client.ProblemCodeMeterNotInPlan, "feature_not_in_plan", client.ProblemCodeCostExceedsCapacity,
}

// Decide charges a request. It returns an error if this backend is at fault (a wrong key, an unknown tenant), or if
// the context has ended.
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
	// If an earlier request with the same key was served, its charge must not be refunded.
	if served := given != "" && meta.Replayed && meta.Attempts == 1; !meta.FailedOpen && !served {
		d.settle = func(status int) {
			if o.Refund(status) {
				c.UndoLater(ctx, body.Tenant, answer.OperationID, 0)
			}
		}
	}
	return d, nil
}

// refuse returns the decision that refuses the request, with the answer for the client. If the cause is this backend,
// such as a wrong key, refuse returns an error, because the service's answer is not for the client.
func refuse(e *client.Error) (*Decision, error) {
	if errors.Is(e, client.ErrUndecided) {
		return undecided(e), nil
	}
	p := e.Problem
	if p == nil {
		return nil, e
	}
	// rate_limited without a violated limit means that this backend has sent too many wrong keys.
	wrongKeys := p.Code == client.ProblemCodeRateLimited && len(p.ViolatedPolicies) == 0
	switch {
	case wrongKeys:
		return undecided(e), nil
	case slices.Contains(denials, p.Code):
		return refused(e.Status, passOn(e.Header), p)
	case p.Blocked != nil:
		// The client must not learn which block refused the request, or for what reason.
		return refused(http.StatusForbidden, nil, &client.Problem{
			Type: p.Type, Title: p.Title, Status: http.StatusForbidden, Detail: "blocked", Code: p.Code, RequestID: p.RequestID,
		})
	}
	return nil, fmt.Errorf("quota: the service refused this backend: %w", e)
}

func undecided(e *client.Error) *Decision {
	seconds := max(int64(math.Ceil(e.RetryAfter.Seconds())), 1)
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

// passOn returns those headers of the service's answer that are meant for the client. Their names are spelled as in
// their specifications.
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
