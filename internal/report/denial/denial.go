package denial

import (
	"encoding/json"
	"time"
)

const (
	// Kept is the number of explanations that are kept for each tenant. A support tool shows this number on a page.
	Kept = 100

	// Other is the meter and rule under which denials are counted if there is no room for another meter or rule. No
	// id contains a bracket, so Other is not an id.
	Other = "(other)"

	// KeptFor is the shortest time for which counts and explanations are kept. It covers the last whole month, and
	// some more days for support cases about that month. Counts are deleted in whole weeks, so they are kept up to
	// seven days longer.
	KeptFor = 35 * 24 * time.Hour
)

// Denial is one refusal. Its texts have the maximum lengths of the API: names 255 bytes, ids 128, routes 256.
type Denial struct {
	At                  time.Time // time of the ledger's clock
	Tenant              string
	Code                string // error code of the answer
	Meter               string // meter that was requested or did not suffice; empty: none, or several
	Rule                string // the limit that refused; if several: the limit with the longest wait; empty: no limit
	Subject, Route      string // as in the request; empty: not in the request
	Required, Available int64  // units; Required is 0 if units are not the reason
	RequestID           string // X-Request-Id; empty: the request had none
}

// line is a denial in the JSON form in which PostgreSQL stores it.
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

// decode returns the denials in a JSON array that encode has returned.
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
