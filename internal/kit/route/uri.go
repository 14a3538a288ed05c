package route

import "strings"

// FromURI returns the route of a URI: its path in a normal form, without the query. Clients choose how they write a
// path, so /search, //search, /./search and /%73earch must give the same route.
//
// FromURI unescapes printable ASCII characters, except for those that would change the path (%2F, %3F, %23, %25 and
// %20). It escapes all other characters, with upper-case digits. It resolves dot segments and removes empty segments.
// It keeps differences that some servers ignore and other servers distinguish: see Forms.
func FromURI(uri string) string {
	if i := strings.IndexAny(uri, "?#"); i >= 0 {
		uri = uri[:i]
	}
	if _, rest, absolute := strings.Cut(uri, "://"); absolute && uri[0] != '/' {
		_, path, _ := strings.Cut(rest, "/")
		uri = "/" + path
	}
	return resolve("/" + plainPath(uri))
}

// resolve resolves dot segments and removes empty segments. It keeps a slash at the beginning and a slash at the end.
func resolve(path string) string {
	rest, rooted := strings.CutPrefix(path, "/")
	segments := strings.Split(rest, "/")
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
			kept = append(kept, "") // a trailing slash
		}
	}
	rest = strings.Join(kept, "/")
	if rooted || rest == "" {
		return "/" + rest
	}
	return rest
}

// plainPath removes unnecessary escapes and adds missing escapes.
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
				escaped = true // a % without two digits is a literal %
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

// nibble returns the value of the hexadecimal digit at i. It returns -1 if there is no such digit.
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
