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

// stopOrphan stops a server that survived its owner. The caller holds the
// directory's lock, so a process in pidFile that works in dir must be a
// leftover. stopOrphan waits orphanGrace for the stop that the kernel has
// started, then sends sig, then waits until ctx ends. It ignores a pid that
// another program has now.
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

// sameDir compares two directories by identity, or by name if one was deleted.
func sameDir(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA != nil || errB != nil {
		return filepath.Clean(a) == filepath.Clean(b)
	}
	return os.SameFile(infoA, infoB)
}
