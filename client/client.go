package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Client calls the service. It is safe for concurrent use. Use one Client for the whole process, because all calls of
// a Client share one retry budget.
type Client struct {
	// API has all operations of the contract. The Client has its own Check, Consume, Debit and Hold, which can fail
	// open. The methods of the API cannot fail open.
	*API

	background tasks

	mu        sync.Mutex
	undecided int       // number of calls in a row that got no decision
	probeAt   time.Time // while the service is away: the time at which the next call is sent to it
}

// New returns a Client. If an option is wrong, the error names it. New sends no request.
func New(o Options) (*Client, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	a := &API{options: o, retrier: Retrier{Backoff: o.Backoff}}
	a.http, a.own = o.http()
	return &Client{API: a}, nil
}

// Close waits until the work in the background has ended, such as refunds of failed handlers. It waits at most until
// ctx ends. Then it closes the idle connections.
func (c *Client) Close(ctx context.Context) error {
	if c.own {
		defer c.http.CloseIdleConnections()
	}
	return c.background.wait(ctx)
}

// Check returns whether a consume would be allowed. It charges nothing. If the consume would be denied, Check returns
// an answer and no error.
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

// Consume charges the rate limits and debits the balance, or does neither. If it is denied, the error is ErrDenied or
// ErrForbidden.
func (c *Client) Consume(ctx context.Context, body ConsumeRequest, options ...Option) (*DebitAnswer, error) {
	return decide(c, decision{"consume", body.Tenant, body.Items, options},
		func() (*DebitAnswer, error) { return c.API.Consume(ctx, body, options...) },
		func() *DebitAnswer { return uncharged(body.Tenant, body.Items) })
}

// Debit debits the balance and charges no rate limits. If it is denied, the error is ErrDenied or ErrForbidden.
func (c *Client) Debit(ctx context.Context, body DebitRequest, options ...Option) (*DebitAnswer, error) {
	return decide(c, decision{"debit", body.Tenant, body.Items, options},
		func() (*DebitAnswer, error) { return c.API.Debit(ctx, body, options...) },
		func() *DebitAnswer { return uncharged(body.Tenant, body.Items) })
}

// uncharged returns the answer of a call that failed open: its units are not charged.
func uncharged(tenant string, items []Item) *DebitAnswer {
	a := &DebitAnswer{Tenant: tenant, AsOf: time.Now()}
	for _, item := range items {
		a.Items = append(a.Items, DebitedItem{Meter: item.Meter, Requested: item.Amount, Shortfall: item.Amount, Draws: []Draw{}})
	}
	return a
}

// ConsumeFor consumes units and then does the work. If the work fails or panics, it refunds the operation. It returns
// the error of the consume or of the work. If the refund fails, OnBackgroundError gets the error.
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

// Undo refunds all units of an operation. It returns nil if the operation charged nothing or was refunded before, so
// it may be called again.
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

// UndoLater calls Undo in the background, after a wait. If the refund fails, OnBackgroundError gets the error. Close
// waits for the refund.
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

// report calls OnBackgroundError with an error of the work in the background.
func (c *Client) report(err error) {
	if hook := c.options.OnBackgroundError; err != nil && hook != nil {
		hook(err)
	}
}

// LocalUnits returns local units of a balance. Their requests use the address, the key and the HTTP client of this
// Client, and the other options from o.
func (c *Client) LocalUnits(o LocalUnitsOptions) (*LocalUnits, error) {
	o.URL, o.Key, o.Client = c.options.URL, c.options.Key, c.http
	return NewLocalUnits(o)
}
