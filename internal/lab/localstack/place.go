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

// StandInRoot is the directory of the stand-ins, which contain the data of directories that the run user cannot
// enter. Only root needs stand-ins, so StandInRoot may be below /var/lib.
const StandInRoot = "/var/lib/quotasvc-dev"

// noteSuffix is the suffix of the file Dir + noteSuffix, which contains the path of Dir's stand-in.
const noteSuffix = ".path"

// originName is the name of a file in a stand-in. The file contains the path of Dir.
const originName = "origin"

// place returns the directory of the server, and the run user. The directory is cfg.Dir or, if the run user cannot
// enter cfg.Dir, its stand-in. The directory exists, and only the run user can enter it.
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
	p.log.Info("the user that runs PostgreSQL cannot enter the data directory; using another one",
		"wanted", dir, "used", standIn, "user", u.name, "note", dir+noteSuffix)
	return standIn, u, nil
}

// standInFor returns dir's stand-in. Its name is a hash of dir's absolute path.
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

// removeAbandoned removes the stand-ins of temporary directories that were deleted. Such a directory was below a
// temporary root, and the file with its stand-in's path no longer exists. removeAbandoned keeps all other stand-ins,
// because their directories may be on a disk that is not mounted now. It ignores errors.
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
