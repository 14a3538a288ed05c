package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/testenv"
)

// pageService is what pages that are pasted beside a `quotasvc dev` expect of a shell. README.md defines KEY and api itself.
const pageService = `KEY=$(cat .quotasvc/admin.key)
export QUOTASVC_URL=$API QUOTASVC_KEY=$KEY
quotasvc() { env ` + asProgram + `=1 "$PROGRAM" "$@"; }
api() { curl -sS -m 20 -X "$1" "$API$2" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' "${@:3}"; echo; }
`

// runPage pastes the blocks of a page, one after the other, into a terminal beside a `quotasvc dev`, and looks for what they say they print.
func runPage(t *testing.T, page string, env ...string) {
	t.Helper()
	dir := t.TempDir()
	dev := launchDev(t, filepath.Join(dir, ".quotasvc"))
	tty := openTerminal(t, dir, append(append(withoutSettings(os.Environ()), "API="+dev.api, "PROGRAM="+os.Args[0]), env...))
	tty.paste(pageService)
	blocks := markedBlocks(t, page)
	for _, block := range blocks {
		tty.use(block.said(strings.NewReplacer("http://127.0.0.1:8080", dev.api)))
	}
	if expectations(blocks) == 0 {
		t.Errorf("%s expects nothing", page)
	}
	tty.leave()
	dev.signal(syscall.SIGINT)
	dev.wait()
}

func TestPages_README_BlocksDoWhatTheySay(t *testing.T) {
	t.Parallel()
	awaitRoomInTheHour()
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
	opts, err := redis.ParseURL(old)
	if err != nil {
		t.Fatal(err)
	}
	db := redis.NewClient(opts)
	defer func() { _ = db.Close() }()
	month := time.Now().UTC().Format(":2006-01")
	if err := db.MSet(t.Context(), "usage:acme"+month, 4212, "usage:globex"+month, 17).Err(); err != nil {
		t.Fatal(err)
	}
	// redis-cli takes an empty name for a name.
	runPage(t, "docs/recipes/migrate-from-redis.md", "OLD_REDIS="+strings.Replace(old, "redis://:", "redis://default:", 1))
}
