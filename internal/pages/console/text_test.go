package console

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestNum_ThousandsApart(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", -1234567: "\u22121,234,567", 9007199254740991: "9,007,199,254,740,991", -9223372036854775808: "\u22129,223,372,036,854,775,808"} {
		got := num(n)
		assert.True(t, got == want, "%d: %q, want %q", n, got, want)
	}
}

func TestPath_IdsStaySegments(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"acme": "/console/tenants/acme", "a/b": "/console/tenants/a%2Fb", "../x": "/console/tenants/..%2Fx", "a?b#c": "/console/tenants/a%3Fb%23c", "a b": "/console/tenants/a%20b"} {
		got := path("tenants", given)
		assert.True(t, got == want, "%q: %q, want %q", given, got, want)
	}
}

func TestStamp_SaysItsZone(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 1, 22, 30, 0, 0, time.UTC)
	for zone, want := range map[string]string{
		"UTC": "2026-07-01 22:30:00 UTC", "Europe/Berlin": "2026-07-02 00:30:00 CEST", "America/Sao_Paulo": "2026-07-01 19:30:00 -03", "nowhere": "2026-07-01 22:30:00 UTC",
	} {
		got := stamp(at, zoneOf(zone))
		assert.True(t, got == want, "%s: %q, want %q", zone, got, want)
	}
}

func TestCell_RunsNoFormula(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": "", "acme": "acme", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@x": "'@x", "\tx": "'\tx", "a=1": "a=1"} {
		got := cell(given)
		assert.True(t, got == want, "%q: %q, want %q", given, got, want)
	}
}

// TestMetadata_Shown_AsItIs: pages and files show each number and each text as it is stored, also those that a decoder
// would refuse or change.
func TestMetadata_Shown_AsItIs(t *testing.T) {
	t.Parallel()
	const odd = `{"b": 1e400, "a": [9007199254740993, 1.10, -0, 1E-999], "<b>": "\u001b[2J\u2028"}`
	line := strings.ReplaceAll(odd, " ", "")
	assert.Equal(t, line, compact(json.RawMessage(odd)))
	assert.Equal(t, line, strings.Join(strings.Fields(pretty(json.RawMessage(odd))), ""))
	for _, nothing := range []string{"", "null", "{}", " {} "} {
		assert.Empty(t, compact(json.RawMessage(nothing))+pretty(json.RawMessage(nothing)), "%q", nothing)
	}
}
