package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/testenv"
)

// pageBlock is a shell block of a page, with what its output must contain: the comments `<!-- expect: ... -->` that follow it.
type pageBlock struct {
	script string
	expect []string
}

func blocksOf(t *testing.T, page string) []pageBlock {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	expected := regexp.MustCompile(`<!-- expect: (.*?) -->`)
	var blocks []pageBlock
	for _, m := range regexp.MustCompile("(?ms)^```sh run\n(.*?)^```\n((?:<!-- expect: .*? -->\n)*)").FindAllStringSubmatch(string(text), -1) {
		block := pageBlock{script: m[1]}
		for _, e := range expected.FindAllStringSubmatch(m[2], -1) {
			block.expect = append(block.expect, e[1])
		}
		if len(block.expect) == 0 {
			t.Errorf("%s: a block expects nothing:\n%s", page, m[1])
		}
		blocks = append(blocks, block)
	}
	if len(blocks) == 0 {
		t.Fatalf("%s: no block", page)
	}
	return blocks
}

// runPage pastes the blocks of a page, one after the other, into a terminal beside a `quotasvc dev`, and looks for what they say they print.
func runPage(t *testing.T, page string, env ...string) {
	t.Helper()
	dir := t.TempDir()
	dev := launchDev(t, filepath.Join(dir, ".quotasvc"))
	const prelude = `set -eu -o pipefail
KEY=$(cat .quotasvc/admin.key)
export QUOTASVC_URL=$API QUOTASVC_KEY=$KEY
quotasvc() { env ` + asProgram + `=1 "$PROGRAM" "$@"; }
api() { curl -sS -m 20 -X "$1" "$API$2" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' "${@:3}"; echo; }
`
	for _, block := range blocksOf(t, page) {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		command := exec.CommandContext(ctx, "bash", "-c", prelude+strings.ReplaceAll(block.script, "http://127.0.0.1:8080", dev.api))
		command.Dir, command.Env = dir, append(append(os.Environ(), "API="+dev.api, "PROGRAM="+os.Args[0]), env...)
		out, err := command.CombinedOutput()
		cancel()
		if err != nil || strings.Contains(string(out), `"status":4`) {
			t.Fatalf("%s: %v\n%s\n%s", page, err, block.script, out)
		}
		for _, want := range block.expect {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: no %s in what this prints:\n%s\n%s", page, want, block.script, out)
			}
		}
	}
	dev.signal(syscall.SIGINT)
	dev.wait()
}

func TestPages_CommandLine_BlocksDoWhatTheySay(t *testing.T) {
	t.Parallel()
	runPage(t, "cli.md")
}

func TestPages_MonthEnd_BlocksDoWhatTheySay(t *testing.T) {
	t.Parallel()
	runPage(t, "recipes/month-end.md")
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
	runPage(t, "recipes/migrate-from-redis.md", "OLD_REDIS="+strings.Replace(old, "redis://:", "redis://default:", 1))
}
