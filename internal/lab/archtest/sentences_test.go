package archtest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const (
	// shortestSentence is the minimum number of words of a sentence. Shorter texts are names and figures in tables.
	shortestSentence = 4

	// longestSentence is the number of words up to which somebody who learned English late reads a sentence once.
	longestSentence = 30

	// longSentences is the share of sentences in docs/ that may have more words: definitions, and lists of parts.
	longSentences = 0.03
)

var (
	comment     = regexp.MustCompile(`(?s)<!--.*?-->`)
	picture     = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)`)
	linkTarget  = regexp.MustCompile(`\]\([^)\s]+\)`)
	listItem    = regexp.MustCompile(`^([-*+]|\d+\.) `)
	ruleOfTable = regexp.MustCompile(`^\|[-:| ]+$`)
	sentenceEnd = regexp.MustCompile(`[.!?]["')]*\s+([A-Z0-9"(\[]|code\b)`)
	hasLetter   = regexp.MustCompile(`[\p{L}\p{N}]`)
)

// sentencesOf returns the sentences of a document. A paragraph, an item of a list and a cell of a table end a
// sentence. Headings, code blocks, comments and pictures are no sentences. A code span counts as one word.
func sentencesOf(text string) []string {
	text = comment.ReplaceAllString(codeBlock.ReplaceAllString(text, ""), "")
	text = picture.ReplaceAllString(codeSpan.ReplaceAllString(text, "code"), "")
	text = linkTarget.ReplaceAllString(text, "]")
	var units []string
	open := false // the next line continues the last unit
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#") || ruleOfTable.MatchString(line):
			open = false
		case strings.HasPrefix(line, "|"):
			units, open = append(units, strings.Split(strings.Trim(line, "|"), "|")...), false
		case open && !listItem.MatchString(line):
			units[len(units)-1] += " " + line
		default:
			units, open = append(units, listItem.ReplaceAllString(line, "")), true
		}
	}
	var sentences []string
	for _, unit := range units {
		unit = strings.ReplaceAll(unit, "*", "") // emphasis
		for {
			end := sentenceEnd.FindStringSubmatchIndex(unit)
			if end == nil {
				break
			}
			sentences, unit = append(sentences, unit[:end[2]]), unit[end[2]:]
		}
		sentences = append(sentences, unit)
	}
	return sentences
}

// wordsOf returns the number of words of a sentence. Marks without a letter or a digit are no words.
func wordsOf(sentence string) int {
	n := 0
	for _, word := range strings.Fields(sentence) {
		if hasLetter.MatchString(word) {
			n++
		}
	}
	return n
}

func TestDocuments_Sentences_AreShort(t *testing.T) {
	t.Parallel()
	all, long := 0, 0
	for page, text := range documentsOf(t, "docs") {
		for _, sentence := range sentencesOf(text) {
			switch n := wordsOf(sentence); {
			case n > longestSentence:
				long++
				t.Logf("%s: %d words: %.200s", page, n, sentence)
				fallthrough
			case n >= shortestSentence:
				all++
			}
		}
	}
	assert.True(t, float64(long) <= longSentences*float64(all), "%d of %d sentences have more than %d words", long, all,
		longestSentence)
}

func TestSentences_OfMarkdown_Found(t *testing.T) {
	t.Parallel()
	text := "# A heading. It is long.\n" +
		"\nOne sentence\nof two lines. `No. End.` is one word; 1.5 is, see\n[a page](x.md).\n" +
		"\n- **An item.** It has\n  two sentences\n- the next: item; still one\n" +
		"\n| a cell. Another | b |\n|---|---|\n" +
		"\n```sh\nno sentence. None.\n```\n\n<!-- none. None. -->\n![a picture. None.](y.svg)\n"
	var found []int
	for _, sentence := range sentencesOf(text) {
		found = append(found, wordsOf(sentence))
	}
	assert.Equal(t, []int{5, 9, 2, 4, 5, 2, 1, 1}, found, "%q", sentencesOf(text))
}
