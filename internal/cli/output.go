package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"golang.org/x/term"
)

// IO has the outputs of a command. Colour says whether standard output is a terminal that shows colours.
type IO struct {
	Out, Err io.Writer
	Colour   bool
}

// Terminal returns the IO for the standard output and the standard error of this process.
func Terminal() *IO {
	colour := term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return &IO{Out: os.Stdout, Err: os.Stderr, Colour: colour}
}

// The ANSI codes of colours and of bold text.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
)

// paint returns text with the ANSI codes for a colour, if Colour is true.
func (io *IO) paint(colour, text string) string {
	if !io.Colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (io *IO) printf(format string, args ...any) { fmt.Fprintf(io.Out, format, args...) }

// json prints v as JSON with indentation.
func (io *IO) json(v any) error {
	enc := json.NewEncoder(io.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// line prints v as JSON on one line.
func (io *IO) line(v any) error {
	enc := json.NewEncoder(io.Out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table prints rows in columns under a heading.
type table struct{ w *tabwriter.Writer }

func (io *IO) table(heading ...string) *table {
	t := &table{tabwriter.NewWriter(io.Out, 0, 0, 2, ' ', 0)}
	t.row(heading...)
	return t
}

func (t *table) row(cells ...string) { fmt.Fprintln(t.w, strings.Join(cells, "\t")) }

func (t *table) end() error { return t.w.Flush() }

// amount returns a number with thousands separators.
func amount(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// at returns a time as text. It returns "-" for the zero time.
func at(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

func atOrNone(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return at(*t)
}

// printable returns text for a terminal. If text has characters that control a terminal, or that nobody can see, it is
// quoted.
func printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.QuoteToASCII(text)
	}
	return text
}

// orDash returns text. It returns "-" if text is empty.
func orDash(text string) string { return cmp.Or(text, "-") }
