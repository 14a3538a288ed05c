package portal

import (
	"embed"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"
)

//go:embed messages/*.json
var messageFiles embed.FS

// tags are the languages. The first one is for browsers that accept none of them. Each has a file.
var tags = []language.Tag{language.English, language.German}

// locale is one language: the messages of one file in messages/, and how it writes numbers and dates. A message is a
// text with a key. Its places, such as {amount}, are filled in. All languages have the same messages with the same
// places.
type locale struct {
	tag      string // as in the attribute lang
	messages map[string]string
	months   []string
}

// locales are all languages. They do not change. A browser that asks for none of them gets English.
type locales struct {
	languages []*locale
	matcher   language.Matcher
}

// openLocales reads the files of all languages.
func openLocales() (*locales, error) {
	b := &locales{matcher: language.NewMatcher(tags)}
	for _, tag := range tags {
		text, err := messageFiles.ReadFile("messages/" + tag.String() + ".json")
		if err != nil {
			return nil, err
		}
		l := &locale{tag: tag.String()}
		if err := json.Unmarshal(text, &l.messages); err != nil {
			return nil, err
		}
		l.months = strings.Split(l.messages["months"], " ")
		b.languages = append(b.languages, l)
	}
	return b, nil
}

// in returns the language that suits an Accept-Language header best.
func (b *locales) in(header string) *locale {
	if len(header) > 1000 { // no browser sends such a header
		header = ""
	}
	wanted, _, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return b.languages[0]
	}
	_, at, _ := b.matcher.Match(wanted...)
	return b.languages[at]
}

// say returns a message with its places filled in. places has names and their texts in turn. For an unknown message it
// returns the key.
func (l *locale) say(key string, places ...string) string {
	text, known := l.messages[key]
	if !known {
		return key
	}
	for i := 0; i+1 < len(places); i += 2 {
		text = strings.ReplaceAll(text, "{"+places[i]+"}", places[i+1])
	}
	return text
}

// count returns the singular or plural message of a key, with the number in its place {n}.
func (l *locale) count(key string, n int64) string {
	if n == 1 {
		key += ".one"
	}
	return l.say(key, "n", l.number(n))
}

// number writes a whole number with thousands separators.
func (l *locale) number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "\u2212", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + l.messages["thousands"] + digits[at:]
	}
	return sign + digits
}

// day writes a day.
func (l *locale) day(t time.Time) string {
	return l.say("day", "d", strconv.Itoa(t.Day()), "month", l.months[t.Month()-1], "year", strconv.Itoa(t.Year()))
}

// moment writes an instant to the minute, in t's zone. At the start of a day it writes the day only. It does not name
// the zone.
func (l *locale) moment(t time.Time) string {
	if h, m, s := t.Clock(); h == 0 && m == 0 && s == 0 {
		return l.day(t)
	}
	return l.day(t) + ", " + t.Format("15:04")
}
