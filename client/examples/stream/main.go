// Command stream holds units for an answer of unknown length. It counts the words of the answer, and then captures
// the used units.
package main

import (
	"context"
	"fmt"
	"iter"
	"log"
	"os"
	"strings"

	"github.com/quotasvc/quotasvc/client"
)

// model stands for a language model that answers word by word.
func model(answer string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for word := range strings.FieldsSeq(answer) {
			if !yield(word, nil) {
				return
			}
		}
	}
}

func main() {
	ctx := context.Background()
	c, err := client.New(client.Options{}) // environment: QUOTASVC_URL, QUOTASVC_KEY
	if err != nil {
		log.Fatal(err)
	}
	held, err := c.Hold(ctx, client.HoldRequest{Tenant: os.Args[1], Items: []client.Item{{Meter: "api_calls", Amount: 20}}})
	if err != nil {
		log.Fatal(err) // no work was done yet
	}
	for word, err := range client.Stream(ctx, held, model("a short answer of six words"), func(string) int64 { return 1 }) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(word, " ")
	}
	fmt.Printf("\nused %d, the rest is back\n", held.Used())
}
