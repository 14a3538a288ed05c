package drill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
)

// backup is a base backup. From its start on, the servers archive WAL.
type backup struct {
	dir      string // directory of the backup; empty: no backup
	password string
}

// open returns the path of the file "open". The servers archive WAL while this file exists.
func (p *pair) open() string { return filepath.Join(p.archive(), "open") }

// backUp creates the file "open" and then a base backup of the primary.
func (p *pair) backUp(ctx context.Context) (backup, error) {
	if err := os.WriteFile(p.open(), nil, 0o644); err != nil { //nolint:gosec // PostgreSQL's user looks for it
		return backup{}, fmt.Errorf("open the archive: %w", err)
	}
	p.copies++
	name := "base-" + strconv.Itoa(p.copies)
	made, err := p.primary.Backup(ctx, name)
	if err != nil {
		return backup{}, err
	}
	// The backup is moved out of the primary's directory, because a failover removes that directory.
	dir := filepath.Join(p.root, name)
	if err := os.Rename(made, dir); err != nil {
		return backup{}, fmt.Errorf("keep the backup: %w", err)
	}
	return backup{dir: dir, password: p.primary.Password()}, nil
}

// restore starts a new cluster from the backup and the archive, with the data of the given instant. It calls the
// function `look` with the URL of the new cluster. Then it removes the cluster and empties the archive.
func (p *pair) restore(ctx context.Context, from backup, instant time.Time, look func(ctx context.Context, url string) error) (err error) {
	if err := p.archiveUpTo(ctx); err != nil {
		return err
	}
	settings := p.serverSettings()
	settings["archive_mode"], settings["archive_command"] = "off", ""
	dir := filepath.Join(p.root, "restored-"+strconv.Itoa(p.copies))
	server, err := localstack.StartPostgres(ctx, localstack.PostgresConfig{
		Dir: dir, Extra: settings,
		From: &localstack.Origin{
			Backup: from.dir, Password: from.password, Signal: localstack.SignalRecovery,
			Settings: map[string]string{
				"restore_command":           fmt.Sprintf("cp %s/%%f %%p", p.archive()),
				"recovery_target_time":      instant.UTC().Format("2006-01-02 15:04:05.999999-07"),
				"recovery_target_action":    "promote",
				"recovery_target_timeline":  "latest",
				"synchronous_standby_names": "", // a restored cluster has no standby yet
				"primary_conninfo":          "",
			},
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Kill(), os.RemoveAll(dir), p.emptyArchive()) }()
	if err := server.AwaitPrimary(ctx); err != nil {
		return err
	}
	return look(ctx, server.URL())
}

// archiveUpTo waits until all WAL that was written until now is archived.
func (p *pair) archiveUpTo(ctx context.Context) error {
	var segment string
	err := read(ctx, p.primary.URL(), "SELECT pg_walfile_name(pg_switch_wal())", &segment)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return await(ctx, "the segment "+segment+" is archived", func(context.Context) error {
		_, err := os.Stat(filepath.Join(p.archive(), segment))
		return err
	})
}

func (p *pair) emptyArchive() error {
	files, err := os.ReadDir(p.archive())
	for _, f := range files {
		err = errors.Join(err, os.RemoveAll(filepath.Join(p.archive(), f.Name())))
	}
	return err
}
