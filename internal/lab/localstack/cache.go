package localstack

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// copyCached copies the cluster in the cache to dir and returns its password. If the cache is empty, copyCached first
// runs initdb and stores the result in the cache. A copy takes about 50 ms; initdb takes one to three seconds.
// Processes that run at the same time share one initdb.
func (p *Postgres) copyCached(ctx context.Context, dir, passwordFile string) (string, error) {
	if err := os.MkdirAll(p.cfg.Cache, 0o700); err != nil {
		return "", fmt.Errorf("cluster cache: %w", err)
	}
	unlock, err := lockFile(ctx, filepath.Join(p.cfg.Cache, lockName))
	if err != nil {
		return "", fmt.Errorf("cluster cache: %w", err)
	}
	defer unlock()
	kept := filepath.Join(p.cfg.Cache, p.cacheKey())
	text, err := os.ReadFile(filepath.Join(kept, "password"))
	if errors.Is(err, os.ErrNotExist) {
		return p.fillCache(ctx, kept, dir, passwordFile)
	}
	if err != nil {
		return "", fmt.Errorf("cluster cache: %w", err)
	}
	password := strings.TrimSpace(string(text))
	if err := writeSecret(passwordFile, password, p.as); err != nil {
		return "", err
	}
	if err := copyTree(filepath.Join(kept, "data"), dir, p.as); err != nil {
		return "", fmt.Errorf("copy the cached cluster: %w", err)
	}
	return password, nil
}

// fillCache runs initdb in dir and stores a copy in the cache. It also removes the clusters of other versions from
// the cache, because each has about 40 MB.
func (p *Postgres) fillCache(ctx context.Context, kept, dir, passwordFile string) (string, error) {
	p.password = rand.Text()
	if err := p.initdb(ctx, dir, passwordFile); err != nil {
		return "", err
	}
	old, err := filepath.Glob(filepath.Join(p.cfg.Cache, cachePrefix+"*"))
	if err != nil {
		return "", fmt.Errorf("cluster cache: %w", err)
	}
	for _, o := range old {
		if err := os.RemoveAll(o); err != nil {
			return "", fmt.Errorf("cluster cache: %w", err)
		}
	}
	unfinished := filepath.Join(p.cfg.Cache, cachePrefix+"unfinished")
	if err := os.Mkdir(unfinished, 0o700); err != nil {
		return "", fmt.Errorf("cluster cache: %w", err)
	}
	if err := copyTree(dir, filepath.Join(unfinished, "data"), runUser{}); err != nil {
		return "", fmt.Errorf("fill the cluster cache: %w", err)
	}
	if err := writeSecret(filepath.Join(unfinished, "password"), p.password, runUser{}); err != nil {
		return "", err
	}
	if err := os.Rename(unfinished, kept); err != nil {
		return "", fmt.Errorf("fill the cluster cache: %w", err)
	}
	return p.password, nil
}

const cachePrefix = "cluster-"

// cacheKey returns the name of the cached cluster. It contains a hash of the version and the options of initdb.
func (p *Postgres) cacheKey() string {
	shape := strings.Join(append(initdbArgs(p.cfg.Durable), p.bin.Dir, p.bin.Version), "\x00")
	sum := sha256.Sum256([]byte(shape))
	return cachePrefix + hex.EncodeToString(sum[:8])
}

// lockFile waits for the exclusive lock of the file at path, until ctx ends.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	err = poll(ctx, func() bool { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { _ = unlockFile(f) }, nil // nothing was written to the file
}

// copyTree copies a cluster's files with their modes, and makes u the owner of the copy. A new cluster contains only
// directories and plain files.
func copyTree(from, to string, u runUser) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case info.IsDir():
			err = os.Mkdir(target, info.Mode().Perm())
		case info.Mode().IsRegular():
			err = copyFile(path, target, info.Mode().Perm())
		default:
			err = fmt.Errorf("%s is neither a directory nor a plain file", path)
		}
		if err == nil && !u.zero() {
			err = os.Chown(target, int(u.uid), int(u.gid))
		}
		return err
	})
}

func copyFile(from, to string, mode os.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
