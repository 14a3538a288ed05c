package quotaecho

import (
	"errors"
	"maps"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/client/quotahttp"
)

// Rules say what a request costs and which tenant pays. If IP is nil, the client's address is determined by the
// IPExtractor of the echo server. If the server has no IPExtractor, no address is sent to the service, because echo
// would accept any X-Forwarded-For that a client sends.
type Rules = quotahttp.Rules[echo.Context]

// Options are the options of the middleware.
type Options struct {
	Rules

	// Skipper returns true for requests that are served uncharged. nil: all requests are charged.
	Skipper func(echo.Context) bool
}

// New returns a middleware. If an option is wrong, the error names it.
func New(c *client.Client, o Options) (echo.MiddlewareFunc, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(ctx echo.Context) error {
			if o.Skipper != nil && o.Skipper(ctx) {
				return next(ctx)
			}
			r := ctx.Request()
			seen := quotahttp.Seen{Method: r.Method, Path: r.URL.Path}
			if extract := ctx.Echo().IPExtractor; extract != nil {
				seen.IP = extract(r)
			}
			d, err := quotahttp.Decide(r.Context(), c, &o.Rules, ctx, seen)
			if err != nil {
				return err
			}
			maps.Copy(ctx.Response().Header(), d.Header)
			if !d.Passed {
				return ctx.Blob(d.Status, "application/problem+json", d.Body)
			}
			finished := false
			defer func() {
				if !finished { // the handler panicked
					d.Settle(http.StatusInternalServerError)
				}
			}()
			err = next(ctx)
			finished = true
			d.Settle(statusOf(ctx, err))
			return err
		}
	}, nil
}

// statusOf returns the status with which echo has answered, or will answer because of err.
func statusOf(ctx echo.Context, err error) int {
	if err == nil || ctx.Response().Committed {
		return ctx.Response().Status
	}
	var refused *echo.HTTPError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return http.StatusInternalServerError
}
