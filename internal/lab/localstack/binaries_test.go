package localstack

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/store/pgpool"
)

// install creates a fake PostgreSQL that can only print its version.
func install(t *testing.T, dir, version string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + "'\n"
	for _, name := range []string{"postgres", "initdb"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	resolved, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	return resolved
}

func TestSearch_Postgres_PathFirstThenNewest(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	install(t, filepath.Join(root, "9"), "9.6.24")
	install(t, filepath.Join(root, "15"), "15.18 (Debian 15.18-0+deb12u1)")
	newest := install(t, filepath.Join(root, "18"), "18beta1")
	search := Search{PostgresDirs: []string{filepath.Join(root, "*")}}
	b, err := search.Postgres(t.Context(), 0)
	assert.True(t, err == nil && b.Dir == newest && b.Major == 18 && b.Version == "18beta1", "%+v, %v", b, err)
	b, err = search.Postgres(t.Context(), 15)
	assert.True(t, err == nil && b.Version == "15.18 (Debian 15.18-0+deb12u1)",
		"the asked-for version: %+v, %v", b, err)
	chosen := install(t, filepath.Join(root, "chosen"), "16.3")
	search.Path = []string{t.TempDir(), chosen}
	b, err = search.Postgres(t.Context(), 0)
	assert.True(t, err == nil && b.Dir == chosen, "the one in PATH: %+v, %v", b, err)
}

func TestSearch_LinkInPath_FindsInstallation(t *testing.T) {
	t.Parallel()
	target := install(t, filepath.Join(t.TempDir(), "target"), "16.3")
	links := t.TempDir()
	for _, name := range []string{"postgres", "initdb"} {
		require.NoError(t, os.Symlink(filepath.Join(target, name), filepath.Join(links, name)))
	}
	b, err := (Search{Path: []string{links}}).Postgres(t.Context(), 0)
	assert.True(t, err == nil && b.Dir == target, "%+v, %v", b, err)
}

func TestSearch_UnusableInstallation_NamedInError(t *testing.T) {
	t.Parallel()
	require.Equal(t, pgpool.OldestMajor, MinPostgresMajor, "the service refuses another version than `make run`")
	old := install(t, filepath.Join(t.TempDir(), "old"), "12.1")
	garbled := install(t, filepath.Join(t.TempDir(), "garbled"), "of unknown age")
	clientOnly := install(t, filepath.Join(t.TempDir(), "client"), "17.1")
	require.NoError(t, os.Remove(filepath.Join(clientOnly, "initdb")))
	for _, c := range []struct {
		dir   string
		major int
		want  string
	}{
		{old, 0, "PostgreSQL 12, at least 14 is needed"},
		{garbled, 0, "cannot read"},
		{clientOnly, 0, "PostgreSQL is not installed: install it with `apt-get install postgresql`"},
		{install(t, filepath.Join(t.TempDir(), "other"), "17.1"), 15, "PostgreSQL 15 is not installed"},
		{t.TempDir(), 0, "docker compose up"},
	} {
		_, err := Search{Path: []string{c.dir}}.Postgres(t.Context(), c.major)
		var missing *MissingError
		assert.True(t, errors.As(err, &missing) && strings.Contains(err.Error(), c.want),
			"want %q, got: %v", c.want, err)
	}
}

func TestSearch_NoRedis_FindsValkey(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	search := Search{Path: []string{dir}, RedisDirs: []string{other}}
	_, err := search.Redis()
	assert.True(t, IsMissing(err) && strings.Contains(err.Error(), "apt-get install redis-server"), err)
	write := func(path string) {
		require.NoError(t, os.WriteFile(path, nil, 0o755))
	}
	valkey, redis := filepath.Join(dir, "valkey-server"), filepath.Join(other, "redis-server")
	write(valkey)
	got, err := search.Redis()
	assert.True(t, err == nil && got == valkey, "%s, %v", got, err)
	write(redis)
	got, err = search.Redis()
	assert.True(t, err == nil && got == redis, "%s, %v", got, err)
}

// The script that installs servers must search the same directories. Otherwise it would install a program that
// SystemSearch already finds, or would not install a program that SystemSearch does not find.
func TestInstallScript_Directories_SameAsSearch(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../../../scripts/install-servers.sh")
	require.NoError(t, err)
	for variable, dirs := range map[string][]string{
		"postgres_dirs": SystemSearch().PostgresDirs, "redis_dirs": SystemSearch().RedisDirs,
	} {
		_, rest, ok := strings.Cut(string(script), "\n"+variable+"='")
		require.True(t, ok, "the script has no %s", variable)
		list, _, _ := strings.Cut(rest, "'")
		got, want := strings.Fields(list), dirs
		assert.True(t, slices.Equal(got, want), "%s: the script has %q, SystemSearch %q", variable, got, want)
	}
}
