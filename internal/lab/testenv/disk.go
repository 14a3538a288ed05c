package testenv

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
)

// diskSize is the size of a small disk. It is enough for a migrated cluster.
const diskSize = "160m"

// SmallDisk is a disk that a test can fill. A PostgreSQL uses this disk, which is a separate file system in memory. If
// the user may not mount a file system, triggers refuse new entries and changes of limits instead, with PostgreSQL's
// code for a full disk.
type SmallDisk struct {
	t      testing.TB
	url    string
	filler string // file that fills the disk; empty: triggers
}

// PostgresOnSmallDisk starts a server like PostgresPrivate, on a disk that the test can fill.
func PostgresOnSmallDisk(t testing.TB) (*PostgresServer, *SmallDisk) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", tempPrefix) //nolint:usetesting // the server's user must be able to enter it, and t.TempDir belongs to this user alone
	require.NoError(t, err, "testenv")
	t.Cleanup(func() { check(t, "remove the disk", os.RemoveAll(dir)) })
	mount := exec.CommandContext(context.Background(), "mount", "-t", "tmpfs", "-o", "size="+diskSize+",mode=0711", "tmpfs", dir)
	if out, err := mount.CombinedOutput(); err != nil {
		t.Logf("no disk of its own (%v: %s): triggers refuse new rows instead", err, out)
		server := startPostgres(t)
		return server, &SmallDisk{t: t, url: server.URL}
	}
	t.Cleanup(func() {
		check(t, "unmount the disk", exec.CommandContext(context.Background(), "umount", dir).Run())
	})
	shared.requireBinaries(t)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	p, err := localstack.StartPostgres(ctx, localstack.PostgresConfig{
		Dir: filepath.Join(dir, "postgres"), Extra: map[string]string{"max_wal_size": "32MB", "min_wal_size": "32MB"}, Search: &shared.source.search,
	})
	require.NoError(t, err, "testenv")
	t.Cleanup(func() { check(t, "stop PostgreSQL", p.Kill()) })
	require.NoError(t, errors.Join(migrate(ctx, p.URL()), makeServiceLoginAt(ctx, p.URL())), "testenv")
	return &PostgresServer{control: control{t, "PostgreSQL", &p.Server}, URL: p.URL()}, &SmallDisk{t, p.URL(), filepath.Join(dir, "filler")}
}

// Fill fills the disk. Without a separate file system, it creates the triggers that refuse rows.
func (d *SmallDisk) Fill() {
	d.t.Helper()
	if d.filler == "" {
		d.run(`CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no space left on device' USING ERRCODE = 'disk_full'; END $$;
			CREATE TRIGGER disk_full BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION disk_full();
			CREATE TRIGGER disk_full BEFORE INSERT OR UPDATE ON limits FOR EACH ROW EXECUTE FUNCTION disk_full()`)
		return
	}
	file, err := os.Create(d.filler)
	check(d.t, "fill the disk", err)
	for _, block := range [][]byte{make([]byte, 1<<20), make([]byte, 1<<12)} {
		for err == nil {
			_, err = file.Write(block)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			check(d.t, "fill the disk", err)
		}
		err = nil
	}
	check(d.t, "fill the disk", file.Close())
}

// Free reverses Fill.
func (d *SmallDisk) Free() {
	d.t.Helper()
	if d.filler == "" {
		d.run("DROP FUNCTION disk_full CASCADE")
		return
	}
	check(d.t, "free the disk", os.Remove(d.filler))
}

func (d *SmallDisk) run(sql string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	check(d.t, "change what is stored", connected(ctx, d.url, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
		return err
	}))
}
