package containers

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// project is the name of the compose project, and its label.
const (
	project      = "quotasvc-test"
	projectLabel = "com.docker.compose.project=" + project
)

// clone is a copy of the repository in which `docker compose up` runs.
type clone struct {
	t    *testing.T
	dir  string
	api  string // address of the API on this machine
	env  []string
	page readmePage

	up    *exec.Cmd
	said  bytes.Buffer
	ended chan struct{}
}

// readmePage has what README.md tells a newcomer with containers to do.
type readmePage struct {
	secrets string // makes .env
	up      string // starts the services
	key     string // reads the key
	calls   string // in the other terminal
	expect  []string
}

var (
	startBlock  = regexp.MustCompile("(?s)```sh\n(for name in [^\n]*\n)(docker compose up --build\n)(KEY=[^`]*?)```")
	callsBlock  = regexp.MustCompile("(?s)```sh run\nKEY=[^\n]*\n(debit\\(\\)[^`]*?)```\n((?:<!-- expect: [^\n]*\n)+)")
	expectation = regexp.MustCompile(`<!-- expect: (.*?) -->`)
)

func readReadme(t *testing.T) readmePage {
	t.Helper()
	text := string(testenv.Must(t).Get(os.ReadFile(filepath.Join(root, "README.md"))))
	start, calls := startBlock.FindStringSubmatch(text), callsBlock.FindStringSubmatch(text)
	require.True(t, start != nil && calls != nil, "README.md has no lines for containers")
	p := readmePage{secrets: start[1], up: start[2], key: start[3], calls: calls[1]}
	for _, e := range expectation.FindAllStringSubmatch(calls[2], -1) {
		p.expect = append(p.expect, e[1])
	}
	return p
}

// freePort returns a port of this machine that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l := testenv.Must(t).Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// newClone makes a clone, with the override that names the stand-ins and free ports.
func newClone(t *testing.T) *clone {
	t.Helper()
	api, ops := freePort(t), freePort(t)
	c := &clone{
		t: t, dir: t.TempDir(), api: fmt.Sprintf("http://127.0.0.1:%d", api),
		env:  []string{"COMPOSE_PROJECT_NAME=" + project},
		page: readReadme(t), ended: make(chan struct{}),
	}
	require.NoError(t, testenv.CopyClone(root, c.dir))
	path := filepath.Join(c.dir, "docker-compose.override.yml")
	require.NoError(t, os.WriteFile(path, []byte(override(api, ops)), 0o600))
	return c
}

// override returns a compose file that changes names and ports, and nothing else.
func override(api, ops int) string {
	var out strings.Builder
	out.WriteString("services:\n")
	for _, service := range []string{"migrate", "quotasvc", "roll", "demo"} {
		fmt.Fprintf(&out, "  %s:\n    image: %s\n", service, serviceImage)
		if !pulls() {
			const build = "    build: {network: none, args: {BUILD_IMAGE: %q, BASE_IMAGE: %q}}\n"
			fmt.Fprintf(&out, build, goImage, staticImage)
		}
		if service == "quotasvc" {
			fmt.Fprintf(&out, "    ports: !override [\"127.0.0.1:%d:8080\", \"127.0.0.1:%d:9090\"]\n", api, ops)
		}
	}
	if !pulls() {
		fmt.Fprintf(&out, "  postgres: {image: %q}\n  redis: {image: %q}\n", postgresImage, redisImage)
	}
	return out.String()
}

// compose runs a command of docker compose in the clone.
func (c *clone) compose(args ...string) string {
	c.t.Helper()
	out, err := try(c.t, c.dir, c.env, "docker", append([]string{"compose"}, args...)...)
	require.NoError(c.t, err, "docker compose %s:\n%s", strings.Join(args, " "), out)
	return out
}

// start pastes the lines of README.md into a terminal, in which the services then run, and waits until they are ready.
func (c *clone) start() {
	c.t.Helper()
	out, err := try(c.t, c.dir, c.env, "bash", "-euc", c.page.secrets)
	require.NoError(c.t, err, "%s", out)
	c.t.Cleanup(func() {
		out, err := tryFor(context.Background(), c.dir, c.env, "docker", "compose", "down", "--volumes", "--timeout=30")
		assert.NoError(c.t, err, "docker compose down: %s", out)
	})
	c.t.Log("docker compose build: one to two minutes")
	c.compose("build") // alone, because it may take long
	c.up = exec.CommandContext(context.WithoutCancel(c.t.Context()), "bash", "-euc", "exec "+c.page.up)
	c.up.Dir, c.up.Env = c.dir, append(os.Environ(), c.env...)
	c.up.Stdout, c.up.Stderr = &c.said, &c.said
	c.up.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(c.t, c.up.Start())
	go func() {
		_ = c.up.Wait()
		close(c.ended)
	}()
	c.t.Cleanup(func() {
		<-c.interrupt()
		if c.t.Failed() {
			c.t.Logf("docker compose up:\n%s", c.said.String())
		}
	})
	c.waitFor("the services", func() bool { return c.healthy("quotasvc") && c.exited("demo") })
}

// interrupt sends what Ctrl-C sends. The channel is closed when the services have stopped.
func (c *clone) interrupt() <-chan struct{} {
	_ = c.up.Process.Signal(syscall.SIGINT) // without a terminal, docker passes it on to its plugin
	return c.ended
}

// waitFor waits until a condition holds. It gives up if the services have ended.
func (c *clone) waitFor(what string, holds func() bool) {
	c.t.Helper()
	c.t.Log("waiting for", what)
	testenv.Eventually(c.t, func() bool {
		select {
		case <-c.ended:
			c.t.Fatal("docker compose up has ended while the test waited for ", what)
		default:
		}
		return holds()
	}, what)
}

// inspect returns a property of a service's container, or nothing if there is no container.
func (c *clone) inspect(service, format string) string {
	out, err := try(c.t, c.dir, c.env, "docker", "inspect", "--format", format, project+"-"+service+"-1")
	if err != nil {
		return ""
	}
	return out
}

func (c *clone) healthy(service string) bool {
	return c.inspect(service, "{{.State.Health.Status}}") == "healthy"
}

func (c *clone) exited(service string) bool {
	return c.inspect(service, "{{.State.Status}} {{.State.ExitCode}}") == "exited 0"
}

// paste runs lines of README.md in the other terminal. The calls go to the clone's own port.
func (c *clone) paste(lines string) string {
	c.t.Helper()
	text := strings.ReplaceAll(c.page.key+lines, "http://127.0.0.1:8080", c.api)
	out, err := try(c.t, c.dir, c.env, "bash", "-euc", text)
	require.NoError(c.t, err, "%s", out)
	return out
}
