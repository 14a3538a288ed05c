package namedsql

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func file(text string) fstest.MapFS { return fstest.MapFS{"sql/a.sql": {Data: []byte(text)}} }

func TestLoad_Statements_ByNameWithoutComments(t *testing.T) {
	t.Parallel()
	got, err := Load(Plain, file("-- A header.\n\n-- name: One\n-- Returns 1.\nSELECT 1\n-- inner\nFROM a;\n\n-- name: Two\nSELECT 2;\n"))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"One": "SELECT 1\nFROM a", "Two": "SELECT 2"}, got)
}

func TestLoad_BadFile_NamesTheStatement(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"twice":     "-- name: X\nSELECT 1;\n-- name: X\nSELECT 2;\n",
		"empty":     "-- name: X\n;\n",
		"unended":   "-- name: X\nSELECT 1\n",
		"only text": "-- name: X\n-- nothing\n",
	} {
		_, err := Load(Plain, file(text))
		assert.True(t, err != nil && strings.Contains(err.Error(), `"X"`), "%s: %v", name, err)
	}
}

func TestLoad_LinesOfOneTarget_LeftOutForTheOther(t *testing.T) {
	t.Parallel()
	text := file("-- name: One\nSELECT 1\nFROM a\n  -- citus: WHERE t = 1\nFOR SHARE -- plain\n;\n")
	for target, want := range map[Target]string{Plain: "SELECT 1\nFROM a\nFOR SHARE\n", Citus: "SELECT 1\nFROM a\nWHERE t = 1\n"} {
		got, err := Load(target, text)
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"One": want}, got)
	}
}
