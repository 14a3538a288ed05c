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

// tags lists the languages of the pages. A browser that accepts none of these languages gets the first one. The
// messages of each language are in a file.
var tags = []language.Tag{language.English, language.German}

// locale is one language, with the messages of its file in messages/. It also writes numbers and dates in this
// language. A message has a key. Its text may have placeholders such as {amount}, which are replaced. All languages
// have the same messages with the same placeholders.
type locale struct {
	tag      string // for the HTML attribute lang
	messages map[string]string
	months   []string
}

// locales has all languages. It does not change.
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

// in returns the language that best matches an Accept-Language header.
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

// say returns a message and replaces its placeholders. places alternates the names of placeholders and the texts that
// replace them. If no message has this key, say returns the key.
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

// count returns the message of a key in its singular or plural form. It replaces the placeholder {n} by the number n.
func (l *locale) count(key string, n int64) string {
	if n == 1 {
		key += ".one"
	}
	return l.say(key, "n", l.number(n))
}

// number returns a whole number as text, with thousands separators.
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

// day returns a day as text.
func (l *locale) day(t time.Time) string {
	return l.say("day", "d", strconv.Itoa(t.Day()), "month", l.months[t.Month()-1], "year", strconv.Itoa(t.Year()))
}

// moment returns an instant in t's zone as text, to the minute. At the start of a day it returns only the day. The
// text does not name the zone.
func (l *locale) moment(t time.Time) string {
	if h, m, s := t.Clock(); h == 0 && m == 0 && s == 0 {
		return l.day(t)
	}
	return l.day(t) + ", " + t.Format("15:04")
}
