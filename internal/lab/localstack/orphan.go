package localstack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
)

// stopOrphan stops a server whose owner has died. The caller holds the directory's lock. So if a process has the pid in
// pidFile and the working directory dir, the process is such a server. stopOrphan waits orphanGrace, because the kernel
// has already sent the server a signal to stop. Then it sends sig and waits until ctx ends. It ignores a pid that now
// belongs to another program.
func stopOrphan(ctx context.Context, pidFile, dir string, sig syscall.Signal, log *slog.Logger) error {
	f, err := os.Open(pidFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for a leftover server: %w", err)
	}
	pid := readPID(f)
	if err := f.Close(); err != nil {
		return fmt.Errorf("look for a leftover server: %w", err)
	}
	leftover := func() bool { return pid > 0 && alive(pid) && sameDir(workingDir(pid), dir) }
	if !leftover() {
		return nil
	}
	log.Info("waiting for a server of an earlier run to stop", "pid", pid, "dir", dir)
	grace, cancel := context.WithTimeout(ctx, orphanGrace)
	defer cancel()
	if poll(grace, func() bool { return !leftover() }) == nil {
		return nil
	}
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop the leftover server (pid %d) in %s: %w", pid, dir, err)
	}
	if err := poll(ctx, func() bool { return !leftover() }); err != nil {
		return fmt.Errorf("a server left over from an earlier run (pid %d) still uses %s: %w: stop it with `kill -INT %d`", pid, dir, err, pid)
	}
	return nil
}

// sameDir reports whether two paths are the same directory. It compares the paths if a directory cannot be examined.
func sameDir(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA != nil || errB != nil {
		return filepath.Clean(a) == filepath.Clean(b)
	}
	return os.SameFile(infoA, infoB)
}
