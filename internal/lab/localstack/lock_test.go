package localstack

import (
	"syscall"
	"testing"
)

// A child of this process has the lock's file open between its fork and its exec. Without an explicit unlock, a stopped
// server could not start again during that time: its directory would seem to be in use by another quotasvc dev.
func TestLock_FileOpenInChild_ReleasedAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	held, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	child, err := syscall.Dup(int(held.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(child) }()
	if err := held.release(); err != nil {
		t.Fatal(err)
	}
	again, err := lockDir(dir)
	if err != nil {
		t.Fatal("the lock was released:", err)
	}
	if err := again.release(); err != nil {
		t.Error(err)
	}
}
