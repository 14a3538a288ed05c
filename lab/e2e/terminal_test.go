package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// pageBlock is a code block of a page. The words after its language mark it for tests:
//
//	sh run           is pasted into a terminal
//	sh run again     is pasted until it prints the expected texts: the service may show them a moment later
//	js file=app.mjs  is written into the directory of the terminal; any language
//
// The comments `<!-- expect: ... -->` after a block contain the texts that the terminal must then show, in any order.
// A comment of three digits behind a call of the shell function api is the expected status of the answer.
type pageBlock struct {
	language string
	marks    map[string]string
	text     string
	expect   []string
}

func (b *pageBlock) has(mark string) bool { _, ok := b.marks[mark]; return ok }

// said returns the block with the addresses and ports of this test instead of those of the page.
func (b pageBlock) said(here *strings.Replacer) *pageBlock {
	b.text = here.Replace(b.text)
	b.expect = slices.Clone(b.expect)
	for i := range b.expect {
		b.expect[i] = here.Replace(b.expect[i])
	}
	return &b
}

var (
	fencedBlock = regexp.MustCompile("(?ms)^```(\\w+) ([^\n`]+)\n(.*?)^```\n((?:<!-- expect: .*? -->\n)*)")
	expectation = regexp.MustCompile(`<!-- expect: (.*?) -->`)
	statusOf    = regexp.MustCompile(`(?m)^(api .*\S) +# (\d{3})$`)
)

// markedBlocks returns the marked blocks of a page. The path of the page is absolute, or relative to the root of the
// repository.
func markedBlocks(t *testing.T, page string) []pageBlock {
	t.Helper()
	if !filepath.IsAbs(page) {
		page = filepath.Join("../..", page)
	}
	text := testenv.Must(t).Get(os.ReadFile(page))
	var blocks []pageBlock
	for _, m := range fencedBlock.FindAllStringSubmatch(string(text), -1) {
		block := pageBlock{language: m[1], text: m[3], marks: map[string]string{}}
		for _, mark := range strings.Fields(m[2]) {
			name, value, _ := strings.Cut(mark, "=")
			block.marks[name] = value
		}
		for _, e := range expectation.FindAllStringSubmatch(m[4], -1) {
			block.expect = append(block.expect, e[1])
		}
		blocks = append(blocks, block)
	}
	assert.Equal(t, strings.Count(string(text), "<!-- expect: "), expectations(blocks),
		"%s: not all expectations follow a marked block", page)
	return blocks
}

func expectations(blocks []pageBlock) (n int) {
	for i := range blocks {
		n += len(blocks[i].expect)
	}
	return n
}

// terminal is a running shell. A pasted script uses the directory, the variables and the functions that earlier
// scripts have set. If a script fails, the test ends.
type terminal struct {
	t       *testing.T
	in      io.WriteCloser
	cmd     *exec.Cmd
	screen  logBuffer
	ended   chan struct{}
	scratch string
	pasted  int
}

// daemonsKeep is the time limit of the wait for output after the end of the shell, because a daemon may keep the
// shell's output open.
const daemonsKeep = 15 * time.Second

// openTerminal starts a shell in dir. When the shell ends, its background processes end as well.
func openTerminal(t *testing.T, dir string, env []string) *terminal {
	t.Helper()
	tty := &terminal{t: t, ended: make(chan struct{}), scratch: t.TempDir(), cmd: exec.Command(programOf(t, "bash"))}
	tty.cmd.Dir, tty.cmd.Env = dir, env
	tty.cmd.Stdout, tty.cmd.Stderr = &tty.screen, &tty.screen
	tty.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	tty.cmd.WaitDelay = daemonsKeep
	tty.in = testenv.Must(t).Get(tty.cmd.StdinPipe())
	require.NoError(t, tty.cmd.Start())
	go func() {
		_ = tty.cmd.Wait() // the status is in ProcessState
		close(tty.ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-tty.cmd.Process.Pid, syscall.SIGKILL)
		if <-tty.ended; t.Failed() {
			t.Log(tty.screen.tail())
		}
	})
	tty.paste("set -eu -o pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n")
	return tty
}

// paste pastes a script and waits until it has ended. It returns the position in the output at which the script's
// output begins. If the script fails, the test fails.
func (tty *terminal) paste(script string) (begin int) {
	tty.t.Helper()
	tty.pasted++
	file := filepath.Join(tty.scratch, fmt.Sprintf("%d.sh", tty.pasted))
	require.NoError(tty.t, os.WriteFile(file, []byte(script), 0o600))
	begin = len(tty.screen.String())
	done := fmt.Sprintf("-- pasted %d --", tty.pasted)
	_, err := fmt.Fprintf(tty.in, ". '%s' </dev/null\n{ set +x; } 2>/dev/null; printf '\\n-- pasted %%d --\\n' %d\n", file, tty.pasted)
	require.False(tty.t, err != nil && !errors.Is(err, syscall.EPIPE), err)
	testenv.Eventually(tty.t, func() bool {
		select {
		case <-tty.ended:
			tty.t.Fatalf("%s\n%s\n%s", tty.cmd.ProcessState, script, tailOf(tty.screen.String()[begin:], 8000))
		default:
		}
		return strings.Contains(tty.screen.String()[begin:], done)
	}, "the end of ", script)
	return begin
}

// missing returns the expected texts that the output from the position `begin` on does not contain.
func (tty *terminal) missing(begin int, expect []string) (missing []string) {
	shown := tty.screen.String()[begin:]
	for _, want := range expect {
		if !strings.Contains(shown, want) {
			missing = append(missing, want)
		}
	}
	return missing
}

// use pastes a block, writes it into a file, or skips it, as the block's marks require.
func (tty *terminal) use(block *pageBlock) {
	tty.t.Helper()
	switch file, isFile := block.marks["file"]; {
	case isFile:
		path := filepath.Join(tty.scratch, filepath.Base(file))
		require.NoError(tty.t, os.WriteFile(path, []byte(block.text), 0o600))
		tty.paste(fmt.Sprintf("cp '%s' '%s'\n", path, file))
	case block.has("run"):
		tty.run(block)
	}
}

func (tty *terminal) run(block *pageBlock) {
	tty.t.Helper()
	script := statusOf.ReplaceAllString(block.text, "$1\nanswered $2")
	begin := tty.paste(script)
	testenv.Eventually(tty.t, func() bool {
		there := len(tty.missing(begin, block.expect)) == 0
		if !there && block.has("again") {
			begin = tty.paste(script)
		}
		return there
	}, fmt.Sprintf("%q in what this prints:\n%s", block.expect, script))
	const refused = `"status":4`
	if shown := tty.screen.String()[begin:]; strings.Contains(shown, refused) && script == block.text && !strings.Contains(strings.Join(block.expect, "\n"), refused) {
		tty.t.Fatalf("this was refused:\n%s\n%s", script, tailOf(shown, 8000))
	}
}

// leave closes the terminal and waits until its shell has ended.
func (tty *terminal) leave() {
	tty.t.Helper()
	_ = tty.in.Close()
	testenv.Receive(tty.t, tty.ended)
}
