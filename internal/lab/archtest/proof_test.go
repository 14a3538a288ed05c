package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	namedTest    = regexp.MustCompile("`(Test[A-Za-z0-9_]+)(\\*?)`")
	declaredTest = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
)

// Documents name tests as the proof of a promise. A document with the name of a test that does not exist proves
// nothing.
func TestDocuments_NamedTests_Exist(t *testing.T) {
	t.Parallel()
	var declared []string
	err := filepath.WalkDir("../../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declaredTest.FindAllStringSubmatch(string(text), -1) {
			declared = append(declared, m[1])
		}
		return err
	})
	require.NoError(t, err)
	named := 0
	for page, text := range documentsOf(t, "docs") {
		for _, m := range namedTest.FindAllStringSubmatch(text, -1) {
			named++
			found := false
			for _, name := range declared {
				found = found || name == m[1] || m[2] == "*" && strings.HasPrefix(name, m[1])
			}
			assert.True(t, found, "%s names the test %s%s, which does not exist", page, m[1], m[2])
		}
	}
	assert.True(t, named >= 50, "the documents name only %d tests; expected more", named)
}

// Each promise has one row, which names all tests of the promise. With two rows, a change would often miss one of
// them.
func TestDocuments_Promise_HasOneRow(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/proof.md")
	require.NoError(t, err)
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if len(cells) < 2 || !strings.Contains(line, "`Test") {
			continue
		}
		assert.False(t, seen[cells[0]], "twice: %s", cells[0])
		seen[cells[0]] = true
	}
	assert.True(t, len(seen) >= 50, "%d promises; expected more", len(seen))
}
