package localstack

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Between its fork and its exec, a child of this process has the lock file open. Without an explicit unlock, a stopped
// server could not start again during that time. Its directory would seem to be in use by another quotasvc dev.
func TestLock_FileOpenInChild_ReleasedAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	held, err := lockDir(dir)
	require.NoError(t, err)
	child, err := syscall.Dup(int(held.file.Fd()))
	require.NoError(t, err)
	defer func() { _ = syscall.Close(child) }()
	require.NoError(t, held.release())
	again, err := lockDir(dir)
	require.NoError(t, err, "the lock was released")
	assert.NoError(t, again.release())
}
