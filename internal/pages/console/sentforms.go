package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"
)

const (
	// sentAge is the time for which the key of a sent form is stored. The session of the form ends before this time, so
	// nobody can send the form again later.
	sentAge = 24 * time.Hour

	// forgetBudget is the maximum time for the deletion of the key of a form that changed nothing.
	forgetBudget = time.Second
)

// once calls the function `do`, unless a form with this key was sent before. It is for changes that have no
// idempotency key in the API, such as a new webhook, which would be created twice. While Redis answers, all instances
// share the keys. Otherwise each instance has its own keys. A refused form may be sent again. If the outcome of a
// form is unknown, the form may not be sent again, and the page shows the present state.
func (c *call) once(key string, do func() error) error {
	if key == "" || len(key) > keyMax {
		return &failure{status: http.StatusBadRequest, title: "The form is incomplete", detail: "Nothing was changed. Open the page again."}
	}
	sum := sha256.Sum256([]byte(c.key.ID + " " + key))
	name := "rl:{" + hex.EncodeToString(sum[:]) + "}once:form"
	if _, first := c.console.cfg.Once.Claim(c.ctx, name, "sent", sentAge); !first {
		return &failure{
			status: http.StatusConflict, title: "This form was sent before",
			detail: "It took effect then, and nothing was changed now. A secret is shown only once: if nobody has it, rotate it.",
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
