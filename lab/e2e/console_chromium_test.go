package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// tab is a tab of a real browser. It records the errors that its pages report.
type tab struct {
	t   testing.TB
	ctx context.Context //nolint:containedctx // that is how chromedp names a tab
	at  string

	steps int // clicks and fields so far

	mu    sync.Mutex
	wrong []string
}

// oneChromium is the browser of all tests that need no browser options.
var oneChromium = together[context.Context]{start: func(h *host) context.Context {
	browser, stop := chromedp.NewContext(allocateChromium(h, programOf(h.T, "chromium")))
	h.Cleanup(stop)
	if err := chromedp.Do(browser); err != nil {
		h.Fatal(err)
	}
	return browser
}}

// newChromium returns a tab of oneChromium. The tab shares no cookies and no other stored data with other tabs. If
// there are options, newChromium starts a separate browser.
func newChromium(t *testing.T, c *consoled, more ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	path, at := programOf(t, "chromium"), strings.TrimSuffix(c.console, "/console/")
	if len(more) > 0 {
		return newTab(allocateChromium(t, path, more...), t, at)
	}
	return newTab(oneChromium.get(t), t, at, chromedp.WithNewBrowserContext())
}

// allocateChromium returns a context in which a browser starts.
func allocateChromium(t testing.TB, path string, more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Headless, chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(1280, 900), chromedp.Flag("force-color-profile", "srgb"),
	)
	browsers, stop := chromedp.NewExecAllocator(context.Background(), append(options, more...)...)
	t.Cleanup(stop)
	return browsers
}

// newTab opens a tab. If parent is a browser or a tab, the new tab belongs to the same browser.
func newTab(parent context.Context, t testing.TB, at string, options ...chromedp.ContextOption) *tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(parent, options...)
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx, at: at}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			raw, _ := json.Marshal(e.ExceptionDetails)
			b.note("exception: %s", raw)
		case *runtime.EventConsoleAPICalled:
			if kind := string(e.Type); kind == "error" || kind == "warning" {
				raw, _ := json.Marshal(e.Args)
				b.note("console: %s", raw)
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
				b.note("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
			}
		}
	})
	if err == nil {
		_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	}
	require.NoError(t, err)
	return b
}

// another opens a further tab of the same browser.
func (b *tab) another() *tab { return newTab(b.ctx, b.t, b.at) }

func (b *tab) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
}

// clean fails the test if a page has reported an error about its policy, a script, or a file. Errors about an answer
// with one of the expected statuses do not count.
func (b *tab) clean(expected ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.wrong {
		if !slices.ContainsFunc(expected, func(status string) bool { return strings.Contains(w, "with a status of "+status) }) {
			b.t.Error(w)
		}
	}
	b.wrong = nil
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, testenv.Patience)
	defer stop()
	b.steps++
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.failed(err)
	}
}

// failed ends the test, and prints the text of the page.
func (b *tab) failed(err error) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, testenv.Patience)
	defer stop()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
	b.t.Fatalf("%v; the page says: %s", err, blanks.ReplaceAllString(text, " "))
}

// result runs an action and returns its result.
func result[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, testenv.Patience)
	defer stop()
	got, err := chromedp.Run(ctx, action)
	if err != nil {
		b.failed(err)
	}
	return got
}

// until waits until a JavaScript expression is true. The browser may load other pages meanwhile.
func (b *tab) until(expression string) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, testenv.Patience)
	defer stop()
	testenv.Eventually(b.t, func() bool {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("(() => { try { return Boolean("+expression+") } catch { return false } })()"))
		if ctx.Err() != nil {
			b.failed(fmt.Errorf("not true within %s: %s (%w)", testenv.Patience, expression, errors.Join(err, ctx.Err())))
		}
		return err == nil && is // an error means that the browser has left the page
	}, expression)
}

// loaded waits until the page has loaded and an expression is true. Before that, no script of the page handles keys,
// clicks or choices, and the browser may give the nodes other ids.
func (b *tab) loaded(expression string) {
	b.t.Helper()
	b.until(`document.readyState === "complete" && (` + expression + `)`)
}

func (b *tab) open(path string) *tab {
	b.t.Helper()
	b.do(chromedp.Navigate(b.at+path), chromedp.WaitVisible(chromedp.CSS("main")))
	return b
}

// shows waits until the page shows a text.
func (b *tab) shows(text string) {
	b.t.Helper()
	quoted, _ := json.Marshal(text)
	b.until(`document.body && document.body.innerText.replace(/\s+/g, " ").includes(` + string(quoted) + `)`)
}

// click presses the button, or follows the link, that has this text.
func (b *tab) click(text string) {
	b.t.Helper()
	b.clickAt(fmt.Sprintf(`//main//*[self::a or self::button or self::summary][normalize-space()=%q]`, text))
}

// clickAt clicks on the first node that an XPath selects.
func (b *tab) clickAt(path string) {
	b.t.Helper()
	b.loaded("true")
	b.do(chromedp.Click(path))
}

// press presses keys, one after another.
func (b *tab) press(keys ...string) {
	b.t.Helper()
	b.loaded("true")
	for _, key := range keys {
		b.do(chromedp.KeyEvent(key))
	}
}

// choose selects an option of a list, as a user would.
func (b *tab) choose(name, value string) {
	b.t.Helper()
	list := fmt.Sprintf("document.querySelector(%q)", fmt.Sprintf(`main select[name=%q]`, name))
	b.loaded(list)
	result(b, chromedp.Evaluate[bool](fmt.Sprintf(`(() => { const list = %s; list.value = %q; return list.dispatchEvent(new Event("change", {bubbles: true})) })()`, list, value)))
}

// fill enters a value into a field.
func (b *tab) fill(name, value string) {
	b.t.Helper()
	selector := fmt.Sprintf(`main [name=%q]:not([type=hidden])`, name)
	b.loaded(fmt.Sprintf("document.querySelector(%q)", selector))
	result(b, chromedp.Evaluate[bool](fmt.Sprintf("document.querySelector(%q).value = \"\"; true", selector)))
	b.do(chromedp.SendKeys(chromedp.CSS(selector), value))
}

// search types a prefix into the search field of the list of tenants, and waits for the answer to the whole prefix. The
// page also searches for the beginnings of the prefix. The answers replace the rows, so a click before the last answer
// may be lost.
func (b *tab) search(prefix string) {
	b.t.Helper()
	b.fill("q", prefix)
	b.until(fmt.Sprintf(`new URLSearchParams(location.search).get("q") === %q && !document.querySelector(".htmx-request, .htmx-swapping, .htmx-settling")`, prefix))
}

func (b *tab) signIn(key string) *tab {
	b.t.Helper()
	b.open("/console/login")
	b.fill("key", key)
	b.click("Sign in")
	b.do(chromedp.WaitVisible(chromedp.CSS("header.top")))
	return b
}

// axe returns the script of axe, which finds accessibility problems.
func axe(t testing.TB) string {
	t.Helper()
	zipped := testenv.Must(t).Get(os.ReadFile("../../internal/pages/console/testdata/axe.min.js.gz"))
	r := testenv.Must(t).Get(gzip.NewReader(bytes.NewReader(zipped)))
	return string(testenv.Must(t).Get(io.ReadAll(r)))
}

// accessible fails the test if the page has a serious accessibility problem, in light or dark colours. For the dark
// colours it only checks the contrast, because nothing else differs.
func (b *tab) accessible(script string) {
	b.t.Helper()
	result(b, chromedp.Evaluate[bool](script+"; true"))
	b.dark("dark")
	b.rests()
	b.noBarrier(`runOnly: ["color-contrast"], `)
	b.dark("light")
	b.rests()
	b.noBarrier("")
}

func (b *tab) noBarrier(rules string) {
	b.t.Helper()
	type violation struct {
		ID, Impact, Help string
		Nodes            []struct{ HTML, FailureSummary string }
	}
	ask := `axe.run(document, {` + rules + `resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations.filter((v) => ["serious", "critical"].includes(v.impact))))`
	var found []violation
	require.NoError(b.t, json.Unmarshal([]byte(result(b, chromedp.Evaluate[string](ask, chromedp.EvalAwaitPromise))), &found))
	at := result(b, chromedp.Location())
	for _, v := range found {
		for _, n := range v.Nodes {
			b.t.Errorf("%s: %s (%s): %s: %s", at, v.ID, v.Help, n.HTML, n.FailureSummary)
		}
	}
}

// dark sets the colour scheme of pages: "dark" or "light".
func (b *tab) dark(scheme string) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, testenv.Patience)
	defer stop()
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
		b.failed(err)
	}
}

func TestConsole_InChromium_FindReadExplain(t *testing.T) {
	oneConsole.join(t)
	oneChromium.join(t)
	t.Parallel()
	c := oneConsole.get(t)
	b := newChromium(t, c).open("/console/login")
	b.signIn(testKey)
	b.open("/console/tenants")
	b.shows("globex")
	b.press("/")
	b.until(`document.activeElement.id === "q"`)
	b.search("acme-")
	b.until(`!document.querySelector("#tenants").innerText.includes("globex")`)
	b.press(kb.Escape, "j", kb.Enter)
	b.shows("Next periods of")
	b.open("/console/tenants/acme?meter=api_calls")
	b.do(chromedp.WaitVisible(chromedp.CSS(".chart canvas"))) // uPlot has drawn
	b.click("Explain")
	b.fill("amount", "8000")
	b.click("Explain")
	b.shows("Waiting helps, and so does a top-up.")
	b.clean()
}

// TestConsole_InChromium_TopUp: the form has a preview. After the top-up, the bar in another tab changes without a
// click.
func TestConsole_InChromium_TopUp(t *testing.T) {
	oneChromium.join(t)
	t.Parallel()
	c := newConsole(t)
	b := newChromium(t, c).signIn(testKey)
	b.open("/console/tenants/acme?meter=credits")
	watching := b.another()
	watching.open("/console/tenants/acme?meter=credits")
	const remaining = `document.querySelector("[data-remaining=credits]").innerText`
	watching.until(remaining + ` === "560"`)
	b.click("Top up")
	b.fill("amount", "500")
	b.fill("reason", "goodwill until Friday")
	b.click("Preview")
	b.shows("560 credits 1,060 credits")
	b.click("Top up")
	b.shows("Done.")
	b.shows("goodwill until Friday")
	watching.until(remaining + ` === "1,060"`)
	b.clean()
	watching.clean()
}

func TestConsole_InChromium_NoBarriers(t *testing.T) {
	oneConsole.join(t)
	oneChromium.join(t)
	t.Parallel()
	c := oneConsole.get(t)
	b := newChromium(t, c)
	script := axe(t)
	b.open("/console/login")
	b.accessible(script)
	b.signIn(testKey)
	for _, path := range consolePages() {
		b.open(path)
		b.accessible(script)
	}
	b.clean()
}

// consolePages returns the paths of the console's pages that have content in the tests.
func consolePages() []string {
	return []string{
		"/console/", "/console/tenants", "/console/tenants?q=none", "/console/tenants/acme?meter=credits", "/console/tenants/acme/journal?meter=api_calls",
		"/console/tenants/acme/statements/api_calls", "/console/tenants/acme/statements/api_calls/current",
		"/console/explain", "/console/explain?tenant=acme&meter=credits&amount=150", "/console/explain?tenant=acme&meter=credits&amount=900",
		"/console/tenants/acme/refusals", "/console/catalogue", "/console/catalogue/shadow", "/console/catalogue/edit", "/console/webhooks", "/console/events", "/console/keys", "/console/audit", "/console/proof",
		"/console/tenants/acme/correct/top-up?meter=credits", "/console/tenants/acme/correct/plan", "/console/tenants/acme/correct/block",
	}
}

// browserOf returns a browser that is signed in as the administrator.
func (c *consoled) browserOf(t testing.TB) *browser {
	t.Helper()
	b := c.browser(t).signIn(testKey)
	return b
}

// month creates a history of grants and debits for acme.
func (c *consoled) month(t testing.TB) *consoled {
	t.Helper()
	c.do(t, 201, "POST", "/v1/tenants/acme/grants", "promo-1", object{"meter": "credits", "amount": 50, "source": "promo", "grant_id": "launch-gift", "expires_at": time.Now().AddDate(0, 0, 20).UTC().Format(time.RFC3339), "reason": "launch"})
	for i, n := range []int{35, 60, 12, 4} {
		c.do(t, 200, "POST", "/v1/debits", fmt.Sprintf("render-%d", i), object{"tenant": "acme", "subject": fmt.Sprintf("user-%d", i%3+1), "items": []object{{"meter": "credits", "amount": n}}, "metadata": object{"model": "large"}})
	}
	return c
}
