package console

import (
	"testing"
	"time"
)

func TestNum_ThousandsApart(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", -1234567: "\u22121,234,567", 9007199254740991: "9,007,199,254,740,991", -9223372036854775808: "\u22129,223,372,036,854,775,808"} {
		if got := num(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestPath_IdsStaySegments(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"acme": "/console/tenants/acme", "a/b": "/console/tenants/a%2Fb", "../x": "/console/tenants/..%2Fx", "a?b#c": "/console/tenants/a%3Fb%23c", "a b": "/console/tenants/a%20b"} {
		if got := path("tenants", given); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

func TestStamp_SaysItsZone(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 1, 22, 30, 0, 0, time.UTC)
	for zone, want := range map[string]string{
		"UTC": "2026-07-01 22:30:00 UTC", "Europe/Berlin": "2026-07-02 00:30:00 CEST", "America/Sao_Paulo": "2026-07-01 19:30:00 -03", "nowhere": "2026-07-01 22:30:00 UTC",
	} {
		if got := stamp(at, zoneOf(zone)); got != want {
			t.Errorf("%s: %q, want %q", zone, got, want)
		}
	}
}

func TestCell_RunsNoFormula(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": "", "acme": "acme", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@x": "'@x", "\tx": "'\tx", "a=1": "a=1"} {
		if got := cell(given); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}
