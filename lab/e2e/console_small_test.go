package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
)

// These ids have the maximum length and no character at which a line could break.
var (
	longTenant  = "t" + strings.Repeat("W", 127)
	longMeter   = "m" + strings.Repeat("W", 127)
	longSubject = "s" + strings.Repeat("W", 127)
)

const (
	manyMeters   = 200
	manySubjects = 1_000
)

// stretch creates a tenant with the longest ids, a tenant with many meters, and a tenant with many subjects.
func (c *consoled) stretch(t testing.TB) *consoled {
	t.Helper()
	meters, allowances := object{longMeter: object{"unit": strings.Repeat("W", 32)}}, []object{{"meter": longMeter, "amount": 9_007_199_254_740_990, "every": "month", "anchor": "calendar"}}
	for i := range manyMeters {
		id := fmt.Sprintf("meter-%03d", i)
		meters[id] = object{"unit": "units"}
		allowances = append(allowances, object{"meter": id, "amount": 1_000 + i, "every": "month", "anchor": "calendar"})
	}
	c.do(t, 200, "POST", "/v1/catalog", "", object{"meters": meters, "plans": object{"p" + strings.Repeat("W", 127): object{"allowances": allowances[:1]}}})
	for from := 1; from < len(allowances); from += 50 { // the tenant wide gets top-ups of the meters of other plans
		c.do(t, 200, "POST", "/v1/catalog", "", object{"plans": object{fmt.Sprintf("wide-%d", from): object{"allowances": allowances[from:min(from+50, len(allowances))]}}})
	}
	c.do(t, 201, "PUT", "/v1/tenants/"+longTenant, "", object{"plan": "p" + strings.Repeat("W", 127), "timezone": "America/Argentina/ComodRivadavia"})
	c.do(t, 201, "PUT", "/v1/tenants/wide", "", object{"plan": "wide-1"})
	for i := 50; i < manyMeters; i++ {
		c.do(t, 201, "POST", "/v1/tenants/wide/grants", fmt.Sprintf("wide-%d", i), object{"meter": fmt.Sprintf("meter-%03d", i), "amount": 7, "source": "topup", "grant_id": "g" + strings.Repeat("W", 127)})
	}
	c.do(t, 200, "POST", "/v1/debits", "long", object{"tenant": longTenant, "subject": longSubject, "items": []object{{"meter": longMeter, "amount": 4_503_599_627_370_496}}, "metadata": object{"k": strings.Repeat("W", 200)}})
	c.do(t, 402, "POST", "/v1/debits", "long-2", object{"tenant": longTenant, "subject": longSubject, "items": []object{{"meter": longMeter, "amount": 9_007_199_254_740_991}}})
	c.do(t, 201, "POST", "/v1/tenants/"+longTenant+"/grants", strings.Repeat("k", 255), object{"meter": longMeter, "amount": 1, "source": "promo", "grant_id": "g" + strings.Repeat("W", 127), "reason": strings.Repeat("W", 500)})
	c.do(t, 201, "POST", "/v1/keys", "", object{"name": strings.Repeat("W", 128), "scopes": []string{"use", "read", "admin"}, "tenant": longTenant})
	var debits []object
	for i := range manySubjects {
		debits = append(debits, object{"idempotency_key": fmt.Sprintf("s-%d", i), "tenant": "acme", "subject": fmt.Sprintf("subject-%04d", i), "items": []object{{"meter": "api_calls", "amount": 1}}})
	}
	c.do(t, 200, "POST", "/v1/debits/batch", "", object{"debits": debits})
	return c
}

// TestConsole_InChromium_FitsEveryScreen: no page is wider than its window, for any ids and any number of meters and
// subjects.
func TestConsole_InChromium_FitsEveryScreen(t *testing.T) {
	oneChromium.join(t)
	t.Parallel()
	c := newConsole(t).stretch(t)
	b := newChromium(t, c).signIn(testKey)
	c.browserOf(t).showsSoon("/console/tenants/"+longTenant+"/refusals", "Not enough ")
	long := "/console/tenants/" + longTenant
	pages := slices.Concat(consolePages(), []string{
		"/console/login", "/console/tenants?near=1&sort=remaining", "/console/webhooks", "/console/proof",
		long, long + "/refusals", long + "/journal", long + "/statements", long + "/statements/" + longMeter + "/current", long + "/correct/top-up?meter=" + longMeter,
		long + "/correct/plan", long + "/nothing", "/console/explain?tenant=" + longTenant + "&meter=" + longMeter + "&amount=9007199254740991", "/console/audit?tenant=" + longTenant, "/console/events?tenant=" + longTenant,
		"/console/tenants/wide", "/console/tenants/wide?meter=meter-150", "/console/tenants/wide/correct/top-up", "/console/tenants/acme?meter=api_calls",
	})
	for _, path := range pages {
		b.do(chromedp.EmulateViewport(360, 800))
		b.open(path)
		for _, width := range []int64{360, 390, 1280} {
			b.do(chromedp.EmulateViewport(width, 800))
			if wide := result(b, chromedp.Evaluate[int64]("Math.ceil(document.documentElement.scrollWidth)")); wide > width {
				t.Errorf("%s is %d pixels wide in a window of %d: %s", path, wide, width, b.widest(width))
			}
		}
	}
	b.clean("404")
	b.do(chromedp.EmulateViewport(1280, 800))
	b.open("/console/tenants/wide?meter=meter-150")
	b.shows(fmt.Sprintf("All %d meters", manyMeters))
	cards := result(b, chromedp.Evaluate[int](`document.querySelectorAll("article.meter").length`))
	assert.Equal(t, 1, cards, "only the chosen meter has a card")
	b.accessible(axe(t))
}

// widest returns the elements that extend beyond the window, for the message of a failure.
func (b *tab) widest(width int64) string {
	b.t.Helper()
	return result(b, chromedp.Evaluate[string](fmt.Sprintf(`[...document.querySelectorAll("main *, header *")].filter((e) => e.getBoundingClientRect().right > %d && !e.closest(".scroll, .periods, pre, textarea")).slice(0, 3).map((e) => e.tagName + "." + e.className + " " + e.textContent.slice(0, 40)).join(" | ")`, width)))
}
