package localstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// staleAfter is the age after which RemoveStale removes a temporary directory that no server uses. It is longer than a
// test run, because a running test may have stopped its server and still need the data.
const staleAfter = 30 * time.Minute

// tempRoots returns the directories that TempDir tries, in order. TMPDIR has priority.
func tempRoots() []string {
	roots := []string{os.TempDir(), "/tmp", "/var/tmp"}
	if root, ok := memoryRoot(); ok && os.Getenv("TMPDIR") == "" {
		roots = slices.Insert(roots, 0, root)
	}
	return roots
}

// TempDir creates a temporary directory in which the run user can work. Without TMPDIR, it first tries a directory in
// memory, if there is enough space. Then it tries TMPDIR (/tmp if not set). If the run user cannot enter that
// directory, it tries /tmp and /var/tmp. The caller removes the result. Servers in its subdirectories need no stand-in.
func TempDir(ctx context.Context, prefix string, bin PostgresBinaries) (string, error) {
	u, err := chooseRunUser("")
	if err != nil {
		return "", err
	}
	var errs error
	for _, root := range tempRoots() {
		dir, err := tempDirIn(ctx, root, prefix, u, bin)
		if err == nil {
			return dir, nil
		}
		errs = errors.Join(errs, err)
	}
	return "", fmt.Errorf("no temporary directory that %s can use: %w", u, errs)
}

func tempDirIn(ctx context.Context, root, prefix string, u runUser, bin PostgresBinaries) (string, error) {
	dir, err := os.MkdirTemp(root, prefix)
	if err != nil {
		return "", err
	}
	// The caller owns the directory. The run user may only pass through it.
	probe := filepath.Join(dir, "probe")
	if err = os.Chmod(dir, 0o711); err == nil {
		err = claim(ctx, probe, u, filepath.Join(bin.Dir, "postgres"))
	}
	if err == nil {
		err = os.Remove(probe)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// RemoveStale removes the directories that killed processes have left. It looks at the directories that TempDir has
// created with this prefix. It removes a directory that is older than staleAfter if no server in it holds a lock.
// RemoveStale ignores errors, for example errors about another user's directories.
func RemoveStale(prefix string) {
	for _, root := range tempRoots() {
		// Glob's only error is a malformed pattern.
		dirs, _ := filepath.Glob(filepath.Join(root, prefix+"*"))
		for _, dir := range dirs {
			info, err := os.Stat(dir)
			if err == nil && time.Since(info.ModTime()) > staleAfter && !anyInUse(dir) {
				_ = os.RemoveAll(dir)
			}
		}
	}
}

// anyInUse reports whether a server holds the lock of one of dir's subdirectories.
func anyInUse(dir string) bool {
	// Glob's only error is a malformed pattern.
	locks, _ := filepath.Glob(filepath.Join(dir, "*", lockName))
	return slices.ContainsFunc(locks, func(path string) bool { return inUse(filepath.Dir(path)) })
}

// inUse reports whether a process holds dir's lock. It also returns true if this cannot be determined.
func inUse(dir string) bool {
	f, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	if err != nil {
		return true // unknown, so the directory counts as in use
	}
	held := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
	_ = unlockFile(f) // nothing was written to the file
	return held
}
