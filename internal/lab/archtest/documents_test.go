package archtest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// allWords is the maximum of all pages in docs/ together, as `wc -w` counts words: what a person can read in a day.
	allWords = 65_000

	// pageWords is the maximum of a page, half an hour of reading; decisionWords is that of a page of docs/decisions.
	pageWords, decisionWords = 6_000, 900
)

func TestDocuments_Words_WithinBounds(t *testing.T) {
	t.Parallel()
	sum := 0
	for page, text := range documentsOf(t, "docs") {
		n, most := len(strings.Fields(text)), pageWords
		if path.Dir(page) == "docs/decisions" {
			most = decisionWords
		}
		assert.LessOrEqual(t, n, most, "%s: words", page)
		sum += n
	}
	assert.LessOrEqual(t, sum, allWords, "words of all pages in docs/")
}

// documentsOf returns the texts of the Markdown files under a folder of the repository, by their paths in it. It leaves
// out folders of tools and test data.
func documentsOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	root, texts := filepath.FromSlash("../../.."), map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, folder), func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		hidden := strings.HasPrefix(base, ".") && base != ".."
		if entry.IsDir() && (hidden || base == "node_modules" || base == "testdata") {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		short, err := filepath.Rel(root, name)
		texts[filepath.ToSlash(short)] = string(text)
		return err
	})
	require.NoError(t, err)
	return texts
}

var (
	codeBlock  = regexp.MustCompile("(?ms)^```.*?^```$")
	codeSpan   = regexp.MustCompile("`[^`\n]*`")
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headline   = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInSlugs = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchorsOf returns the anchors of the headings of a document, as GitHub computes them.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	for _, m := range headline.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		slug := notInSlugs.ReplaceAllString(strings.ToLower(strings.TrimSpace(link.ReplaceAllString(m[1], "]"))), "")
		anchors[strings.ReplaceAll(slug, " ", "-")] = true
	}
	return anchors
}

// A relative link leads to a file of the repository and, if it names a section, to a heading of that file.
func TestDocuments_Links_HaveTargets(t *testing.T) {
	t.Parallel()
	documents, links := documentsOf(t, "."), 0
	for from, text := range documents {
		prose := codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(text, ""), "")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			if strings.Contains(m[1], ":") {
				continue // another host
			}
			links++
			target, anchor, _ := strings.Cut(m[1], "#")
			to := path.Join(path.Dir(from), target)
			if target == "" {
				to = from
			}
			if _, err := os.Stat(filepath.Join("../../..", filepath.FromSlash(to))); err != nil {
				t.Errorf("%s links to %s, which does not exist", from, m[1])
				continue
			}
			if other, ok := documents[to]; anchor != "" && ok {
				assert.True(t, anchorsOf(other)[anchor], "%s links to %s, which has no such section", from, m[1])
			}
		}
	}
	assert.True(t, links >= 300, "found only %d links", links)
}
