package localstack

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// StandInRoot holds the data of directories that the run user cannot reach. Only
// root ever needs it, so it may be below /var/lib.
const StandInRoot = "/var/lib/quotasvc-dev"

// noteSuffix names the file beside Dir that tells where the data went instead.
const noteSuffix = ".path"

// originName names the file in a stand-in that tells whose it is.
const originName = "origin"

// place returns the directory to use for cfg.Dir: that itself, or its stand-in when
// the run user cannot reach it. The result exists and is private to the run user.
func (p *Postgres) place(ctx context.Context) (string, runUser, error) {
	dir, err := filepath.Abs(p.cfg.Dir)
	if err != nil {
		return "", runUser{}, fmt.Errorf("data directory: %w", err)
	}
	postgres := filepath.Join(p.bin.Dir, "postgres")
	u, err := chooseRunUser(dir)
	if err != nil {
		return "", runUser{}, err
	}
	err = claim(ctx, dir, u, postgres)
	if err == nil {
		return dir, u, nil
	}
	if !errors.Is(err, errUnreachable) {
		return "", runUser{}, err
	}
	standIn := standInFor(cmp.Or(p.cfg.standIns, StandInRoot), dir)
	if u, err = chooseRunUser(standIn); err != nil {
		return "", runUser{}, err
	}
	if err := claim(ctx, standIn, u, postgres); err != nil {
		return "", runUser{}, fmt.Errorf("%s cannot enter %s, and the stand-in %s failed too: %w", u, dir, standIn, err)
	}
	if err := errors.Join(writeNote(dir+noteSuffix, standIn), writeNote(filepath.Join(standIn, originName), dir)); err != nil {
		return "", runUser{}, err
	}
	removeAbandoned(filepath.Dir(standIn))
	p.log.Info("the data directory is out of reach for the user PostgreSQL runs as; using another one",
		"wanted", dir, "used", standIn, "user", u.name, "note", dir+noteSuffix)
	return standIn, u, nil
}

// standInFor names dir's stand-in: the same for the same absolute path, distinct
// for distinct ones.
func standInFor(root, dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(root, hex.EncodeToString(sum[:8]))
}

func writeNote(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("note where the data lies: %w", err)
	}
	if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
		return fmt.Errorf("note where the data lies: %w", err)
	}
	return nil
}

// removeAbandoned removes the stand-ins of temporary checkouts that are gone: of
// directories below a temporary root whose note no longer exists. Others stay
// whatever happens to their checkout, which may lie on a disk that is not mounted
// now. Tidying is not worth failing for, so it reports nothing.
func removeAbandoned(root string) {
	// Glob's only error is a malformed pattern.
	origins, _ := filepath.Glob(filepath.Join(root, "*", originName))
	for _, path := range origins {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		dir, standIn := strings.TrimSpace(string(text)), filepath.Dir(path)
		_, err = os.Stat(dir + noteSuffix)
		if isTemporary(dir) && errors.Is(err, os.ErrNotExist) && !inUse(standIn) {
			_ = os.RemoveAll(standIn)
		}
	}
}

func isTemporary(dir string) bool {
	return slices.ContainsFunc(tempRoots(), func(root string) bool {
		return strings.HasPrefix(dir, filepath.Clean(root)+string(filepath.Separator))
	})
}
