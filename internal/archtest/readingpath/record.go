package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/quotasvc/quotasvc/internal/localstack"
)

// recordVariable names the directory of the records to the recorder.
const recordVariable = "QUOTASVC_RECORD"

//go:embed testdata/recorder.go
var recorder []byte

// build compiles the service and the recorder with a counter for each block of this module.
func build(ctx context.Context, root, binary string) error {
	work, err := addRecorder(root)
	if err != nil {
		return fmt.Errorf("copy the main package: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-cover", "-covermode=atomic", "-coverpkg="+module+"/...",
		"-o", binary, "./cmd/quotasvc")
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build with counters: %w\n%s", err, out)
	}
	return nil
}

// addRecorder returns a directory with this module and, in its main package, the recorder. The main package is a copy and
// the rest are links. The directory is the same in each run, so that Go's build cache works; runs that use it at once write
// the same.
func addRecorder(root string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	work := filepath.Join(cache, "quotasvc", fmt.Sprintf("reading-path-%x", sha256.Sum256([]byte(root)))[:24])
	product := filepath.Join(work, "cmd", "quotasvc")
	if err := os.MkdirAll(product, 0o700); err != nil {
		return "", err
	}
	top, err := os.ReadDir(root)
	if err != nil {
		return "", err
	}
	for _, e := range top {
		if e.Name() == "cmd" || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		err := os.Symlink(filepath.Join(root, e.Name()), filepath.Join(work, e.Name()))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
	}
	return work, copyPackage(filepath.Join(root, "cmd", "quotasvc"), product)
}

// copyPackage makes to a copy of from without its tests and with the recorder.
func copyPackage(from, to string) error {
	wanted := map[string][]byte{"recorder.go": recorder}
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.IsDir() || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		if wanted[f.Name()], err = os.ReadFile(filepath.Join(from, f.Name())); err != nil {
			return err
		}
	}
	present, err := os.ReadDir(to)
	if err != nil {
		return err
	}
	for _, f := range present {
		if wanted[f.Name()] == nil {
			err = errors.Join(err, os.Remove(filepath.Join(to, f.Name())))
		}
	}
	for name, text := range wanted {
		old, missing := os.ReadFile(filepath.Join(to, name))
		if missing != nil || !bytes.Equal(old, text) {
			err = errors.Join(err, os.WriteFile(filepath.Join(to, name), text, 0o600))
		}
	}
	return err
}

// record runs the binary, which writes the counters of an idle window, debits and checks into directories of dir.
func record(ctx context.Context, binary, dir, databaseURL, redisURL string) error {
	atExit := filepath.Join(dir, "exit") // Go also writes counters when the program ends; they are not used
	if err := os.MkdirAll(atExit, 0o700); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, binary)
	cmd.Env = append(os.Environ(), recordVariable+"="+dir, "GOCOVERDIR="+atExit,
		"QUOTASVC_DATABASE_URL="+databaseURL, "QUOTASVC_REDIS_URL="+redisURL)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("record: %w\n%s", err, out)
	}
	return nil
}

// servers are a PostgreSQL and a Redis for one run.
type servers struct {
	dir      string
	postgres *localstack.Postgres
	redis    *localstack.Redis
}

func startServers(ctx context.Context) (_ *servers, err error) {
	const prefix = "quotasvc-reading-data-"
	search := localstack.SystemSearch()
	programs, err := search.Postgres(ctx, 0)
	if err != nil {
		return nil, err
	}
	localstack.RemoveStale(prefix)
	s := &servers{}
	if s.dir, err = localstack.TempDir(ctx, prefix, programs); err != nil {
		return nil, err
	}
	if s.postgres, err = localstack.StartPostgres(ctx, localstack.PostgresConfig{Dir: filepath.Join(s.dir, "postgres")}); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	if s.redis, err = localstack.StartRedis(ctx, localstack.RedisConfig{Dir: filepath.Join(s.dir, "redis")}); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *servers) stop() error {
	var errs []error
	if s.postgres != nil {
		errs = append(errs, s.postgres.Kill())
	}
	if s.redis != nil {
		errs = append(errs, s.redis.Kill())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
