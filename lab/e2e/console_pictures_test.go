package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// pictureMax is the maximum size of a picture in bytes.
const pictureMax = 150_000

// album takes pictures of pages with a browser.
type album struct {
	*tab

	c   *consoled
	dir string
}

// take writes a picture of a page with the given width. The picture is as high as the page, but not higher than `most`.
// If path is empty, take uses the page that is open.
func (a *album) take(name, path string, width, most int64) *album {
	a.t.Helper()
	a.do(chromedp.EmulateViewport(width, most))
	if path != "" {
		a.open(path)
	}
	a.loaded(`!document.querySelector("[data-chart]") || document.querySelector(".chart canvas")`)
	a.do(chromedp.EmulateViewport(width, min(most, result(a.tab, chromedp.Evaluate[int64](`Math.ceil(document.querySelector("main").getBoundingClientRect().bottom + scrollY - 24)`)))))
	a.snap(name)
	return a
}

// snap writes a picture of the window's content.
func (a *album) snap(name string) {
	a.t.Helper()
	a.rests()
	small := paletted(a.t, result(a.tab, chromedp.CaptureScreenshot()))
	assert.True(a.t, len(small) <= pictureMax, "%s has %d bytes, want at most %d", name, len(small), pictureMax)
	if err := os.WriteFile(filepath.Join(a.dir, name+".png"), small, 0o644); err != nil { //nolint:gosec // for everybody
		a.t.Fatal(err)
	}
}

// rests waits until animations of bars and colours have ended and charts have the size of the window.
func (b *tab) rests() {
	b.t.Helper()
	const still = `(async () => {
		const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
		await frames()
		await Promise.all(document.getAnimations().map((a) => a.finished.catch(() => {})))
		await frames()
		return true
	})()`
	result(b, chromedp.Evaluate[bool](still, chromedp.EvalAwaitPromise))
}

// paletted returns a picture with its 256 most frequent colours. Pages have few colours; the edges of letters add the
// others.
func paletted(t testing.TB, picture []byte) []byte {
	t.Helper()
	full := testenv.Must(t).Get(png.Decode(bytes.NewReader(picture)))
	counts := map[color.RGBA]int{}
	area := full.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	var palette color.Palette
	for _, c := range colours[:min(len(colours), 256)] {
		palette = append(palette, c)
	}
	nearest := make(map[color.RGBA]uint8, len(colours))
	for _, c := range colours {
		nearest[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(area, palette)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			out.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	var b bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out))
	return b.Bytes()
}

// newAlbum starts dev with its demo, as `make run` does, and adds the activity of a day.
func newAlbum(t *testing.T, dir string) *album {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(data, 0o755); err != nil { //nolint:gosec // PostgreSQL's user enters it
		t.Fatal(err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(data, keyFile), []byte(testKey), 0o600))
	in := launchDemo(t, data)
	t.Cleanup(func() {
		in.signal(syscall.SIGINT)
		in.wait()
	})
	address, _, _ := strings.Cut(in.console, " ")
	c := &consoled{instance: &instance{process: in.process, api: in.api, http: &http.Client{Timeout: testenv.Patience}}, console: address}
	c.furnishDay(t, in.database(t))
	return &album{tab: newChromium(t, c), c: c, dir: dir}
}

// database returns the URL of dev's database, as the introduction prints it.
func (in *introduction) database(t *testing.T) string {
	t.Helper()
	_, after, _ := strings.Cut(in.stdout.String(), "QUOTASVC_DATABASE_URL='")
	url, _, found := strings.Cut(after, "'")
	require.True(t, found, "the introduction has no URL of the database")
	return url
}

// furnishDay creates keys, verifications, seals and deliveries, and uses the API.
func (c *consoled) furnishDay(t *testing.T, database string) {
	t.Helper()
	for _, k := range []object{
		{"name": "billing service", "scopes": []string{"use", "read"}},
		{"name": "support desk", "scopes": []string{"read"}},
		{"name": "acme's own page", "scopes": []string{"read"}, "tenant": "acme", "expires_at": time.Now().AddDate(0, 3, 0).UTC().Format(time.RFC3339)},
	} {
		c.do(t, 201, "POST", "/v1/keys", "", k)
	}
	to := newReceiver(t)
	id, _ := c.newWebhook(t,
		object{"url": to.URL + "/hooks", "types": []string{"grant.created", "balance.exhausted", "plan.changed"}})
	b := c.browserOf(t)
	for i, status := range []int64{204, 204, 503} {
		to.status.Store(status)
		c.do(t, 201, "POST", "/v1/tenants/hooli/grants", fmt.Sprintf("gift-%d", i), object{"meter": "ai_credits", "amount": 5 + i, "source": "promo", "reason": "thanks for the report"})
		if at := "/console/webhooks/" + id; status == 503 {
			b.showsSoon(at+"?status=pending", "503")
		} else {
			b.showsSoon(at+"?status=delivered", "evt_")
		}
	}
	for _, body := range []object{{}, {"tenant": "acme"}, {}} {
		c.do(t, 202, "POST", "/v1/verifications", "", body)
		b.showsSoon("/console/", "clean")
		b.until("/console/proof", func(page string) bool { return !strings.Contains(page, "status running") })
	}
	for i := range 3 {
		if status, _, stderr := tool(t, []string{"QUOTASVC_DATABASE_URL=" + database}, "seal", "--day", time.Now().UTC().AddDate(0, 0, i-3).Format(time.DateOnly)); status != 0 {
			t.Logf("seal: %s", stderr)
		}
	}
	for i := range 9 { // more requests than the shadow rule would allow
		c.do(t, 200, "POST", "/v1/consume", fmt.Sprintf("shadow-%d", i), object{"tenant": "hooli", "route": "/render", "items": []object{{"meter": "api_calls", "amount": 1}}})
	}
	c.do(t, 202, "POST", "/v1/rolls", "", nil)
	for i := range 40 {
		tenant := []string{"acme", "globex", "hooli", "umbrella"}[i%4]
		status := 200
		if i%4 == 0 && i > 12 {
			status = 402
			c.do(t, status, "POST", "/v1/debits", fmt.Sprintf("day-%d", i), object{"tenant": tenant, "subject": "user-2", "items": []object{{"meter": "ai_credits", "amount": 120}}})
			continue
		}
		c.do(t, status, "POST", "/v1/debits", fmt.Sprintf("day-%d", i), object{"tenant": tenant, "subject": "user-1", "items": []object{{"meter": "api_calls", "amount": 1 + i%3}}})
	}
	b.showsSoon("/console/", "done")
}

// until requests a page again and again until the given function accepts it.
func (b *browser) until(path string, is func(page string) bool) {
	b.t.Helper()
	testenv.Eventually(b.t, func() bool { return is(b.get(200, path)) }, path, " is as wanted")
}

// TestConsole_Pictures writes the pictures of the documentation if QUOTASVC_CONSOLE_PICTURES is set, as in `make
// console-pictures`.
func TestConsole_Pictures(t *testing.T) {
	dir := os.Getenv("QUOTASVC_CONSOLE_PICTURES")
	if dir == "" {
		t.Skip("pictures are made by make console-pictures")
	}
	oneChromium.join(t)
	a := newAlbum(t, dir).take("console-login", "/console/login", 900, 520)
	a.signIn(testKey)
	a.open("/console/")
	a.shows("globex")
	a.take("console-overview", "", 1200, 1100)
	a.tenantPictures()
	a.correctionPictures()
	a.recordPictures()
	a.smallAndDark()
	a.portalPictures()
}

func (a *album) tenantPictures() {
	a.t.Helper()
	a.take("console-tenants", "/console/tenants?sort=remaining&meter=api_calls", 1200, 700)
	a.take("console-tenant", "/console/tenants/acme?meter=ai_credits", 1200, 1000)
	a.open("/console/tenants/acme?meter=api_calls")
	a.do(chromedp.EmulateViewport(1200, 900))
	a.until(`document.querySelector(".chart canvas")`)
	result(a.tab, chromedp.Evaluate[bool](`document.querySelector("#use").scrollIntoView(); true`))
	a.snap("console-use")
	result(a.tab, chromedp.Evaluate[bool](`[...document.querySelectorAll("h2")].find((h) => h.innerText.startsWith("Subjects that used")).scrollIntoView(); true`))
	a.snap("console-limits")
	a.take("console-refusals", "/console/tenants/acme/refusals", 1200, 900)
	a.fill("at", "14:05")
	a.click("Show")
	a.shows("This is one minute.")
	a.take("console-refusals-minute", "", 1200, 600)
	a.take("console-journal", "/console/tenants/acme/journal?meter=ai_credits", 1200, 820)
	a.take("console-statements", "/console/tenants/acme/statements/api_calls", 1000, 600)
	a.clickAt(`//main//tbody/tr[2]//a`)
	a.shows("The figures add up")
	a.take("console-statement", "", 900, 1000)
	a.take("console-explain", "/console/explain?tenant=hooli&meter=ai_credits&amount=9000&route=/render", 1100, 800)
}

func (a *album) correctionPictures() {
	a.t.Helper()
	a.take("console-correct", "/console/tenants/acme/correct/top-up?meter=ai_credits", 1000, 800)
	a.fill("amount", "500")
	a.fill("reason", "goodwill, ticket 1250")
	a.click("Preview")
	a.shows("Nothing was changed yet")
	a.take("console-topup", "", 1000, 900)
	a.take("console-plan", "/console/tenants/umbrella/correct/plan", 1000, 800)
	a.take("console-catalogue", "/console/catalogue", 1100, 1400)
	a.open("/console/catalogue/edit")
	result(a.tab, chromedp.Evaluate[bool](`(() => { const t = document.querySelector("#text"); t.value = t.value.replace("amount: 20000", "amount: 15000"); return true })()`))
	a.click("Preview")
	a.shows("Who is affected")
	a.take("console-catalogue-edit", "", 1000, 700)
}

func (a *album) recordPictures() {
	a.t.Helper()
	a.take("console-events", "/console/events?tenant=acme", 1200, 760)
	a.take("console-webhooks", "/console/webhooks", 1000, 1000)
	a.clickAt(`//main//a[contains(., "127.0.0.1")]`)
	a.shows("Deliveries")
	a.take("console-webhook", "", 1200, 900)
	a.take("console-keys", "/console/keys", 1200, 500)
	a.take("console-audit", "/console/audit?tenant=acme", 1000, 640)
	a.take("console-proof", "/console/proof", 1100, 900)
}

// smallAndDark takes pictures of pages on a phone's screen and in dark colours.
func (a *album) smallAndDark() {
	a.t.Helper()
	a.take("console-phone", "/console/tenants/acme?meter=ai_credits", 390, 844)
	a.dark("dark")
	a.take("console-dark", "/console/tenants/acme?meter=api_calls", 1200, 900)
	a.dark("light")
}

// portalPictures takes pictures of the portal, which the users of a tenant see.
func (a *album) portalPictures() {
	a.t.Helper()
	for name, in := range map[string]struct {
		width, height          int64
		scheme, language, page string
	}{
		"portal": {1000, 1000, "light", "en", "?meter=api_calls"}, "portal-phone": {390, 844, "dark", "de", "?meter=api_calls"},
		"portal-statement": {900, 900, "light", "en", "statements/api_calls/last"},
	} {
		b := &album{tab: newChromium(a.t.(*testing.T), a.c, chromedp.Flag("lang", in.language), chromedp.Flag("accept-lang", in.language)), c: a.c, dir: a.dir}
		b.do(chromedp.EmulateViewport(in.width, in.height))
		b.dark(in.scheme)
		b.open(a.c.link(a.t, "acme", object{"return_url": "https://app.example/billing"}))
		b.take(name, strings.TrimPrefix(result(b.tab, chromedp.Location()), b.at)+in.page, in.width, in.height)
	}
}
