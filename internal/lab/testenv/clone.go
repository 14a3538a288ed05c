package testenv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// CopyClone copies the repository at root into a directory, as a clone of its next commit has it: the files that git
// tracks, and new files that it does not ignore.
func CopyClone(root, dir string) error {
	list := exec.CommandContext(context.Background(), "git", "-C", root, "ls-files", "-coz", "--exclude-standard")
	names, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the files of the repository: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		err := copyFile(filepath.Join(root, name), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // deleted, and not yet committed
			return fmt.Errorf("copy the repository: %w", err)
		}
	}
	return nil
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // as a clone has it
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}
