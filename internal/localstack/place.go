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
)

// StandInRoot holds the data of directories that the run user cannot reach. Only
// root ever needs it, so it may be below /var/lib.
const StandInRoot = "/var/lib/quotasvc-dev"

// noteSuffix names the file beside Dir that tells where the data went instead.
const noteSuffix = ".path"

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
	if err := writeNote(dir+noteSuffix, standIn); err != nil {
		return "", runUser{}, err
	}
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

func writeNote(path, standIn string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("note where the data lies: %w", err)
	}
	if err := os.WriteFile(path, []byte(standIn+"\n"), 0o644); err != nil {
		return fmt.Errorf("note where the data lies: %w", err)
	}
	return nil
}
