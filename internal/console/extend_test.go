package console

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/inprocess"
)

// TestExtend_SecondStepFails_SaysWhatIsMissing: the form has what completes it.
func TestExtend_SecondStepFails_SaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	var keys []string
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		dry := strings.Contains(string(body), `"dry_run":true`)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/balances/credits"):
			_, _ = io.WriteString(w, `{"meter":"credits","grants":[{"grant_id":"gift","source":"promo","amount":50,"remaining":50,"expires_at":"2035-01-01T00:00:00Z","priority":5}]}`)
		case strings.HasSuffix(r.URL.Path, "/void"):
			if !dry {
				keys = append(keys, r.Header.Get("Idempotency-Key"))
			}
			_, _ = io.WriteString(w, `{"meter":"credits","amount":-50,"before":70,"remaining":20}`)
		case dry:
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"grant_id":"x"}`)
		default:
			keys = append(keys, r.Header.Get("Idempotency-Key"))
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"code":"unavailable","detail":"the ledger cannot reach its database","status":503}`)
		}
	})
	c := &call{console: &Console{cfg: Config{API: api}}, r: httptest.NewRequest(http.MethodPost, "/console/", nil), ctx: t.Context()}
	var err error
	if c.API, err = inprocess.WithSecret(c.console.cfg.API, c.r, strings.Repeat("k", 32)); err != nil {
		t.Fatal(err)
	}
	v := &correctionView{
		tenantView: &tenantView{Tenant: &client.Tenant{Tenant: "acme", Timezone: "UTC"}, zone: time.UTC, units: map[string]string{"credits": "credits"}}, once: "console-1",
		given: form{"grant": {"gift"}, "meter": {"credits"}, "expires_at": {"2035-02-01"}, "reason": {"x"}},
	}
	f := explain(extend(c, v))
	if f.status != http.StatusServiceUnavailable || f.changed() != "A part of it was done." || !strings.Contains(f.detail, "50 credits of credits are missing") || !strings.Contains(f.detail, "Send the same form again") {
		t.Errorf("%+v", f)
	}
	if got := strings.Join(keys, " "); got != "console-1-void console-1" {
		t.Errorf("keys %s", got)
	}
	if v.get("source") != "promo" || v.get("priority") != "5" {
		t.Errorf("the form has %v", v.given)
	}
}
