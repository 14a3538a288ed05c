// Command echo is a server with the echo framework that charges each request to the organization that sends it.
package main

import (
	"log"
	"net/http"
	"os"

	"github.com/labstack/echo/v4"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/client/quotaecho"
	"github.com/quotasvc/quotasvc/client/quotahttp"
)

func main() {
	c, err := client.New(client.Options{OnBackgroundError: func(err error) { log.Print(err) }}) // environment: QUOTASVC_URL, QUOTASVC_KEY
	if err != nil {
		log.Fatal(err)
	}
	quota, err := quotaecho.New(c, quotaecho.Options{
		Rules: quotaecho.Rules{
			Meter: "api_calls",
			Cost: func(ctx echo.Context) int64 {
				if ctx.Path() == "/export/:name" {
					return 10
				}
				return 1
			},
			Tenant: func(ctx echo.Context) (string, error) {
				if org := ctx.Request().Header.Get("X-Org"); org != "" {
					return org, nil
				}
				return "", quotahttp.ErrNotCounted
			},
		},
		Skipper: func(ctx echo.Context) bool { return ctx.Path() == "/healthz" },
	})
	if err != nil {
		log.Fatal(err)
	}
	e := echo.New()
	e.HideBanner = true
	e.Use(quota)
	e.GET("/healthz", func(ctx echo.Context) error { return ctx.NoContent(http.StatusNoContent) })
	e.GET("/hello", func(ctx echo.Context) error { return ctx.String(http.StatusOK, "hello\n") })
	e.GET("/export/:name", func(ctx echo.Context) error { return ctx.String(http.StatusOK, ctx.Param("name")+"\n") })
	e.GET("/broken", func(echo.Context) error { return echo.NewHTTPError(http.StatusBadGateway, "broken") }) // refunded
	e.GET("/missing", func(echo.Context) error { return echo.ErrNotFound })                                  // charged
	log.Fatal(e.Start(os.Getenv("LISTEN")))
}
