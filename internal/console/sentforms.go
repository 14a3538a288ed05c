package console

import (
	"net/http"
	"sync"
)

// sentMax bounds the keys that are remembered: forms of some hours, of a whole company.
const sentMax = 4096

// sentForms remembers the keys of forms that were sent, for what has no idempotency key in the API: a webhook that is made twice is two. It is this
// instance's. The console's script sends a form once from one page, and this refuses what comes again, by going back or without the script.
type sentForms struct {
	mu    sync.Mutex
	known map[string]bool
	order []string // oldest first
}

// note remembers a key, and reports whether it is new.
func (s *sentForms) note(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[key] {
		return false
	}
	if s.known == nil {
		s.known = map[string]bool{}
	}
	if len(s.order) == sentMax {
		delete(s.known, s.order[0])
		s.order = s.order[1:]
	}
	s.known[key], s.order = true, append(s.order, key)
	return true
}

// first fails if the form with this key was sent before.
func (c *call) first(key string) error {
	if key == "" || len(key) > keyMax {
		return &failure{status: http.StatusBadRequest, title: "The form is incomplete", detail: "Nothing was changed. Open the page again."}
	}
	if !c.console.sent.note(c.key.ID + " " + key) {
		return &failure{
			status: http.StatusConflict, title: "This form was sent before",
			detail: "It took effect then, and nothing was changed now. A secret is shown only in the first answer: if nobody has it, rotate it.",
		}
	}
	return nil
}
