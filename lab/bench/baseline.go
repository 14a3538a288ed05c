package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
)

//go:embed baseline.sql
var baselineSQL string

//go:embed seed.sql
var seedSQL string

const callBaseline = "SELECT bench_baseline.debit($1, $2, $3, $4)"

// These types have the fields of the service's requests and answers. The handlers without logic use them.
type (
	echoRequest struct {
		Tenant  string     `json:"tenant"`
		Subject string     `json:"subject"`
		Route   string     `json:"route"`
		Items   []echoItem `json:"items"`
	}
	echoItem struct {
		Meter  string `json:"meter"`
		Amount int64  `json:"amount"`
	}
	echoDraw struct {
		Grant  string `json:"grant"`
		Source string `json:"source"`
		Meter  string `json:"meter"`
		Amount int64  `json:"amount"`
	}
	echoDebited struct {
		Meter     string     `json:"meter"`
		Requested int64      `json:"requested"`
		Charged   int64      `json:"charged"`
		Shortfall int64      `json:"shortfall"`
		Draws     []echoDraw `json:"draws"`
		Remaining int64      `json:"remaining"`
	}
	echoDebitAnswer struct {
		OperationID string        `json:"operation_id"`
		Tenant      string        `json:"tenant"`
		Items       []echoDebited `json:"items"`
		AsOf        time.Time     `json:"as_of"`
	}
	echoChecked struct {
		Meter         string `json:"meter"`
		Required      int64  `json:"required"`
		Remaining     int64  `json:"remaining"`
		Limit         int64  `json:"limit"`
		MaxAllowedNow int64  `json:"max_allowed_now"`
	}
	echoVerdict struct {
		Rule         string `json:"rule"`
		Allowed      bool   `json:"allowed"`
		Remaining    int64  `json:"remaining"`
		Limit        int64  `json:"limit"`
		RetryAfterMS int64  `json:"retry_after_ms"`
		Shadow       bool   `json:"shadow"`
	}
	echoCheckAnswer struct {
		Allowed bool          `json:"allowed"`
		Items   []echoChecked `json:"items"`
		Limits  []echoVerdict `json:"limits"`
		Source  string        `json:"source"`
		AsOf    time.Time     `json:"as_of"`
	}
)

// ServeBaseline serves the two baselines until ctx ends. The first baseline is echo's Bind and JSON without logic. The
// second baseline also calls the PL/pgSQL function, once per request, on a pool of `conns` connections. ServeBaseline
// calls the function `ready` with its address.
func ServeBaseline(ctx context.Context, databaseURL string, conns int, ready func(address string)) error {
	pool, err := openPool(ctx, databaseURL, conns)
	if err != nil {
		return err
	}
	defer pool.Close()
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	post := func(path string, handle func(c echo.Context, r *echoRequest) error) {
		e.POST(path, func(c echo.Context) error {
			var r echoRequest
			if err := c.Bind(&r); err != nil {
				return err
			}
			return handle(c, &r)
		})
	}
	post("/echo/debits", func(c echo.Context, r *echoRequest) error {
		return c.JSON(http.StatusOK, debitAnswer(c, r, 1))
	})
	post("/echo/check", func(c echo.Context, r *echoRequest) error { return c.JSON(http.StatusOK, checkAnswer(r)) })
	post("/plpgsql/debits", func(c echo.Context, r *echoRequest) error {
		if len(r.Items) != 1 {
			return echo.NewHTTPError(http.StatusBadRequest, "one item is expected")
		}
		var left int64
		err := pool.QueryRow(c.Request().Context(), callBaseline, r.Tenant, r.Items[0].Meter,
			c.Request().Header.Get("Idempotency-Key"), r.Items[0].Amount).Scan(&left)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, debitAnswer(c, r, left))
	})
	var lc net.ListenConfig
	e.Listener, err = lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	ready(e.Listener.Addr().String())
	failed := make(chan error, 1)
	go func() { failed <- e.Start("") }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve the baseline: %w", err)
	case <-ctx.Done():
	}
	err = e.Close()
	if serveErr := <-failed; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

func debitAnswer(c echo.Context, r *echoRequest, left int64) *echoDebitAnswer {
	a := &echoDebitAnswer{
		OperationID: c.Request().Header.Get("Idempotency-Key"), Tenant: r.Tenant,
		Items: make([]echoDebited, len(r.Items)), AsOf: time.Now().UTC(),
	}
	for i, it := range r.Items {
		a.Items[i] = echoDebited{
			Meter: it.Meter, Requested: it.Amount, Charged: it.Amount, Remaining: left,
			Draws: []echoDraw{{Grant: "allowance-2030-01-01T00:00:00Z", Source: "allowance", Meter: it.Meter, Amount: it.Amount}},
		}
	}
	return a
}

func checkAnswer(r *echoRequest) *echoCheckAnswer {
	a := &echoCheckAnswer{Allowed: true, Items: make([]echoChecked, len(r.Items)), Source: "cache", AsOf: time.Now().UTC()}
	for i, it := range r.Items {
		a.Items[i] = echoChecked{Meter: it.Meter, Required: it.Amount, Remaining: 1e12, Limit: 1e12, MaxAllowedNow: 1e12}
	}
	for _, rule := range limitRules {
		a.Limits = append(a.Limits, echoVerdict{Rule: rule.name, Allowed: true, Remaining: 1e6, Limit: 1e6})
	}
	return a
}

func openPool(ctx context.Context, databaseURL string, conns int) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	cfg.MaxConns, cfg.MinConns = int32(conns), int32(conns)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	return pool, nil
}
