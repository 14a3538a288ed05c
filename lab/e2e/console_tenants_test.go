package e2e

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
)

func TestConsole_Tenants_FilteredAndByWhatRemains(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.do(t, 200, "POST", "/v1/debits", "most", object{"tenant": "globex", "items": []object{{"meter": "api_calls", "amount": 9_500}}})
	c.do(t, 200, "PATCH", "/v1/tenants/acme-eu", "", object{"plan": "team", "apply": "now", "status": "suspended"})
	b := c.browser(t).signIn(testKey)
	for _, tc := range []struct {
		query, shows string
		hides        []string
	}{
		{"plan=team", "acme-eu team suspended", []string{"globex starter"}},
		{"status=active&plan=team", "No tenant matches the filters", nil},
		{"near=90", "globex starter active api_calls 95 % 500 calls", []string{"acme starter"}},
		{"near=90&status=suspended", "No tenant matches the filters", nil},
		{"meter=credits&sort=remaining", "560 credits", []string{"acme-eu"}},
		{"near=1&sort=remaining&meter=api_calls", "globex starter active api_calls 95 % 500 calls acme starter active api_calls 25 % 7,500 calls", nil},
		{"q=acme-&plan=starter", "acme-eu team suspended", []string{"globex starter"}}, // the search covers all tenants
		{"plan=" + url.QueryEscape(hostile[:60]), "The API does not accept this", nil},
	} {
		page := plain(string(b.send("GET", "/console/tenants?"+tc.query, nil).body))
		assert.Contains(t, page, tc.shows, "%s lacks %q", tc.query, tc.shows)
		for _, hidden := range tc.hides {
			assert.NotContains(t, page, hidden, "%s shows %q", tc.query, hidden)
		}
	}
	for _, near := range []string{"0", "101", "many", "-1"} {
		b.get(400, "/console/tenants?near="+near, "The share is not a percentage", "near is")
	}
}

// TestConsole_Tenants_Thousands: a page shows fifty tenants. The next page continues after the last of them, with the
// same filter.
func TestConsole_Tenants_Thousands(t *testing.T) {
	oneChromium.join(t)
	t.Parallel()
	c := newConsole(t)
	tenants := object{}
	for i := range 120 {
		tenants[fmt.Sprintf("bulk-%03d", i)] = object{"plan": "team"}
	}
	c.do(t, 200, "POST", "/v1/catalog", "", object{"tenants": tenants})
	b := newChromium(t, c).signIn(testKey)
	b.open("/console/tenants?plan=team")
	b.shows("bulk-049")
	b.press("n")
	b.shows("bulk-099")
	b.press("j", kb.ArrowDown, kb.ArrowDown, kb.ArrowUp)
	b.until(`document.activeElement.innerText === "bulk-051"`)
	b.press("n")
	b.shows("bulk-119")
	b.until(`!document.querySelector("a[rel=next]")`)
	b.click("First page")
	b.shows("bulk-000")
	b.choose("status", "suspended")
	b.shows("No tenant matches the filters")
	b.until(`location.search.includes("status=suspended") && location.search.includes("plan=team")`)
	b.clean()
}
