package containers

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

const (
	// envContainers is the environment variable that makes the tests run. `make test-containers` sets it: `1` uses
	// stand-ins, `pull` the images of a registry.
	envContainers = "QUOTASVC_TEST_CONTAINERS"

	// commandLimit is the time limit of one command. Only the build of the image takes minutes.
	commandLimit = 15 * time.Minute

	root = "../.."
)

func TestMain(m *testing.M) { testenv.Main(m) }

// pulls reports whether the tests use the images of a registry.
func pulls() bool { return os.Getenv(envContainers) == "pull" }

// needEngine skips the test without `make test-containers`.
func needEngine(t *testing.T) {
	t.Helper()
	if os.Getenv(envContainers) == "" {
		t.Skipf("make test-containers runs it: it sets %s", envContainers)
	}
}

// try runs a command in a directory, and returns its output and its error.
func try(t *testing.T, dir string, env []string, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	return tryFor(ctx, dir, env, name, args...)
}

func tryFor(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Minute
	err := cmd.Run()
	return strings.TrimSpace(out.String()), err
}

// docker runs a command of docker, which must succeed, and returns its output.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := try(t, ".", nil, "docker", args...)
	require.NoError(t, err, "docker %s:\n%s", strings.Join(args, " "), out)
	return out
}

// owned returns the lines of a listing of docker that have one of our labels.
func owned(t *testing.T, label string, listing ...string) []string {
	t.Helper()
	return strings.Fields(docker(t, append(listing, "--quiet", "--filter", "label="+label)...))
}
