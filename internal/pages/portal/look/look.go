package look

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// LogoMax is the maximum size of a logo in bytes. Every visitor loads the logo.
	LogoMax = 64 << 10

	// NameMax is the maximum length of the name in characters.
	NameMax = 64

	// AncestorsMax is the maximum number of origins. Every answer lists all origins in a header.
	AncestorsMax = 20
)

// Look is the appearance of the pages, as the operator has configured it.
type Look struct {
	Name     string // name of the operator, which headings show; may be empty
	Style    []byte // a stylesheet with the colours
	Logo     []byte // nil: no logo
	LogoType string // the media type of Logo
}

// New returns a look. logo is the path of a picture file, or empty if there is no logo. The error joins all faults of
// the settings.
func New(name, theme, logo string) (*Look, error) {
	l := &Look{Name: name}
	var faults []error
	if utf8.RuneCountInString(name) > NameMax || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }) {
		faults = append(faults, fmt.Errorf("the name must have at most %d characters, without control characters", NameMax))
	}
	t, err := ParseTheme(theme)
	if err == nil {
		l.Style = t.style()
	}
	faults = append(faults, err)
	if logo != "" {
		l.Logo, l.LogoType, err = readLogo(logo)
		faults = append(faults, err)
	}
	return l, errors.Join(faults...)
}

// readLogo reads the logo from its file. It returns the picture and its media type.
func readLogo(path string) ([]byte, string, error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, "", fmt.Errorf("the logo: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, LogoMax+1))
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("the logo: %w", err)
	case len(text) > LogoMax:
		return nil, "", fmt.Errorf("the logo %s has more than %d bytes", path, LogoMax)
	case bytes.HasPrefix(text, []byte("\x89PNG\r\n\x1a\n")):
		return text, "image/png", nil
	case utf8.Valid(text) && isSVG(text):
		return text, "image/svg+xml", nil
	}
	return nil, "", fmt.Errorf("the logo %s is neither PNG nor SVG", path)
}

// isSVG reports whether a text begins like an SVG picture.
func isSVG(text []byte) bool {
	start := bytes.TrimSpace(text)
	if bytes.HasPrefix(start, []byte("<?xml")) || bytes.HasPrefix(start, []byte("<!--")) {
		return bytes.Contains(start, []byte("<svg"))
	}
	return bytes.HasPrefix(start, []byte("<svg"))
}

// ancestor matches origins without spaces, semicolons and quotes. So an origin cannot begin another directive of the
// header.
var ancestor = regexp.MustCompile(`^https?://(\*\.)?[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[0-9]{1,5})?$`)

// Ancestors returns the directive frame-ancestors of the Content-Security-Policy. The directive lets pages of these
// origins show our pages in a frame. If there are no origins, the directive forbids frames on every site. The origin
// "self" means our own origin.
func Ancestors(origins []string) (string, error) {
	if len(origins) > AncestorsMax {
		return "", fmt.Errorf("has %d origins; at most %d are allowed", len(origins), AncestorsMax)
	}
	out := "frame-ancestors"
	for _, o := range origins {
		switch o = strings.TrimSpace(o); {
		case o == "self":
			out += " 'self'"
		case ancestor.MatchString(o):
			out += " " + o
		default:
			return "", fmt.Errorf("%.128q is no origin; write https://app.example.com, https://*.example.com or self", o)
		}
	}
	if len(origins) == 0 {
		out += " 'none'"
	}
	return out, nil
}
