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

// promise matches an item of a list in docs/proof.md. It captures the text before the first test of the item.
var promise = regexp.MustCompile("(?m)^(?:-|\\d+\\.) ([^`]*(?:`[^T`][^`]*`[^`]*)*)`Test")

// Each promise is in the document once, with all tests of the promise. With two items, a change would often miss one of
// them.
func TestDocuments_Promise_StandsOnce(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/proof.md")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, m := range promise.FindAllStringSubmatch(string(text), -1) {
		what := strings.Join(strings.Fields(m[1]), " ")
		assert.False(t, seen[what], "twice: %s", what)
		seen[what] = true
	}
	assert.True(t, len(seen) >= 50, "%d promises; expected more", len(seen))
}
