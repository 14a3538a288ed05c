package console

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSaid_DataInWords(t *testing.T) {
	t.Parallel()
	for want, data := range map[string]string{
		"": "",
		"limit 20,000 \u00b7 plan starter \u00b7 threshold 80":                   `{"threshold": 80, "plan": "starter", "limit": 20000, "period_end": null}`,
		"at 2026-10-31 23:00:00 UTC \u00b7 share 0.5 \u00b7 tags [\"a\"]":        `{"at": "2026-10-31T23:00:00Z", "share": 0.5, "tags": ["a"]}`,
		"ok true \u00b7 reason <b>upgrade</b>, ticket 7 \u00b7 used \u22121,234": `{"reason": "<b>upgrade</b>, ticket 7", "used": -1234, "ok": true}`,
		"of 1e400 \u00b7 used 9,007,199,254,740,993":                             `{"used": 9007199254740993, "of": 1e400}`,
	} {
		got := said(members(json.RawMessage(data)))
		assert.True(t, got == want, "%v: %q, want %q", data, got, want)
	}
}
