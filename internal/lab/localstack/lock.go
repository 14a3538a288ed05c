package localstack

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lockName is the name of a file in each server's directory. While a process holds the flock of this file, the
// directory is in use. The kernel releases the lock when the process dies, so the lock is never stale. The file
// contains the pid only for the error message.
const lockName = "lock"

// InUseError reports a directory that another process uses.
type InUseError struct {
	Dir string
	PID int // process id of the user of the directory; 0: unknown
}

func (e *InUseError) Error() string {
	if e.PID == 0 {
		return "another quotasvc dev is using " + e.Dir
	}
	return fmt.Sprintf("another quotasvc dev (pid %d) is using %s: stop it first (kill -INT %d), or work in another directory", e.PID, e.Dir, e.PID)
}

// dirLock is the lock of a directory, held by this process.
type dirLock struct{ file *os.File }

// lockDir takes dir's lock or fails with *InUseError. It never waits.
func lockDir(dir string) (*dirLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, explainPermission(dir, err))
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		pid := readPID(f)
		closeErr := f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &InUseError{Dir: dir, PID: pid}
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), closeErr)
	}
	if err := errors.Join(f.Truncate(0), writePID(f)); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), unlockFile(f))
	}
	return &dirLock{file: f}, nil
}

// release releases the lock. It does not remove the file: otherwise two processes could lock two files of the same
// name.
func (l *dirLock) release() error {
	if err := unlockFile(l.file); err != nil {
		return fmt.Errorf("release lock: %w", err)
	}
	return nil
}

// unlockFile releases the lock on f and closes f. Close alone is not enough. This process may start a child at the same
// time. The child has f open between its fork and its exec, and holds the lock until the exec.
func unlockFile(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

func writePID(f *os.File) error {
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func readPID(r io.ReaderAt) int {
	text, err := io.ReadAll(io.NewSectionReader(r, 0, 32))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return pid
}

// explainPermission adds a remedy to err if err means "permission denied".
func explainPermission(dir string, err error) error {
	if !errors.Is(err, os.ErrPermission) {
		return err
	}
	uid, _, statErr := ownerOf(dir)
	if statErr != nil {
		return err
	}
	return fmt.Errorf("%w: it belongs to uid %d (you are %d): run as that user, or move the directory away to start from scratch", err, uid, os.Geteuid())
}
