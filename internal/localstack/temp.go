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

// staleAfter is the age from which an unused temporary directory counts as left
// behind: longer than a test run may take, so that a server which a running test
// has stopped for a while keeps its data.
const staleAfter = 30 * time.Minute

// tempRoots are where TempDir looks for room, best first. TMPDIR is the user's word.
func tempRoots() []string {
	roots := []string{os.TempDir(), "/tmp", "/var/tmp"}
	if root, ok := memoryRoot(); ok && os.Getenv("TMPDIR") == "" {
		roots = slices.Insert(roots, 0, root)
	}
	return roots
}

// TempDir makes a temporary directory in which the user that PostgreSQL runs as
// can work: in memory if there is room and TMPDIR does not say otherwise, else
// below TMPDIR, else, if that is closed to the user, below a public directory.
// The caller removes it. Servers get directories inside it and need no stand-in.
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
	// The directory itself stays the caller's; the servers' user passes through.
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

// RemoveStale removes what processes that were killed left behind: directories
// made by TempDir with this prefix that are over half an hour old and in which no
// server holds a lock. It removes what it can and reports nothing: tidying is
// not worth failing for, and another user's leftovers are not ours to remove.
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

// anyInUse reports whether a server in one of dir's subdirectories holds its lock.
func anyInUse(dir string) bool {
	// Glob's only error is a malformed pattern.
	locks, _ := filepath.Glob(filepath.Join(dir, "*", lockName))
	return slices.ContainsFunc(locks, func(path string) bool { return inUse(filepath.Dir(path)) })
}

// inUse reports whether somebody holds dir's lock, or might.
func inUse(dir string) bool {
	f, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	if err != nil {
		return true // not ours to judge
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}
