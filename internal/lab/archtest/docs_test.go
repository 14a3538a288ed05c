package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Bounds of the pages under docs/, so that they stay readable.
const (
	mostWordsOfPage = 6_000 // of a page that is no decision
	longSentence    = 30    // words; longer sentences are hard to read for those who learned English late
	mostLongPerCent = 3
)

// longPages lists the pages that are still above mostWordsOfPage. Rows are only removed from this list.
var longPages = []string{"docs/operations.md", "docs/scaling.md"}

var (
	codeOfPage  = regexp.MustCompile("(?ms)^ *```.*?^ *```$|^<!--.*?-->$")
	markdownURL = regexp.MustCompile(`\]\(([^()\s]*(?:\([^()\s]*\))?[^()\s]*)\)`)
	heading     = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	notInSlug   = regexp.MustCompile(`[^\p{L}\p{N} _-]+`)
	sentenceEnd = regexp.MustCompile("[.!?][\"'`)*]*\\s+[A-Z`*\"(\\[]")
	listItem    = regexp.MustCompile(`^\s*(?:[-*]|\d+\.) `)
)

// pagesOf returns the paths of all Markdown files below a directory of the repository, relative to the repository.
func pagesOf(t *testing.T, dir string) (pages []string) {
	t.Helper()
	root := filepath.Join("../../..", dir)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") ||
			slices.Contains([]string{"node_modules", "bin", "dist"}, entry.Name())):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(path, ".md"):
			relative, err := filepath.Rel("../../..", path)
			pages = append(pages, filepath.ToSlash(relative))
			return err
		}
		return nil
	})
	require.NoError(t, err)
	return pages
}

func readPage(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../..", page))
	require.NoError(t, err)
	return string(text)
}

// anchorsOf returns the anchors that GitHub gives to the headings of a page.
func anchorsOf(text string) (anchors []string) {
	for _, m := range heading.FindAllStringSubmatch(codeOfPage.ReplaceAllString(text, ""), -1) {
		title := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		slug := strings.ReplaceAll(strings.ToLower(notInSlug.ReplaceAllString(title, "")), " ", "-")
		anchors = append(anchors, slug)
	}
	return anchors
}

// Each relative link of a page leads to a file of the repository, and its anchor to a heading of that file.
func TestDocuments_Links_Hold(t *testing.T) {
	t.Parallel()
	links := 0
	for _, page := range pagesOf(t, ".") {
		text := readPage(t, page)
		for _, m := range markdownURL.FindAllStringSubmatch(codeOfPage.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") || strings.HasPrefix(m[1], "/") {
				continue
			}
			links++
			at := text
			if target != "" {
				path := filepath.ToSlash(filepath.Join(filepath.Dir(page), target))
				_, err := os.Stat(filepath.Join("../../..", path))
				if !assert.NoError(t, err, "%s links to %s", page, m[1]) || !strings.HasSuffix(path, ".md") {
					continue
				}
				at = readPage(t, path)
			}
			assert.True(t, anchor == "" || slices.Contains(anchorsOf(at), anchor),
				"%s links to %s, which has no such heading", page, m[1])
		}
	}
	assert.True(t, links >= 300, "the pages have only %d relative links; expected more", links)
}

// sentencesOf returns the sentences of a page without its code. A cell of a table and an item of a list are texts of
// their own.
func sentencesOf(text string) (sentences []string) {
	var texts []string
	open := false
	for line := range strings.Lines(codeOfPage.ReplaceAllString(text, "\n")) {
		line = strings.TrimRight(line, "\n")
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "" || strings.HasPrefix(line, "#"):
			open = false
		case strings.HasPrefix(line, "|"):
			open = false
			texts = append(texts, strings.Split(strings.Trim(trimmed, "|"), "|")...)
		case open && !listItem.MatchString(line):
			texts[len(texts)-1] += " " + trimmed
		default:
			open = true
			texts = append(texts, trimmed)
		}
	}
	for _, text := range texts {
		for at := sentenceEnd.FindStringIndex(text); at != nil; at = sentenceEnd.FindStringIndex(text) {
			sentences, text = append(sentences, strings.TrimSpace(text[:at[1]-1])), text[at[1]-1:]
		}
		if strings.Trim(text, " -:") != "" {
			sentences = append(sentences, strings.TrimSpace(text))
		}
	}
	return sentences
}

// The pages are for people who read them once and who may have learned English late: no page is long, and few
// sentences are.
func TestDocuments_PagesAndSentences_AreShort(t *testing.T) {
	t.Parallel()
	sentences := 0
	var long []string
	for _, page := range pagesOf(t, "docs") {
		text := readPage(t, page)
		words := len(strings.Fields(text))
		if !strings.HasPrefix(page, "docs/decisions/") {
			kept := slices.Contains(longPages, page)
			assert.True(t, words <= mostWordsOfPage || kept,
				"%s has %d words, more than %d", page, words, mostWordsOfPage)
			assert.True(t, words > mostWordsOfPage || !kept, "%s has %d words: take it from the list", page, words)
		}
		for _, sentence := range sentencesOf(text) {
			if sentences++; len(strings.Fields(sentence)) > longSentence {
				long = append(long, page+": "+sentence)
			}
		}
	}
	assert.True(t, len(long)*100 <= mostLongPerCent*sentences, "%d of %d sentences have more than %d words:\n%s",
		len(long), sentences, longSentence, strings.Join(long, "\n"))
}

func TestDocuments_Sentences_Split(t *testing.T) {
	t.Parallel()
	text := "# Title. Of two\n\nOne is\nhere. `Two` is e.g. this.\n- Three. (Four.)\n- five\n" +
		"\n```sh\nnot. This\n```\n| a. B | c |\n|---|---|\n"
	want := []string{"One is here.", "`Two` is e.g. this.", "- Three.", "(Four.)", "- five", "a.", "B", "c"}
	assert.Equal(t, want, sentencesOf(text))
	text = "## What moves, with a change of terms?\n# too_many\n### 4. A plan of [your own](x.md)\n```\n# none\n```\n"
	assert.Equal(t, []string{"what-moves-with-a-change-of-terms", "too_many", "4-a-plan-of-your-own"}, anchorsOf(text))
}
