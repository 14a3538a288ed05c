package localstack

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root changes the user; an ordinary user runs servers as itself")
	}
}

func TestPostgres_AsRoot_RunsUnprivileged(t *testing.T) {
	t.Parallel()
	asRoot(t)
	p := startPostgres(t, PostgresConfig{Durable: true})
	for _, path := range []string{p.Dir(), p.dataDir(), filepath.Join(p.Dir(), "password"), "/proc/" + strconv.Itoa(p.proc.pid)} {
		uid, _, err := ownerOf(path)
		assert.True(t, err == nil && uid != 0 && uid == p.as.uid,
			"%s belongs to uid %d, want %d (%v)", path, uid, p.as.uid, err)
	}
	info, err := os.Stat(p.Dir())
	require.NoError(t, err)
	assert.EqualValues(t, 0o700, info.Mode().Perm(), "%s", p.Dir())
}

func TestPostgres_AsRootClosedCheckout_DataInStandIn(t *testing.T) {
	t.Parallel()
	asRoot(t)
	closed, standIns := t.TempDir(), filepath.Join(newDir(t), "stand-ins")
	require.NoError(t, os.Chmod(closed, 0o700))
	cfg := PostgresConfig{Dir: filepath.Join(closed, "checkout", ".quotasvc", "postgres"), standIns: standIns}
	first := startPostgres(t, cfg)
	require.True(t, strings.HasPrefix(first.Dir(), standIns), "the data is in %s", first.Dir())
	note, err := os.ReadFile(cfg.Dir + ".path")
	assert.True(t, err == nil && strings.TrimSpace(string(note)) == first.Dir(),
		"the note contains %q, the data is in %s (%v)", note, first.Dir(), err)
	_, err = os.Stat(cfg.Dir)
	assert.ErrorIs(t, err, os.ErrNotExist, "the unusable directory was left behind")
	sql[int](t, first.URL(), "CREATE TABLE kept AS SELECT 42 AS n", "SELECT n FROM kept")
	require.NoError(t, first.Stop(t.Context()))
	assert.Equal(t, 42, sql[int](t, startPostgres(t, cfg).URL(), "SELECT n FROM kept"))
	cfg.Dir = filepath.Join(closed, "another", ".quotasvc", "postgres")
	assert.True(t, startPostgres(t, cfg).Dir() != first.Dir(), "two checkouts share one data directory")
}

func TestStandIn_TemporaryCheckoutGone_Removed(t *testing.T) {
	t.Parallel()
	root, checkouts := t.TempDir(), t.TempDir()
	add := func(name, origin string) string {
		dir := filepath.Join(root, name)
		require.NoError(t, writeNote(filepath.Join(dir, originName), origin))
		return dir
	}
	gone := add("gone", filepath.Join(checkouts, "gone"))
	kept := []string{
		add("there", filepath.Join(checkouts, "there")), add("permanent", "/srv/on-a-disk-that-is-not-mounted"),
		add("used", filepath.Join(checkouts, "used")),
	}
	require.NoError(t, writeNote(filepath.Join(checkouts, "there")+noteSuffix, kept[0]))
	lock, err := lockDir(kept[2])
	require.NoError(t, err)
	removeAbandoned(root)
	_, err = os.Stat(gone)
	assert.ErrorIs(t, err, os.ErrNotExist, "%s is still there", gone)
	for _, dir := range kept {
		_, err = os.Stat(dir)
		assert.NoError(t, err)
	}
	assert.NoError(t, lock.release())
}

func TestPostgres_AsRootExistingData_OwnerKept(t *testing.T) {
	t.Parallel()
	asRoot(t)
	dir := filepath.Join(newDir(t), "postgres")
	require.NoError(t, os.Mkdir(dir, 0o700))
	const ordinary = 12345
	require.NoError(t, os.Chown(dir, ordinary, ordinary))
	p := startPostgres(t, PostgresConfig{Dir: dir})
	assert.True(t, p.as.uid == ordinary, "runs as %v", p.as)
}

func TestPostgres_OtherUsersDirectory_RefusedWithOwner(t *testing.T) {
	t.Parallel()
	err := explainPermission("/", os.ErrPermission)
	assert.True(t, errors.Is(err, os.ErrPermission) && strings.Contains(err.Error(), "belongs to uid 0"),
		"err = %v", err)
}

func TestTempDir_ClosedTMPDIR_StillReachable(t *testing.T) {
	closed := t.TempDir()
	require.NoError(t, os.Chmod(closed, 0o700))
	t.Setenv("TMPDIR", closed)
	p := startPostgres(t, PostgresConfig{})
	assert.True(t, sql[int](t, p.URL(), "SELECT 1") == 1, "the server does not answer")
	assert.Equal(t, os.Geteuid() == 0, !strings.HasPrefix(p.Dir(), closed),
		"the data is in %s, TMPDIR is %s", p.Dir(), closed)
}

func TestRemoveStale_Directories_OldAndUnusedOnly(t *testing.T) {
	root := t.TempDir()
	t.Setenv("TMPDIR", root)
	const prefix = "localstack-stale-test-"
	age := func(name string, by time.Duration) string {
		dir := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "server"), 0o700))
		then := time.Now().Add(-by)
		require.NoError(t, os.Chtimes(dir, then, then))
		return dir
	}
	gone := age(prefix+"gone", staleAfter+time.Minute)
	kept := []string{age(prefix+"young", staleAfter-time.Minute), age("other-old", staleAfter+time.Minute)}
	used := age(prefix+"used", staleAfter+time.Minute)
	lock, err := lockDir(filepath.Join(used, "server"))
	require.NoError(t, err)
	RemoveStale(prefix)
	_, err = os.Stat(gone)
	assert.ErrorIs(t, err, os.ErrNotExist, "%s is still there", gone)
	for _, dir := range append(kept, used) {
		_, err = os.Stat(dir)
		assert.NoError(t, err)
	}
	require.NoError(t, lock.release())
	RemoveStale(prefix)
	_, err = os.Stat(used)
	assert.ErrorIs(t, err, os.ErrNotExist, "%s is still there though free", used)
}

func TestPort_Free_NotAnOutgoingPort(t *testing.T) {
	t.Parallel()
	for range 100 {
		port, err := choosePort(0, "a test", "")
		require.NoError(t, err)
		require.True(t, port >= firstFreePort && port < lastFreePort, "port %d", port)
	}
}

// Another process may take a port before the server binds it. The port may be a second port of the server, for example
// the port of the cluster bus. The port may be free again when the start is repeated.
func TestPort_LostAtBind_Retried(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why     string
		want    int
		started bool
	}{
		{"Could not create server TCP listening socket 127.0.0.1:28177: bind: Address already in use", 2, true},
		{"no space left on device", 1, false},
	} {
		s, tries := &Server{name: "a test"}, 0
		err := s.onPort("", func() error {
			if tries++; tries == 1 {
				return errors.New(c.why)
			}
			return nil
		})
		assert.True(t, tries == c.want && (err == nil) == c.started, "%s: %d tries, %v", c.why, tries, err)
	}
}
