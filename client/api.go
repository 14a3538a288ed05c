package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// API has a method for each operation of the contract. The method has the name of the operationId. A Client embeds an
// API.
type API struct {
	options Options
	http    *http.Client
	own     bool    // no other code uses the connections of http
	retrier Retrier // has the retry budget, the waits and the sleep
}

// call is one call of an operation: its path, its query and its body.
type call struct {
	operation, method string
	path              []segment
	query             query
	body              any  // nil: no body
	key               bool // the operation accepts an Idempotency-Key
	safe              bool // the operation takes effect once even if it is sent twice without a key
}

// segment is one piece of a path: a constant text, or the value of a parameter.
type segment struct{ name, text string }

func constant(text string) segment { return segment{text: text} }

func parameter[T string | int64](name string, value T) segment {
	if n, ok := any(value).(int64); ok {
		return segment{name, strconv.FormatInt(n, 10)}
	}
	return segment{name, fmt.Sprint(value)}
}

// query has the parameters of a query.
type query url.Values

// set adds a parameter unless its value is the zero value. If the value is an object, it adds a parameter for each
// member.
func (q query) set(name string, value any) {
	text := ""
	switch v := value.(type) {
	case string:
		text = v
	case int64:
		if v != 0 {
			text = strconv.FormatInt(v, 10)
		}
	case float64:
		if v != 0 {
			text = strconv.FormatFloat(v, 'g', -1, 64)
		}
	case bool:
		if v {
			text = "true"
		}
	case time.Time:
		if !v.IsZero() {
			text = v.UTC().Format(time.RFC3339Nano)
		}
	case map[string]string:
		for member, text := range v {
			url.Values(q).Set(name+"."+member, text)
		}
	}
	if text != "" {
		url.Values(q).Set(name, text)
	}
}

// target returns the path with the query. If a path parameter is empty, the error names it.
func (r *call) target() (string, error) {
	var b strings.Builder
	for _, s := range r.path {
		switch {
		case s.name == "":
			b.WriteString(s.text)
		case s.text == "":
			return "", fmt.Errorf("quotasvc: %s: %s is required", r.operation, s.name)
		default:
			b.WriteString(url.PathEscape(s.text))
		}
	}
	if len(r.query) > 0 {
		b.WriteString("?" + url.Values(r.query).Encode())
	}
	return b.String(), nil
}

// ask sends a request, and returns its decoded answer.
func ask[T any](ctx context.Context, a *API, r *call, options []Option) (*T, error) {
	got, err := a.send(ctx, r, options)
	if err != nil {
		return nil, err
	}
	answer := new(T)
	if err := json.Unmarshal(got.body, answer); err != nil {
		return nil, &Error{
			Operation: r.operation, Status: got.status, Code: CodeNotTheService, Header: got.header, Attempts: got.attempts, IdempotencyKey: got.key,
			Detail: "the answer is not that of this operation", OutcomeUnknown: r.changes(), cause: err,
		}
	}
	return answer, nil
}

// sendOnly sends a request whose response has no body.
func (a *API) sendOnly(ctx context.Context, r *call, options []Option) error {
	_, err := a.send(ctx, r, options)
	return err
}

// text sends a request, and returns the body of its answer without decoding it.
func (a *API) text(ctx context.Context, r *call, options []Option) ([]byte, error) {
	got, err := a.send(ctx, r, options)
	if err != nil {
		return nil, err
	}
	return got.body, nil
}

// pages returns an iterator over the items of all pages, starting with the page at `cursor`. The function `next` reads
// one page.
func pages[T any](next func(cursor string) ([]T, *string, error), cursor string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := cursor; ; {
			items, after, err := next(cursor)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if after == nil || *after == cursor {
				return
			}
			cursor = *after
		}
	}
}

// GetStatementCSV does the same as GetStatement, except that it returns the lines of the statement as a CSV file.
func (a *API) GetStatementCSV(ctx context.Context, tenant, meter, periodStart string, q GetStatementQuery, options ...Option) ([]byte, error) {
	r := call{
		operation: "getStatement", method: http.MethodGet, safe: true, query: query{},
		path: []segment{
			constant("/v1/tenants/"), parameter("tenant", tenant), constant("/statements/"), parameter("meter", meter), constant("/"),
			parameter("period_start", periodStart),
		},
	}
	q.add(r.query)
	r.query.set("format", "csv")
	return a.text(ctx, &r, options)
}

// CheckResult is a result of CheckBatch: the answer to a check, or the problem if the check could not be decided.
type CheckResult struct {
	Answer  *CheckAnswer
	Problem *Problem
}

// UnmarshalJSON decodes a result. It is a problem if it has a title, which no answer has.
func (c *CheckResult) UnmarshalJSON(text []byte) error {
	var kind struct {
		Title *string `json:"title"`
	}
	if err := json.Unmarshal(text, &kind); err != nil {
		return err
	}
	if kind.Title != nil {
		return json.Unmarshal(text, &c.Problem)
	}
	return json.Unmarshal(text, &c.Answer)
}

// MarshalJSON encodes the problem, or the answer if Problem is nil.
func (c CheckResult) MarshalJSON() ([]byte, error) {
	if c.Problem != nil {
		return json.Marshal(c.Problem)
	}
	return json.Marshal(c.Answer)
}

// Do sends a request that has no method in this package, such as an operation of a later version. path must be
// escaped. parameters is the query, which may be nil. If body is nil, the request has no body. The argument `into`
// receives the decoded answer; if it is nil, the answer is ignored. GET, PUT and DELETE are retried. A POST is
// retried if the options contain WithKey.
func (a *API) Do(ctx context.Context, method, path string, parameters url.Values, body, into any, options ...Option) error {
	o, err := a.optionsOf(options)
	if err != nil {
		return err
	}
	r := call{
		operation: method + " " + path, method: method, path: []segment{constant(path)}, query: query(parameters), body: body, key: o.key != "",
		safe: method != http.MethodPost && method != http.MethodPatch,
	}
	got, err := a.send(ctx, &r, options)
	if err != nil || into == nil || len(got.body) == 0 {
		return err
	}
	if raw, ok := into.(*[]byte); ok {
		*raw = got.body
		return nil
	}
	if err := json.Unmarshal(got.body, into); err != nil {
		return fmt.Errorf("quotasvc: %s: the answer is not that of this operation: %w", r.operation, err)
	}
	return nil
}
