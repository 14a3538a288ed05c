package words

import (
	"embed"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"
)

//go:embed messages/*.json
var files embed.FS

// tags are the languages. The first one is for browsers that accept none of them. Each has a file.
var tags = []language.Tag{language.English, language.German}

// Language is one language.
type Language struct {
	Tag      string // as in the attribute lang
	messages map[string]string
	months   []string
}

// Book is all languages.
type Book struct {
	languages []*Language
	matcher   language.Matcher
}

// Open reads the languages.
func Open() (*Book, error) {
	b := &Book{matcher: language.NewMatcher(tags)}
	for _, tag := range tags {
		text, err := files.ReadFile("messages/" + tag.String() + ".json")
		if err != nil {
			return nil, err
		}
		l := &Language{Tag: tag.String()}
		if err := json.Unmarshal(text, &l.messages); err != nil {
			return nil, err
		}
		l.months = strings.Split(l.messages["months"], " ")
		b.languages = append(b.languages, l)
	}
	return b, nil
}

// For returns the language that suits an Accept-Language header best.
func (b *Book) For(header string) *Language {
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

// Say returns a message with its places filled in. places has names and their texts in turn. For an unknown message it
// returns the key.
func (l *Language) Say(key string, places ...string) string {
	text, known := l.messages[key]
	if !known {
		return key
	}
	for i := 0; i+1 < len(places); i += 2 {
		text = strings.ReplaceAll(text, "{"+places[i]+"}", places[i+1])
	}
	return text
}

// Count returns the singular or plural message of a key, with the number in its place {n}.
func (l *Language) Count(key string, n int64) string {
	if n == 1 {
		key += ".one"
	}
	return l.Say(key, "n", l.Number(n))
}

// Number writes a whole number with thousands separators.
func (l *Language) Number(n int64) string {
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

// Day writes a day.
func (l *Language) Day(t time.Time) string {
	return l.Say("day", "d", strconv.Itoa(t.Day()), "month", l.months[t.Month()-1], "year", strconv.Itoa(t.Year()))
}

// Moment writes an instant to the minute, in t's zone. At the start of a day it writes the day only. It does not name
// the zone.
func (l *Language) Moment(t time.Time) string {
	if h, m, s := t.Clock(); h == 0 && m == 0 && s == 0 {
		return l.Day(t)
	}
	return l.Day(t) + ", " + t.Format("15:04")
}
