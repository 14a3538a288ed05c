package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
)

// furnish creates for acme an example of everything that its page shows.
func (c *consoled) furnish(t testing.TB) *consoled {
	t.Helper()
	c.do(t, 201, "PUT", "/v1/meters/seats", "", object{"unit": "seats", "kind": "gauge"})
	c.do(t, 200, "PUT", "/v1/plans/team", "", object{
		"allowances": []object{
			{"meter": "api_calls", "amount": 5_000, "every": "month", "anchor": "calendar", "per_subject": 4_000, "alert_at": []int{50, 80}},
			{"meter": "credits", "amount": 100, "every": "month", "anchor": "calendar", "overage": object{"policy": "allow", "cap": 50}},
			{"meter": "seats", "amount": 4},
		},
		"features": object{"sso": true, "max_upload_mb": 500},
		"apply":    "now",
	})
	c.do(t, 201, "PUT", "/v1/limits/burst", "", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "5/m", "burst": 10})
	c.do(t, 201, "PUT", "/v1/limits/each", "", object{"per": []string{"tenant", "subject"}, "kind": "token_bucket", "rate": "5/s", "burst": 5, "mode": "shadow"})
	c.do(t, 201, "PUT", "/v1/limits/elsewhere", "", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "5/s", "burst": 5, "match": object{"tenant": "globex"}})
	c.do(t, 200, "PATCH", "/v1/tenants/acme", "", object{"plan": "team", "apply": "now", "usage": "reset", "reason": "an upgrade", "features": object{"sso": false}})
	c.do(t, 200, "PUT", "/v1/tenants/acme/gauges/seats", "seats-3", object{"value": 3})
	c.do(t, 200, "POST", "/v1/debits", "debit-2", object{"tenant": "acme", "subject": "user-1", "items": []object{{"meter": "api_calls", "amount": 3_000}}})
	c.do(t, 429, "POST", "/v1/debits", "too-much", object{"tenant": "acme", "subject": "user-1", "items": []object{{"meter": "api_calls", "amount": 2_500}}})
	return c
}

// furnishedConsole is the service of tests that use acme after furnish and do not change it.
var furnishedConsole = together[*consoled]{start: func(h *host) *consoled {
	c := newConsole(h).furnish(h)
	return c
}}

func TestConsole_Tenant_GaugesFeaturesLimitsCapsMarks(t *testing.T) {
	c := furnishedConsole.parallel(t)
	read, _ := c.key(t, "acme", "read")
	b := c.browser(t).signIn(read)
	const at = "/console/tenants/acme?meter=api_calls"
	b.showsSoon(at, "Not enough ") // the last refusal is stored within a second
	b.showsSoon(at, "burst token bucket enforce every request 0 % 10 of 10")
	b.showsSoon(at, "plan team, 50 % reached") // an event is listed within a second
	page := plain(b.get(200, at,
		"seats 75 % 3 seats 4 0", "max_upload_mb 500", "sso no of this tenant", "each token bucket shadow every request a level for each tenant, subject",
		"The plan lets each subject use at most 4,000 calls in a period", "Use of api_calls by day", "31 days up to now", "plan team, 50 % reached"))
	assert.NotContains(t, page, "elsewhere", "the page shows a limit of another tenant")
	assert.Contains(t, page, "75 % 1,000", "the cap of user-1 is not shown")
	b.get(200, at+"&by=hour", "Use of api_calls by hour", "48 hours up to now", "plan team, 50 % reached")
	b.get(200, at+"&by=month", "Use of api_calls by month", "13 months up to now", "5,500")
	b.get(200, at+"&by=year", "Use of api_calls by day")
	for _, tc := range []struct {
		file, row string
		rows      int
	}{
		{"usage.csv?meter=api_calls&by=hour", ",Europe/Berlin,api_calls,calls,5500,0,0,2", 48},
		{"usage.csv?meter=api_calls&by=month", ",Europe/Berlin,api_calls,calls,5500,0,0,2", 13},
		{"lists/subjects.csv?meter=api_calls", "user-1,", 1},
		{"lists/terms.csv", ",team,now,reset,Europe/Berlin,an upgrade", 2},
		{"lists/periods.csv?meter=api_calls", "Europe/Berlin,api_calls,calls,5000", 12},
		{"lists/holds.csv", "render-1,,credits,credits,40,active,", 1},
		{"lists/refusals.csv", "quota_exceeded,api_calls,,user-1,", 1},
		{"lists/grants.csv?meter=credits", "invoice-7,credits,credits,topup,500,", 0},
	} {
		sheet := b.send("GET", "/console/tenants/acme/"+tc.file, nil)
		text := string(sheet.body)
		assert.True(t, sheet.status == 200 && strings.Contains(text, tc.row) &&
			(tc.rows == 0 || strings.Count(text, "\n") == tc.rows+1) &&
			strings.HasPrefix(sheet.header.Get("Content-Type"), "text/csv"), "%s: %d %s", tc.file, sheet.status, text)
	}
	sheet := b.get(200, "/console/tenants.csv?meter=api_calls")
	assert.True(t, strings.Contains(sheet, "acme,team,active,Europe/Berlin,") && !strings.Contains(sheet, "globex") && strings.Count(sheet, "\n") == 2, "tenants as CSV: %s", sheet)
	b.get(404, "/console/tenants/acme/lists/everything.csv", "There is no such page")
	b.get(404, "/console/tenants/acme/lists/holds", "There is no such page")
	b.get(400, "/console/tenants/acme/lists/refusals.csv?from=noon", "This is not a time")
	for file := range map[string]bool{"holds": true, "grants": true, "terms": true, "subjects": true, "periods": true, "refusals": true} {
		b.get(403, "/console/tenants/globex/lists/"+file+".csv", "This key may not do that")
	}
}

// TestConsole_Tenant_TextsOfItsParts_StayTexts: the console shows texts that users and programs supply as plain text,
// and a spreadsheet does not run them as formulas.
func TestConsole_Tenant_TextsOfItsParts_StayTexts(t *testing.T) {
	oneChromium.join(t)
	t.Parallel()
	c := newConsole(t).furnish(t)
	const route = "/<script>alert(1)</script>"
	c.do(t, 200, "PATCH", "/v1/tenants/acme", "", object{"plan": "starter", "reason": "=cmd|' /C calc'!A1 " + hostile})
	c.do(t, 200, "PUT", "/v1/meters/seats", "", object{"unit": "<img src=x onerror=alert(1)>", "kind": "gauge"})
	b := newChromium(t, c).signIn(testKey)
	for _, path := range []string{"/console/tenants/acme?meter=api_calls", "/console/tenants/acme?by=" + route + "&meter=" + route, "/console/tenants?near=50", "/console/"} {
		b.open(path)
		b.until(`!document.querySelector("main img, main script")`)
	}
	b.open("/console/tenants/acme?meter=credits")
	b.shows("=cmd|")
	b.shows("<img src=x onerror=alert(1)>") // the unit of the gauge
	b.clean()
	plain := c.browserOf(t)
	sheet := plain.get(200, "/console/tenants/acme/lists/terms.csv")
	assert.True(t, !strings.Contains(sheet, ",=cmd") && strings.Contains(sheet, "'=cmd"), "a spreadsheet would run %s", sheet)
}

// TestConsole_InChromium_Chart: the chart is drawn for each selectable length of time. A top-up in one tab changes
// the bar in the other tab.
func TestConsole_InChromium_Chart(t *testing.T) {
	furnishedConsole.join(t)
	oneChromium.join(t)
	t.Parallel()
	c := furnishedConsole.get(t)
	b := newChromium(t, c)
	script := axe(t)
	b.signIn(testKey)
	b.open("/console/tenants/acme?meter=api_calls")
	for _, by := range []string{"hour", "month", "day"} {
		b.clickAt(`//nav[@class="lengths"]//a[text()="` + by + `"]`)
		b.shows("Use of api_calls by " + by)
		b.do(chromedp.WaitVisible(chromedp.CSS(".chart canvas")))
		b.accessible(script)
	}
	b.clean()
}
