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

// staleAfter is the age at which an unused temporary directory counts as left behind.
// It is longer than a test run, so that a server that a running test has stopped
// keeps its data.
const staleAfter = 30 * time.Minute

// tempRoots returns the directories that TempDir tries, in order. TMPDIR has priority.
func tempRoots() []string {
	roots := []string{os.TempDir(), "/tmp", "/var/tmp"}
	if root, ok := memoryRoot(); ok && os.Getenv("TMPDIR") == "" {
		roots = slices.Insert(roots, 0, root)
	}
	return roots
}

// TempDir creates a temporary directory in which the run user can work: in memory if
// there is room and TMPDIR is not set, else below TMPDIR, else below a public
// directory if the run user cannot enter TMPDIR. The caller removes it. Servers get
// directories inside it and need no stand-in.
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
	// The caller owns the directory; the run user may pass through.
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

// RemoveStale removes the directories of killed processes: those made by TempDir with
// this prefix that are older than half an hour and in which no server holds a lock.
// It ignores errors, such as those about another user's directories.
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

// inUse reports whether a process holds dir's lock, or whether this is unknown.
func inUse(dir string) bool {
	f, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	if err != nil {
		return true // unknown
	}
	held := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
	_ = unlockFile(f) // nothing was written to the file
	return held
}
