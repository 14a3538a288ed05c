package denial

import (
	"encoding/json"
	"time"
)

const (
	// Kept is the number of explanations that are kept for each tenant. A page of a support tool shows this number.
	Kept = 100

	// Other is the name under which denials are counted if a minute has no room for another meter or rule. No id
	// contains a bracket.
	Other = "(other)"

	// KeptFor is the shortest time for which counts and explanations are kept: the last whole month, plus some days
	// in which a support case may still be open. Counts are deleted by weeks, so they are kept up to seven days
	// longer.
	KeptFor = 35 * 24 * time.Hour
)

// Denial is one refusal. Texts are at most as long as the API allows: ids 128 bytes, routes 256.
type Denial struct {
	At                  time.Time // the ledger's time
	Tenant              string
	Code                string // code of the problem
	Meter               string // requested, or not sufficient; empty: none, or several
	Rule                string // the limit that refused; if several did, the one with the longest wait; empty: no limit did
	Subject, Route      string // as in the request; empty: absent
	Required, Available int64  // units; Required 0: units are not the reason
	RequestID           string // X-Request-Id; empty: the request has none
}

// line is a denial in the form in which it is stored.
type line struct {
	At        time.Time `json:"at"`
	Code      string    `json:"code"`
	Meter     string    `json:"meter,omitempty"`
	Rule      string    `json:"rule,omitempty"`
	Subject   string    `json:"subject,omitempty"`
	Route     string    `json:"route,omitempty"`
	Required  int64     `json:"required,omitempty"`
	Available int64     `json:"available,omitempty"`
	RequestID string    `json:"request_id,omitempty"`
}

// encode returns denials as a JSON array.
func encode(denials []Denial) (string, error) {
	lines := make([]line, len(denials))
	for i := range denials {
		d := &denials[i]
		lines[i] = line{d.At.UTC(), d.Code, d.Meter, d.Rule, d.Subject, d.Route, d.Required, d.Available, d.RequestID}
	}
	text, err := json.Marshal(lines)
	return string(text), err
}

// decode reads the output of encode.
func decode(tenant string, text []byte) ([]Denial, error) {
	var lines []line
	if err := json.Unmarshal(text, &lines); err != nil {
		return nil, err
	}
	out := make([]Denial, len(lines))
	for i, l := range lines {
		out[i] = Denial{l.At.UTC(), tenant, l.Code, l.Meter, l.Rule, l.Subject, l.Route, l.Required, l.Available, l.RequestID}
	}
	return out, nil
}
