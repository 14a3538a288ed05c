package localstack

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPostgres_StandbyPromoted_HasEveryCommit(t *testing.T) {
	t.Parallel()
	root := newDir(t)
	primary := startPostgres(t, PostgresConfig{Dir: filepath.Join(root, "primary")})
	standby, err := primary.AddStandby(t.Context(), "backup", PostgresConfig{Dir: filepath.Join(root, "standby")})
	require.NoError(t, err)
	endWithTest(t, standby.Stop)
	require.Equal(t, 42, sql[int](t, primary.URL(), "CREATE TABLE kept AS SELECT 42 AS n", "SELECT n FROM kept"))
	require.NoError(t, primary.Kill())
	require.NoError(t, standby.Promote(t.Context()))
	sum := sql[int](t, standby.URL(), "INSERT INTO kept VALUES (1)", "SELECT sum(n)::int FROM kept")
	assert.Equal(t, 43, sum, "the promoted standby lacks a commit")
}

func TestPostgres_BackupAndArchive_RestoredToInstant(t *testing.T) {
	t.Parallel()
	root := newDir(t)
	archive := filepath.Join(root, "archive")
	require.NoError(t, os.Mkdir(archive, 0o777))
	require.NoError(t, os.Chmod(archive, 0o777)) // the run user writes into it
	source := startPostgres(t, PostgresConfig{Dir: filepath.Join(root, "source"), Extra: map[string]string{
		"archive_mode": "on", "archive_command": "cp %p " + archive + "/%f",
	}})
	backup, err := source.Backup(t.Context(), "backup")
	require.NoError(t, err)
	sql[int](t, source.URL(), "CREATE TABLE kept AS SELECT 1 AS n", "SELECT 1")
	instant := time.Now()
	segment := sql[string](t, source.URL(), "INSERT INTO kept VALUES (2)", "SELECT pg_walfile_name(pg_switch_wal())")
	require.NoError(t, poll(t.Context(), func() bool { return fileExists(filepath.Join(archive, segment)) }))
	restored := startPostgres(t, PostgresConfig{Dir: filepath.Join(root, "restored"), From: &Origin{
		Backup: backup, Password: source.Password(), Signal: SignalRecovery, Settings: map[string]string{
			"restore_command": "cp " + archive + "/%f %p", "recovery_target_time": instant.UTC().Format("2006-01-02 15:04:05.999999-07"),
			"recovery_target_action": "promote",
		},
	}})
	require.NoError(t, restored.AwaitPrimary(t.Context()))
	assert.Equal(t, 1, sql[int](t, restored.URL(), "SELECT sum(n)::int FROM kept"), "not as it was at the instant")
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
