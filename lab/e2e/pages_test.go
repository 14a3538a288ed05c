package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// pageService is a script for pages that expect a running `quotasvc dev`. It defines KEY, quotasvc and api in the
// shell. README.md defines KEY and api itself.
const pageService = `KEY=$(cat .quotasvc/admin.key)
export QUOTASVC_URL=$API QUOTASVC_KEY=$KEY
quotasvc() { "$PROGRAM" "$@"; }
api() {
	local answer
	answer=$(curl -sS -m 300 -w '\n%{http_code}' -X "$1" "$API$2" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' "${@:3}")
	STATUS=${answer##*$'\n'}
	echo "${answer%$'\n'*}"
}
answered() { [ "$STATUS" = "$1" ] || { echo "the status is $STATUS, not $1"; return 1; }; }
`

// openPage starts `quotasvc dev` without its demo and returns a terminal. The result `here` replaces the addresses in
// the pages with the addresses of this dev.
func openPage(t *testing.T, env ...string) (tty *terminal, here *strings.Replacer) {
	t.Helper()
	return openPageOf(t, launchDev, env...)
}

func openPageOf(t *testing.T, launch func(*testing.T, string) *introduction, env ...string) (tty *terminal, here *strings.Replacer) {
	t.Helper()
	dir := t.TempDir()
	dev := launch(t, filepath.Join(dir, ".quotasvc"))
	t.Cleanup(func() {
		dev.signal(syscall.SIGINT)
		dev.wait()
	})
	tty = openTerminal(t, dir, append(append(withoutSettings(os.Environ()), "API="+dev.api, "PROGRAM="+quotasvc(t)), env...))
	tty.paste(pageService)
	dev.roomInTheHour(t)
	return tty, strings.NewReplacer("http://127.0.0.1:8080", dev.api)
}

// runPage starts `quotasvc dev` and pastes the blocks of a page, one after the other, into a terminal. It checks that
// the blocks print the texts that the page expects.
func runPage(t *testing.T, page string, env ...string) {
	t.Helper()
	tty, here := openPage(t, env...)
	blocks := markedBlocks(t, page)
	for _, block := range blocks {
		tty.use(block.said(here))
	}
	assert.NotZero(t, expectations(blocks), "%s expects nothing", page)
	tty.leave()
}

// Each file of the page can be applied, and changes nothing the second time. The answer to each call has the status
// that is written behind the call.
func TestPages_Pricing_FilesApplyAndCallsAnswer(t *testing.T) {
	t.Parallel()
	tty, here := openPage(t)
	const apply = "quotasvc apply -f catalog.yaml\n"
	files, calls := 0, 0
	for _, block := range markedBlocks(t, "docs/pricing.md") {
		files += strings.Count(block.text, apply)
		calls += len(statusOf.FindAllString(block.text, -1))
		assert.Len(t, statusOf.FindAllString(block.text, -1), strings.Count("\n"+block.text, "\napi "),
			"not all calls have a status:\n%s", block.text)
		block.text = strings.Replace(block.text, apply, apply+"quotasvc apply -f catalog.yaml --dry-run --exit-code\n", 1)
		tty.use(block.said(here))
	}
	assert.True(t, files == 5 && calls >= 20, "%d files and %d calls", files, calls)
	assert.NotContains(t, tty.screen.String(), "\n! ", "a file warns:\n%s", tty.screen.tail())
	assert.Empty(t, tty.missing(tty.paste("quotasvc balance ada credits --json\n"), []string{`"remaining": 1,`}),
		"no credit of ada remains:\n%s", tty.screen.tail())
	tty.leave()
}

// everyCallSucceeds replaces the function api: a call that gets an error ends the terminal.
const everyCallSucceeds = `
call=$(declare -f api); eval "call${call#api}"
api() { call "$@"; [ "$STATUS" -lt 400 ] || { echo "status $STATUS: $*" >&2; return 1; }; }
`

// The examples of docs/api.md answer as written on what `make run` starts, and change nothing of its demo.
func TestPages_API_ExamplesAnswerBesideTheDemo(t *testing.T) {
	t.Parallel()
	for name, launch := range map[string]func(*testing.T, string) *introduction{"demo": launchDemo, "no demo": launchDev} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tty, here := openPageOf(t, launch)
			tty.paste(everyCallSucceeds)
			tty.paste("quotasvc export > before.yaml\n")
			calls := 0
			for _, block := range markedBlocks(t, "docs/api.md") {
				calls += strings.Count("\n"+block.text, "\napi ")
				tty.use(block.said(here))
			}
			assert.True(t, calls >= 80, "the page has only %d calls", calls)
			tty.paste("quotasvc apply -f before.yaml --dry-run --exit-code\n")
			tty.leave()
		})
	}
}

func TestPages_README_BlocksDoWhatTheySay(t *testing.T) {
	t.Parallel()
	runPage(t, "README.md")
}

func TestPages_CommandLine_BlocksDoWhatTheySay(t *testing.T) {
	t.Parallel()
	runPage(t, "docs/cli.md")
}

func TestPages_MonthEnd_BlocksDoWhatTheySay(t *testing.T) {
	t.Parallel()
	runPage(t, "docs/recipes/month-end.md")
}

func TestPages_MigrateFromRedis_CountersComeOverOnce(t *testing.T) {
	t.Parallel()
	programOf(t, "redis-cli")
	old := testenv.RedisURL(t)
	opts := testenv.Must(t).Get(redis.ParseURL(old))
	db := testenv.CloseAtEnd(t, redis.NewClient(opts))
	month := time.Now().UTC().Format(":2006-01")
	require.NoError(t, db.MSet(t.Context(), "usage:arbor"+month, 4212, "usage:basil"+month, 17).Err())
	// redis-cli treats an empty user name as a name, so the URL names the user default.
	runPage(t, "docs/recipes/migrate-from-redis.md", "OLD_REDIS="+strings.Replace(old, "redis://:", "redis://default:", 1))
}
