package deploy_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMakefile_NoHome_GoHasADirectory: without HOME the go command finds no place for modules and compiled packages.
func TestMakefile_NoHome_GoHasADirectory(t *testing.T) {
	t.Parallel()
	const target = "--eval=shown:; @echo $$HOME; echo $$GOFLAGS"
	cmd := exec.CommandContext(t.Context(), "make", "--silent", "--no-print-directory", target, "shown")
	cmd.Dir = root
	cmd.Env = slices.DeleteFunc(cmd.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "HOME=") })
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, 2, "%s", out)
	assert.True(t, strings.HasSuffix(lines[0], "/bin/home"), "HOME is %q", lines[0])
	assert.Contains(t, lines[1], "-modcacherw", "make clean could not remove the modules")
}
