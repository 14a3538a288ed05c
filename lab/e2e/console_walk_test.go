package e2e

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
)

// newDemo starts dev as `make run` does. It returns a tab that is signed in as the introduction describes.
func newDemo(t *testing.T) *tab {
	t.Helper()
	in := launchDemo(t, filepath.Join(t.TempDir(), "data"))
	t.Cleanup(func() {
		in.signal(syscall.SIGINT)
		in.wait()
	})
	address, _, _ := strings.Cut(in.console, " ")
	b := newChromium(t, &consoled{instance: &instance{process: in.process, api: in.api}, console: address})
	b.signIn(in.key)
	return b
}

// pick follows a link in the navigation of the console.
func (b *tab) pick(text string) {
	b.t.Helper()
	b.clickAt(`//header//a[normalize-space()="` + text + `"]`)
}

// find opens a tenant's page as a person would: it enters the tenant's id into the search field.
func (b *tab) find(tenant string) {
	b.t.Helper()
	b.pick("Tenants")
	b.search(tenant)
	b.until(`document.querySelectorAll("[data-rows] tbody tr").length === 1`)
	b.click(tenant)
	b.shows("Next periods of")
}

// mostSteps is the maximum number of steps that a person may need for an answer. A step takes about five seconds.
const mostSteps = 11

// nearFivePastTwo reports whether 14:05 in acme's zone is less than an hour away. In that case another 14:05 may
// become the last one while the test runs.
func nearFivePastTwo(t *testing.T) bool {
	t.Helper()
	now := time.Now().In(berlin(t))
	year, month, day := now.Date()
	at := time.Date(year, month, day, 14, 5, 21, 0, now.Location())
	return at.After(now) && at.Sub(now) < time.Hour
}

// answered checks the number of steps that a question has taken, and begins to count for the next question.
func (b *tab) answered(what string) {
	b.t.Helper()
	assert.True(b.t, b.steps <= mostSteps, "%s: took %d steps, want at most %d", what, b.steps, mostSteps)
	b.steps = 0
}

// TestConsole_InChromium_SupportWalk answers five questions about the demo with clicks and fields only, as a new
// support person would.
func TestConsole_InChromium_SupportWalk(t *testing.T) {
	oneChromium.join(t)
	t.Parallel()
	near := nearFivePastTwo(t)
	b := newDemo(t)
	b.steps = 0

	// Why was acme refused at 14:05? A time without a day means the last 14:05 in acme's zone.
	b.find("acme")
	b.click("Refusals")
	if near {
		b.clickAt(`//main//a[contains(@href, "at=14%3A05")]`)
	} else {
		b.fill("at", "14:05")
		b.click("Show")
	}
	b.shows("This is one minute.")
	b.shows("Not enough ai_credits: 2,500 credits needed, ")
	b.until(`document.querySelectorAll("[aria-label=Refusals] tbody tr").length === 1 && document.querySelector("[aria-label=Refusals] tbody th").innerText.includes(" 14:05:")`)
	b.answered("why acme was refused at 14:05")

	// What did acme use last month, and from which grants?
	b.click("acme")
	b.click("api_calls")
	b.click("Statements")
	b.shows("Periods of api_calls, the newest first")
	b.clickAt(`//main//tbody/tr[2]//a`)
	b.shows("The figures add up")
	b.shows("closed")
	b.shows("debit the plan's allowance")
	b.click("acme")
	b.click("ai_credits")
	b.click("Journal")
	b.shows("invoice-1077")
	b.answered("what it used last month, and of which grants")

	// Give acme 500 credits until Friday.
	friday := time.Now().AddDate(0, 0, 1)
	for friday.Weekday() != time.Friday {
		friday = friday.AddDate(0, 0, 1)
	}
	b.click("acme")
	b.click("ai_credits")
	b.click("Top up")
	b.fill("amount", "500")
	b.fill("reason", "goodwill, ticket 1250")
	result(b, chromedp.Evaluate[bool](`document.querySelector("[name=expires_at]").value = "`+friday.Format(time.DateOnly)+`T18:00"; true`))
	b.steps++
	b.click("Preview")
	b.shows("12 credits 512 credits")
	b.click("Top up")
	b.shows("Done.")
	b.shows("grant.create")
	b.answered("give it 500 credits until Friday")

	// Which tenants will run out this week?
	b.pick("Tenants")
	b.shows("initech")
	b.fill("near", "85")
	b.click("Show")
	b.until(`!document.querySelector("#tenants").innerText.includes("hooli")`)
	b.shows("globex")
	b.shows("umbrella")
	b.answered("who will run out this week")

	// Did anybody change acme's plan, and when?
	b.find("acme")
	b.shows("upgrade, ticket 1203")
	b.pick("Events")
	b.fill("type", "plan.changed")
	b.click("Show")
	b.shows("upgrade, ticket 1203")
	b.answered("did anybody change its plan, and when")
	b.clean()
}
