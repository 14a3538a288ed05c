package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// The first attempt gets a 503. The Retrier sends the debit again with the same key, so it is charged once.
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

	retrier := &client.Retrier{Client: &http.Client{Timeout: 5 * time.Second}} // one for the whole program
	body := strings.NewReader(`{"tenant":"acme","items":[{"meter":"api_calls","amount":1}]}`)
	req, err := http.NewRequest(http.MethodPost, quotasvc.URL+"/v1/debits", body)
	if err != nil {
		panic(err)
	}
	req.Header.Set(client.HeaderIdempotencyKey, "order-17") // stored with the order, before the first attempt
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
