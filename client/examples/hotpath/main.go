// Command hotpath grants units from memory: one hold is enough for many takes, which need no request.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/quotasvc/quotasvc/client"
)

func main() {
	ctx := context.Background()
	c, err := client.New(client.Options{}) // environment: QUOTASVC_URL, QUOTASVC_KEY
	if err != nil {
		log.Fatal(err)
	}
	units, err := c.LocalUnits(client.LocalUnitsOptions{Tenant: os.Args[1], Meter: "api_calls", Min: 10, Max: 50})
	if err != nil {
		log.Fatal(err)
	}
	for range 40 {
		if err := units.TakeWait(ctx, 1); err != nil { // Take would not wait
			log.Fatal(err)
		}
	}
	if err := units.Close(ctx); err != nil { // charges the used units and returns the rest
		log.Fatal(err)
	}
	s := units.Stats()
	fmt.Printf("%d decisions with %d requests\n", s.Taken, s.Requests)
}
