package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"
)

const (
	// sentAge is how long a form is remembered. A page that was open for longer has a session that ended.
	sentAge = 24 * time.Hour

	// forgetBudget bounds how long a form that changed nothing is waited for to be forgotten.
	forgetBudget = time.Second
)

// once does what a form asks for, unless the form with this key was sent before: for what has no idempotency key in the API, such as a webhook, which
// made twice is two. It holds on all instances while Redis answers, and on each by itself while it does not. A form that was refused may be sent again. One
// of which nobody knows what it did may not: the page shows what is there now.
func (c *call) once(key string, do func() error) error {
	if key == "" || len(key) > keyMax {
		return &failure{status: http.StatusBadRequest, title: "The form is incomplete", detail: "Nothing was changed. Open the page again."}
	}
	sum := sha256.Sum256([]byte(c.key.ID + " " + key))
	name := "rl:{" + hex.EncodeToString(sum[:]) + "}once:form"
	if _, first := c.console.cfg.Once.Claim(c.ctx, name, "sent", sentAge); !first {
		return &failure{
			status: http.StatusConflict, title: "This form was sent before",
			detail: "It was taken then, and nothing was changed now. A secret is shown only in the first answer: if nobody has it, rotate it.",
		}
	}
	err := do()
	if err != nil && !explain(err).unknown {
		background, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), forgetBudget)
		defer cancel()
		c.console.cfg.Once.Drop(background, name)
	}
	return err
}
