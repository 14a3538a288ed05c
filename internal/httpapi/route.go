package httpapi

import "strings"

// routeOf returns the route of a URI: its path, without query, in one spelling. Clients choose how to write a path, and a rule for
// /search must not be evaded by writing //search, /./search or /%73earch.
//
// Escapes of printable ASCII are resolved, but for those that would make another path of it (%2F, %3F, %23, %25 and %20);
// everything else is escaped, in upper case. Dot segments are resolved and empty segments dropped. What servers differ in stays
// as it is: case, a slash at the end, and parameters behind a semicolon.
func routeOf(uri string) string {
	if i := strings.IndexAny(uri, "?#"); i >= 0 {
		uri = uri[:i]
	}
	if _, rest, absolute := strings.Cut(uri, "://"); absolute && uri[0] != '/' {
		_, path, _ := strings.Cut(rest, "/")
		uri = "/" + path
	}
	segments := strings.Split(plainPath(uri), "/")
	kept := segments[:0]
	for i, segment := range segments {
		last := i == len(segments)-1
		switch {
		case segment == "..":
			kept = kept[:max(len(kept)-1, 0)]
		case segment != "" && segment != ".":
			kept = append(kept, segment)
			continue
		}
		if last && len(kept) > 0 {
			kept = append(kept, "") // a directory
		}
	}
	return "/" + strings.Join(kept, "/")
}

// plainPath resolves the escapes that need not be there and adds those that need be.
func plainPath(path string) string {
	const upper = "0123456789ABCDEF"
	b := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		c, escaped := path[i], false
		if c == '%' {
			if high, low := nibble(path, i+1), nibble(path, i+2); high >= 0 && low >= 0 {
				c, escaped = byte(high<<4|low), true
				i += 2
			} else {
				escaped = true // a bare % stands for itself
			}
		}
		if c <= ' ' || c > '~' || escaped && strings.IndexByte("/?#%", c) >= 0 {
			b = append(b, '%', upper[c>>4], upper[c&15])
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

// nibble is the value of the hexadecimal digit at i, or -1.
func nibble(s string, i int) int {
	if i >= len(s) {
		return -1
	}
	switch c := s[i]; {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	default:
		return -1
	}
}
