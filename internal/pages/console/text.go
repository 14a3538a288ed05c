package console

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/quotasvc/quotasvc/client"
)

// num returns a number as text with thousands separators.
func num(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "\u2212", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// signed returns a number as num does. A positive number gets a plus sign.
func signed(n int64) string {
	if n > 0 {
		return "+" + num(n)
	}
	return num(n)
}

// count returns the number n with the noun in its singular or plural form.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return num(int64(n)) + " " + many
}

// stamp returns an instant in a zone as text, to the second, with the name of the zone.
func stamp(t time.Time, in *time.Location) string { return t.In(in).Format("2006-01-02 15:04:05 MST") }

// short returns an instant as text, to the minute. At the start of a day it returns only the day.
func short(t time.Time, in *time.Location) string {
	local := t.In(in)
	if h, m, s := local.Clock(); h == 0 && m == 0 && s == 0 {
		return local.Format("2006-01-02")
	}
	return local.Format("2006-01-02 15:04")
}

// machine returns an instant in UTC in RFC 3339 form, for programs.
func machine(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// zoneOf returns the zone with an IANA name. It returns UTC if this machine's time zone database does not have the
// zone.
func zoneOf(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return zone
}

// path returns the path of a page: the console's prefix and these segments. A segment may contain any characters.
func path(segments ...string) string {
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return Prefix + strings.Join(segments, "/")
}

// with returns a path with a query. pairs alternates names and values. Empty values are omitted.
func with(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// sentence returns an error detail of the API as a sentence, with a capital letter and a full stop.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(s)
	s = string(unicode.ToUpper(first)) + s[size:]
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}

// words returns an identifier of the API with spaces: rollover_in becomes rollover in.
func words[T ~string](name T) string { return strings.ReplaceAll(string(name), "_", " ") }

// joined returns identifiers of the API as one text, such as the types of events that a webhook receives.
func joined[T ~string](names []T) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = string(name)
	}
	return strings.Join(list, ", ")
}

// pretty returns JSON with line breaks and indentation. It returns the empty string if there is nothing to show: for
// null, for {} and for empty JSON. Numbers and texts stay as they are, because a decoder would change some of them.
func pretty(raw json.RawMessage) string {
	var out bytes.Buffer
	if isNothing(raw) || json.Indent(&out, raw, "", "  ") != nil {
		return ""
	}
	return out.String()
}

// compact returns JSON on one line. It returns the empty string if there is nothing to show, as pretty does.
func compact(raw json.RawMessage) string {
	var out bytes.Buffer
	if isNothing(raw) || json.Compact(&out, raw) != nil {
		return ""
	}
	return out.String()
}

func isNothing(raw json.RawMessage) bool {
	text := string(bytes.TrimSpace(raw))
	return text == "null" || text == "{}"
}

// members returns the members of a JSON object. It returns nil if the text is not a JSON object. Numbers are
// json.Number.
func members(object json.RawMessage) map[string]any {
	var out map[string]any
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	if d.Decode(&out) != nil {
		return nil
	}
	return out
}

// said returns the data of an event as text for people, with the members sorted by name. Numbers have thousands
// separators, and times are in UTC. Members that are null are omitted.
func said(data map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(data)) {
		var text string
		switch value := data[name].(type) {
		case nil:
			continue
		case string:
			text = value
			if at, err := time.Parse(time.RFC3339Nano, value); err == nil {
				text = stamp(at, time.UTC)
			}
		case json.Number:
			text = value.String()
			if whole, err := value.Int64(); err == nil {
				text = num(whole)
			}
		default:
			raw, err := json.Marshal(value)
			if err != nil {
				continue
			}
			text = string(raw)
		}
		parts = append(parts, words(name)+" "+text)
	}
	return strings.Join(parts, " \u00b7 ")
}

// formatFloat returns a number as text, without an exponent.
func formatFloat(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// periodText returns a text with the start and the end of a period in a zone.
func periodText(start, end *time.Time, in *time.Location) string {
	switch {
	case start == nil:
		return "no period"
	case end == nil:
		return "from " + short(*start, in) + ", no end"
	default:
		return short(*start, in) + " to " + short(*end, in)
	}
}

// sourceText returns a text that says from which kind of grant the units come, for example "top-up".
func sourceText(s client.Source) string {
	switch s {
	case client.SourceAllowance:
		return "the plan's allowance"
	case client.SourceTopup:
		return "top-up"
	case client.SourceRollover:
		return "rolled over"
	default:
		return string(s)
	}
}
