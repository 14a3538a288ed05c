package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Client calls the service. It is safe for concurrent use. Share one in a process: its retry budget counts all its calls.
type Client struct {
	// API has all operations of the contract. Check, Consume, Debit and Hold of the Client fail open; those of the API do not.
	*API

	background tasks

	mu        sync.Mutex
	undecided int       // calls in a row without a decision
	probeAt   time.Time // while the service is away: the time of the next call that is sent to it
}

// New returns a Client. An error names the option that is wrong. No request is sent.
func New(o Options) (*Client, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	a := &API{options: o, retrier: Retrier{Backoff: o.Backoff}}
	a.http, a.own = o.http()
	return &Client{API: a}, nil
}

// Close waits for work in the background, such as refunds of failed handlers, until ctx ends. Then it closes the idle connections.
func (c *Client) Close(ctx context.Context) error {
	if c.own {
		defer c.http.CloseIdleConnections()
	}
	return c.background.wait(ctx)
}

// Check returns whether a consume would be allowed, and charges nothing. A denial is an answer, not an error.
func (c *Client) Check(ctx context.Context, body CheckRequest, options ...Option) (*CheckAnswer, error) {
	return decide(c, decision{"check", body.Tenant, body.Items, options},
		func() (*CheckAnswer, error) { return c.API.Check(ctx, body, options...) },
		func() *CheckAnswer {
			a := &CheckAnswer{Allowed: true, Limits: []LimitVerdict{}, Source: CheckAnswerSourceLocal, Degraded: true, AsOf: time.Now()}
			for _, item := range body.Items {
				a.Items = append(a.Items, CheckedItem{Meter: item.Meter, Required: item.Amount})
			}
			return a
		})
}

// Consume charges the rate limits and debits the balance, or neither. A denial is an error: ErrDenied, or ErrForbidden.
func (c *Client) Consume(ctx context.Context, body ConsumeRequest, options ...Option) (*DebitAnswer, error) {
	return decide(c, decision{"consume", body.Tenant, body.Items, options},
		func() (*DebitAnswer, error) { return c.API.Consume(ctx, body, options...) },
		func() *DebitAnswer { return uncharged(body.Tenant, body.Items) })
}

// Debit debits the balance without the rate limits. A denial is an error: ErrDenied, or ErrForbidden.
func (c *Client) Debit(ctx context.Context, body DebitRequest, options ...Option) (*DebitAnswer, error) {
	return decide(c, decision{"debit", body.Tenant, body.Items, options},
		func() (*DebitAnswer, error) { return c.API.Debit(ctx, body, options...) },
		func() *DebitAnswer { return uncharged(body.Tenant, body.Items) })
}

// uncharged is the answer to a call that passed undecided.
func uncharged(tenant string, items []Item) *DebitAnswer {
	a := &DebitAnswer{Tenant: tenant, AsOf: time.Now()}
	for _, item := range items {
		a.Items = append(a.Items, DebitedItem{Meter: item.Meter, Requested: item.Amount, Shortfall: item.Amount, Draws: []Draw{}})
	}
	return a
}

// ConsumeFor consumes, then does the work. If the work fails or panics, the operation is refunded. The error is that of the consume or of
// the work; an error of the refund goes to OnBackgroundError.
func (c *Client) ConsumeFor(ctx context.Context, body ConsumeRequest, work func(context.Context, *DebitAnswer) error, options ...Option) (err error) {
	var meta Meta
	answer, err := c.Consume(ctx, body, append(slices.Clone(options), WithMeta(&meta))...)
	if err != nil {
		return err
	}
	failed := true
	defer func() {
		if failed && !meta.FailedOpen {
			c.report(c.Undo(context.WithoutCancel(ctx), body.Tenant, answer.OperationID))
		}
	}()
	err = work(ctx, answer)
	failed = err != nil
	return err
}

// Undo refunds what an operation charged. It is no error if the operation charged nothing, or was refunded before. It
// may be repeated.
func (c *Client) Undo(ctx context.Context, tenant, operationID string) error {
	key := "undo-" + operationID
	if len(key) > 255 {
		key = NewKey()
	}
	_, err := c.Refund(ctx, RefundRequest{Tenant: tenant, OperationID: operationID}, WithKey(key))
	if errors.Is(err, ErrOperationNotFound) || errors.Is(err, ErrRefundExceedsDebit) {
		return nil
	}
	return err
}

// UndoLater does what Undo does, in the background, after a wait. Its error goes to OnBackgroundError. Close waits for
// it.
func (c *Client) UndoLater(ctx context.Context, tenant, operationID string, after time.Duration) {
	ctx = context.WithoutCancel(ctx)
	done := c.background.start()
	go func() {
		defer done()
		if c.retrier.sleep(ctx, after) == nil {
			c.report(c.Undo(ctx, tenant, operationID))
		}
	}()
}

// report passes an error in the background to the hook.
func (c *Client) report(err error) {
	if hook := c.options.OnBackgroundError; err != nil && hook != nil {
		hook(err)
	}
}

// LocalUnits returns local units of a balance, sent by this client's address and key. The other options are those of NewLocalUnits.
func (c *Client) LocalUnits(o LocalUnitsOptions) (*LocalUnits, error) {
	o.URL, o.Key, o.Client = c.options.URL, c.options.Key, c.http
	return NewLocalUnits(o)
}
