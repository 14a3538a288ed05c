package localstack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Signal is the empty file that selects how PostgreSQL starts a copied cluster.
type Signal string

// These are the signal files of PostgreSQL's manual.
const (
	SignalStandby  Signal = "standby.signal"  // follow a primary until it is promoted
	SignalRecovery Signal = "recovery.signal" // restore from the archive up to a target
)

// Origin is a copied cluster with which a new server begins. Without an Origin, the server begins with an empty
// cluster.
type Origin struct {
	Backup   string            // directory made by Postgres.Backup; the start of the server renames it
	Password string            // the copied server's password
	Signal   Signal            // how the copy starts
	Settings map[string]string // added to the copy's postgresql.auto.conf; a command line would show passwords
}

// Password returns the superuser's password, which copies of the cluster share.
func (p *Postgres) Password() string { return p.password }

// Backup copies the running server's cluster with pg_basebackup into a directory of this name in Dir, and returns its
// path. The copy contains the WAL that it needs to be consistent.
func (p *Postgres) Backup(ctx context.Context, name string) (string, error) {
	tool, err := p.besides("pg_basebackup")
	if err != nil {
		return "", err
	}
	to := filepath.Join(p.dir, name)
	_, err = runTool(ctx, command{
		path: tool, dir: p.dir, as: p.as, env: []string{"PGPASSWORD=" + p.password},
		args: []string{
			"--host=" + loopback, "--port=" + strconv.Itoa(p.port), "--username=" + Superuser, "--no-password",
			"--pgdata=" + to, "--checkpoint=fast", "--wal-method=stream", "--no-sync",
		},
	})
	if err != nil {
		return "", errors.Join(fmt.Errorf("back up PostgreSQL: %w", err), os.RemoveAll(to))
	}
	return to, nil
}

// besides finds a program next to the server's binary. It searches p.bin.Dir. If the binary there is a link, it also
// searches the directory of the real binary.
func (p *Postgres) besides(program string) (string, error) {
	server, err := filepath.EvalSymlinks(filepath.Join(p.bin.Dir, "postgres"))
	if err != nil {
		return "", fmt.Errorf("find %s: %w", program, err)
	}
	for _, dir := range []string{p.bin.Dir, filepath.Dir(server)} {
		if path := filepath.Join(dir, program); executable(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not beside %s: install PostgreSQL's client programs", program, server)
}

// adopt prepares the copied cluster of cfg.From for its start and renames it to dir.
func (p *Postgres) adopt(dir, passwordFile string) error {
	from := p.cfg.From
	p.password = from.Password
	if err := writeSecret(passwordFile, p.password, p.as); err != nil {
		return err
	}
	if err := writeSecret(filepath.Join(from.Backup, string(from.Signal)), "", p.as); err != nil {
		return err
	}
	settings, err := os.OpenFile(filepath.Join(from.Backup, "postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("settings of the copy: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(from.Settings)) {
		fmt.Fprintf(settings, "%s = '%s'\n", name, strings.ReplaceAll(from.Settings[name], "'", "''"))
	}
	if err := settings.Close(); err != nil {
		return fmt.Errorf("settings of the copy: %w", err)
	}
	if err := os.Rename(from.Backup, dir); err != nil {
		return fmt.Errorf("take over a backup: %w", err)
	}
	return nil
}
