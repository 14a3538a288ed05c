package testenv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Statements checks the named SQL statements of the package under test. PostgreSQL must be able to prepare each
// statement on the migrated schema, and the package's code must contain the name of each statement.
func Statements(t testing.TB, sql map[string]string) {
	t.Helper()
	conn := Connect(t, Postgres(t))
	source := packageSource(t)
	for name, statement := range sql {
		_, err := conn.Prepare(t.Context(), name, statement)
		assert.NoError(t, err, "%s", name)
		assert.True(t, strings.Contains(source, `"`+name+`"`), "no code uses statement %s", name)
	}
}

// packageSource returns the code of the package under test. Tests run in its directory.
func packageSource(t testing.TB) string {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var all strings.Builder
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}
