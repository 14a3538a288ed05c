package console

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSaid_DataInWords(t *testing.T) {
	t.Parallel()
	for want, data := range map[string]map[string]any{
		"": nil,
		"limit 20,000 \u00b7 plan starter \u00b7 threshold 80":                   {"threshold": 80.0, "plan": "starter", "limit": 20000.0, "period_end": nil},
		"at 2026-10-31 23:00:00 UTC \u00b7 share 0.5 \u00b7 tags [\"a\"]":        {"at": "2026-10-31T23:00:00Z", "share": 0.5, "tags": []any{"a"}},
		"ok true \u00b7 reason <b>upgrade</b>, ticket 7 \u00b7 used \u22121,234": {"reason": "<b>upgrade</b>, ticket 7", "used": -1234.0, "ok": true},
	} {
		got := said(data)
		assert.True(t, got == want, "%v: %q, want %q", data, got, want)
	}
}
