package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// The first attempt is answered with 503. The Retrier sends the debit again with the same key, so the debit is
// charged once.
func ExampleRetrier() {
	attempts := 0
	quotasvc := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if attempts++; attempts == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Println("attempt", attempts, "with key", r.Header.Get(client.HeaderIdempotencyKey))
	}))
	defer quotasvc.Close()

	retrier := &client.Retrier{Client: &http.Client{Timeout: 5 * time.Second}} // use one Retrier for the whole program
	body := strings.NewReader(`{"tenant":"acme","items":[{"meter":"api_calls","amount":1}]}`)
	req, err := http.NewRequest(http.MethodPost, quotasvc.URL+"/v1/debits", body)
	if err != nil {
		panic(err)
	}
	req.Header.Set(client.HeaderIdempotencyKey, "order-17") // store the key with the order before the first attempt
	response, err := retrier.Do(req)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	fmt.Println(response.StatusCode)
	// Output:
	// attempt 1 with key order-17
	// attempt 2 with key order-17
	// 200
}

// Units are granted without a request for each unit. The service gets one request for the hold, and at the end one
// request with the used units.
func ExampleLocalUnits() {
	quotasvc := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Items []struct{ Amount int }
			Final bool
		}
		_ = json.NewDecoder(r.Body).Decode(&body) // a LocalUnits sends only valid JSON
		if r.URL.Path == "/v1/holds" {
			w.WriteHeader(http.StatusCreated)
			fmt.Println("the service holds", body.Items[0].Amount)
		} else {
			fmt.Println("the service charges", body.Items[0].Amount, "and returns the rest:", body.Final)
		}
		fmt.Fprint(w, `{"items":[{"remaining":99500}],"as_of":"2026-03-10T09:00:00Z","expires_at":"2026-03-10T09:01:00Z"}`)
	}))
	defer quotasvc.Close()

	units, err := client.NewLocalUnits(client.LocalUnitsOptions{
		URL: quotasvc.URL, Key: "qk_...", Tenant: "acme", Meter: "api_calls", Min: 500, CaptureEvery: time.Minute,
		Client: &http.Client{Timeout: 5 * time.Second},
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := units.TakeWait(ctx, 1); err != nil { // it waits for the first hold
		panic(err)
	}
	for range 2 { // two takes cause no request to the service
		if err := units.Take(1); errors.Is(err, client.ErrExhausted) {
			fmt.Println("refused:", err)
		}
	}
	if err := units.Close(ctx); err != nil {
		panic(err)
	}
	fmt.Printf("taken %d, charged %d\n", units.Stats().Taken, units.Stats().Captured)
	// Output:
	// the service holds 500
	// the service charges 3 and returns the rest: true
	// taken 3, charged 3
}
