// Command nethttp is an HTTP server that charges each request to the organization that sends it.
package main

import (
	"log"
	"net/http"
	"os"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/client/quotahttp"
)

func main() {
	c, err := client.New(client.Options{ // environment: QUOTASVC_URL, QUOTASVC_KEY
		FailOpen:          []string{"api_calls"}, // while the service is away, requests pass uncharged
		OnFailOpen:        func(e client.FailOpenEvent) { log.Printf("uncharged: %s %v", e.Tenant, e.Err) },
		OnBackgroundError: func(err error) { log.Print(err) },
	})
	if err != nil {
		log.Fatal(err)
	}
	quota, err := quotahttp.New(c, quotahttp.Options{Rules: quotahttp.Rules[*http.Request]{
		Meter: "api_calls",
		Tenant: func(r *http.Request) (string, error) {
			if r.URL.Path == "/healthz" {
				return "", quotahttp.ErrNotCounted
			}
			return r.Header.Get("X-Org"), nil // in your program: from the authentication
		},
	}})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) })
	mux.HandleFunc("GET /broken", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) }) // refunded
	log.Fatal(http.ListenAndServe(os.Getenv("LISTEN"), quota.Wrap(mux)))
}
