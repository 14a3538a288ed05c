package localstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// runUser is the user that a PostgreSQL server runs as. The zero value is the caller.
type runUser struct {
	name string
	uid  uint32
	gid  uint32
}

// zero reports whether the server runs as the caller. Root (uid 0) is never a run user.
func (u runUser) zero() bool { return u.uid == 0 }

func (u runUser) String() string {
	if u.zero() {
		return "the current user"
	}
	return fmt.Sprintf("user %s (uid %d)", u.name, u.uid)
}

// unprivilegedUsers lists the users that are tried, in order. The user postgres exists if a package manager has
// installed PostgreSQL. The user nobody exists on every system.
var unprivilegedUsers = []string{"postgres", "nobody"}

// chooseRunUser chooses the user that runs the server in dir. If the caller is root and the data directory exists,
// the user is the owner of the data directory.
func chooseRunUser(dir string) (runUser, error) {
	if os.Geteuid() != 0 {
		return runUser{}, nil
	}
	if uid, gid, err := ownerOf(dir); err == nil && uid != 0 {
		u := runUser{name: strconv.Itoa(int(uid)), uid: uid, gid: gid}
		if known, err := user.LookupId(u.name); err == nil {
			u.name = known.Username
		}
		return u, nil
	}
	for _, name := range unprivilegedUsers {
		known, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(known.Uid, 10, 32)
		if err != nil || uid == 0 {
			continue
		}
		gid, err := strconv.ParseUint(known.Gid, 10, 32)
		if err != nil {
			continue
		}
		return runUser{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return runUser{}, fmt.Errorf("PostgreSQL refuses to run as root and none of the users %q exists: run as an ordinary user, or create one of them", unprivilegedUsers)
}

func ownerOf(path string) (uid, gid uint32, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, fmt.Errorf("owner of %s: %w", path, err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, fmt.Errorf("owner of %s: not known on this system", path)
	}
	return st.Uid, st.Gid, nil
}

// errUnreachable is the error for a directory that the run user cannot use.
var errUnreachable = errors.New("out of reach")

// claim creates the directory dir, which is private to u. It runs the server's binary in dir as u to check that u can
// work there. If u cannot, claim removes the directories that it has created and returns errUnreachable.
func claim(ctx context.Context, dir string, u runUser, postgres string) error {
	if u.zero() {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create data directory: %w", err)
		}
		return nil
	}
	// If the user cannot run the binary even in /, dir is not the cause.
	version := command{path: postgres, args: []string{"--version"}, dir: "/", as: u}
	if _, err := runTool(ctx, version); err != nil {
		return fmt.Errorf("run PostgreSQL as %s: %w", u, err)
	}
	made, err := mkdirs(dir)
	if err != nil {
		return err
	}
	if err := own(dir, u); err != nil {
		return errors.Join(errUnreachable, err, removeDirs(made))
	}
	version.dir = dir
	if _, err := runTool(ctx, version); err != nil {
		return errors.Join(errUnreachable, err, removeDirs(made))
	}
	return nil
}

// own makes u the owner of dir, and then reads the owner, because some mounts ignore a change of the owner.
func own(dir string, u runUser) error {
	if err := os.Chown(dir, int(u.uid), int(u.gid)); err != nil {
		return fmt.Errorf("give %s to %s: %w", dir, u, err)
	}
	if uid, _, err := ownerOf(dir); err != nil || uid != u.uid {
		return errors.Join(fmt.Errorf("give %s to %s: the file system ignores it", dir, u), err)
	}
	return nil
}

// mkdirs creates directories like MkdirAll, and returns the directories that it has created, the innermost first.
// Everyone can enter the parents of dir, because the run user must pass through them. Only dir itself contains
// secrets.
func mkdirs(dir string) ([]string, error) {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		_, err := os.Stat(d)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("create data directory: %w", err)
		}
		missing = append(missing, d)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		mode := os.FileMode(0o711)
		if i == 0 {
			mode = 0o700
		}
		if err := os.Mkdir(missing[i], mode); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("create data directory: %w", err)
		}
		// The umask reduces Mkdir's mode. With a umask of 077, the run user could not enter the directory.
		if err := os.Chmod(missing[i], mode); err != nil {
			return nil, fmt.Errorf("create data directory: %w", err)
		}
	}
	return missing, nil
}

func removeDirs(dirs []string) error {
	var errs error
	for _, d := range dirs {
		if err := os.Remove(d); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) {
			errs = errors.Join(errs, err)
		}
	}
	return errs
}
