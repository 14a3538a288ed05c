// Command errors consumes units. If the service refuses this, it prints what the caller can do.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"

	"github.com/quotasvc/quotasvc/client"
)

func main() {
	c, err := client.New(client.Options{KeepDenials: true}) // environment: QUOTASVC_URL, QUOTASVC_KEY
	if err != nil {
		log.Fatal(err)
	}
	n, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	answer, err := c.Consume(context.Background(), client.ConsumeRequest{Tenant: os.Args[1], Items: []client.Item{{Meter: "api_calls", Amount: n}}})
	e := client.AsError(err)
	switch {
	case err == nil:
		fmt.Printf("charged %d, %d left\n", answer.Items[0].Charged, answer.Items[0].Remaining)
	case errors.Is(err, client.ErrQuotaExceeded):
		fmt.Printf("%d are left until %s\n", *e.Problem.Available, e.Problem.ResetAt.Format("2006-01-02"))
	case errors.Is(err, client.ErrCreditsExhausted):
		fmt.Println("buy more")
	case errors.Is(err, client.ErrRateLimited):
		fmt.Printf("again in %s\n", e.RetryAfter)
	case errors.Is(err, client.ErrForbidden):
		fmt.Println("the plan does not allow it")
	case errors.Is(err, client.ErrUndecided):
		fmt.Printf("try again with the key %s\n", e.IdempotencyKey)
	default:
		fmt.Printf("the request is wrong: %v\n", err)
	}
}
