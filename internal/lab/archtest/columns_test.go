package archtest

import (
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxColumns is the maximum length of a line of hand-written code. A tab counts as four columns.
const maxColumns = 120

// wideFiles is the path of a list of files with lines longer than maxColumns. These files are older than the limit. If
// all lines of a file have become short enough, the file must leave the list. No file may be added. A list of
// exclusions for the linter lll would not become shorter, because golangci-lint only warns about an exclusion that
// excludes nothing.
const wideFiles = "testdata/wide.txt"

func isWide(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if utf8.RuneCountInString(line)+3*strings.Count(line, "\t") > maxColumns {
			return true
		}
	}
	return false
}

func TestColumns_Repository_OnlyListedFilesAreWide(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(wideFiles)
	require.NoError(t, err)
	listed := strings.Fields(string(text))
	for _, f := range repository(t) {
		if f.generated {
			continue
		}
		source, err := os.ReadFile("../../../" + f.path)
		require.NoError(t, err)
		at := slices.Index(listed, f.path)
		switch wide := isWide(string(source)); {
		case wide && at < 0:
			t.Errorf("%s has a line of more than %d columns: break it", f.path, maxColumns)
		case !wide && at >= 0:
			t.Errorf("%s is narrow now: take it from %s", f.path, wideFiles)
		}
		if at >= 0 {
			listed = slices.Delete(listed, at, at+1)
		}
	}
	assert.Empty(t, listed, "%s names files that are gone: %q", wideFiles, listed)
}

func TestColumns_Violations_Caught(t *testing.T) {
	t.Parallel()
	for _, wide := range []string{
		strings.Repeat("x", 121) + "\n",
		"a\n" + strings.Repeat("\t", 30) + "x\n",
		"\t" + strings.Repeat("é", 117),
	} {
		assert.True(t, isWide(wide), "%q passes", wide)
	}
	assert.False(t, isWide("\t"+strings.Repeat("é", 116)+"\n"+strings.Repeat("x", 120)+"\n"),
		"lines of 120 columns do not pass")
}
