// Command webhook receives the service's events. It refuses deliveries that are not genuine.
package main

import (
	"errors"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/quotasvc/quotasvc/client"
)

func main() {
	webhook, err := client.NewWebhook(strings.Fields(os.Getenv("QUOTASVC_WEBHOOK_SECRET"))...) // two in a rotation
	if err != nil {
		log.Fatal(err)
	}
	var seen sync.Map // in your program: a unique column, in the transaction that handles the event
	http.HandleFunc("POST /hooks", func(w http.ResponseWriter, r *http.Request) {
		event, err := webhook.VerifyRequest(r)
		var forged *client.WebhookError
		if errors.As(err, &forged) {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err != nil {
			http.Error(w, "try again", http.StatusInternalServerError)
			return
		}
		if _, again := seen.LoadOrStore(event.ID, true); !again {
			log.Printf("%s %s", event.Type, event.Data)
		}
	})
	log.Fatal(http.ListenAndServe(os.Getenv("LISTEN"), nil))
}
