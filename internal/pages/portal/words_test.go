package portal

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func open(t *testing.T) *locales {
	t.Helper()
	b, err := openLocales()
	require.NoError(t, err)
	return b
}

var place = regexp.MustCompile(`\{[a-z]+\}`)

func placesOf(text string) []string {
	found := place.FindAllString(text, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// TestLanguages_HaveTheSameMessages: all languages have the same messages with the same placeholders, and the pages
// use each message.
func TestLanguages_HaveTheSameMessages(t *testing.T) {
	t.Parallel()
	b := open(t)
	english := b.languages[0].messages
	for _, l := range b.languages[1:] {
		for key := range l.messages {
			_, ok := english[key]
			assert.True(t, ok, "%s has %s, which English has not", l.tag, key)
		}
		for key, text := range english {
			if theirs := l.messages[key]; theirs == "" || !slices.Equal(placesOf(text), placesOf(theirs)) {
				t.Errorf("%s says %s as %q, which has not the places of %q", l.tag, key, theirs, text)
			}
		}
	}
	var pages strings.Builder
	for _, pattern := range []string{"*.go", "*.templ"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			pages.Write(text)
		}
	}
	for _, m := range regexp.MustCompile(`(?:Say|Count|say)\("([a-z.]+)"`).FindAllStringSubmatch(pages.String(), -1) {
		_, ok := english[m[1]]
		assert.False(t, !ok && !strings.HasSuffix(m[1], "."), "a page says %s, which is no message", m[1])
	}
	composed := regexp.MustCompile(`^(source|limits\.each)\.|^(busy|ended|problem)\.note$`)
	for key := range english {
		if !composed.MatchString(key) && !strings.Contains(pages.String(), `"`+strings.TrimSuffix(key, ".one")+`"`) {
			t.Errorf("no page says %s", key)
		}
	}
}

func TestFor_TheLanguageOfTheBrowser(t *testing.T) {
	t.Parallel()
	b := open(t)
	for header, want := range map[string]string{
		"": "en", "de": "de", "de-AT,de;q=0.9,en;q=0.5": "de", "fr,de;q=0.5": "de", "fr": "en", "en-GB,de": "en",
		"*": "en", ";;;": "en", strings.Repeat("de,", 1000): "en",
	} {
		got := b.in(header).tag
		assert.True(t, got == want, "%.40q gets %s, want %s", header, got, want)
	}
}

func TestLanguages_NumbersAndDays(t *testing.T) {
	t.Parallel()
	b := open(t)
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for header, want := range map[string][]string{
		"en": {"1,234,567", "\u221212", "1 March 2026", "1 March 2026, 13:05"},
		"de": {"1.234.567", "\u221212", "1. März 2026", "1. März 2026, 13:05"},
	} {
		l := b.in(header)
		got := []string{l.number(1234567), l.number(-12), l.moment(at), l.moment(at.Add(13*time.Hour + 5*time.Minute))}
		assert.True(t, slices.Equal(got, want), "%s: %v, want %v", header, got, want)
		assert.Len(t, l.months, 12, "%s has %d months", header, len(l.months))
	}
}
