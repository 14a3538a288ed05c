package audit

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// documents writes the canonical form of JSON documents, which depends only on their values. Members are sorted by
// name, and only the last of several members with equal names is kept. Texts have no escapes. Numbers are digits and
// a power of ten. It reads a document once and reuses its buffers, because the general decoder took half of the time
// of a pass. Rare forms, such as an escape or a fraction, are left to slower, general code. It is not safe for
// concurrent use.
type documents struct {
	in      []byte
	at      int // the next byte of in
	out     []byte
	members []member // members of the objects that are being read
	spare   []byte
}

// member is a member of an object: its name, and the position of its canonical form in out.
type member struct {
	name     []byte
	from, to int
}

var errDocument = errors.New("not one JSON value")

// canonical returns the canonical form of a document. It is valid until the next call.
func (d *documents) canonical(document []byte) ([]byte, error) {
	d.in, d.at, d.out, d.members = document, 0, d.out[:0], d.members[:0]
	err := d.value()
	if err == nil && (d.next() != 0 || d.at < len(d.in)) {
		err = errDocument
	}
	if err != nil {
		return nil, fmt.Errorf("byte %d: %w", d.at, err)
	}
	return d.out, nil
}

// next skips spaces and returns the byte after them, 0 at the end.
func (d *documents) next() byte {
	for ; d.at < len(d.in); d.at++ {
		if c := d.in[d.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

func (d *documents) value() error {
	switch c := d.next(); c {
	case '{':
		return d.object()
	case '[':
		return d.array()
	case '"':
		t, err := d.text()
		d.out = text(append(d.out, 's'), t)
		return err
	case 't':
		return d.word("true")
	case 'f':
		return d.word("false")
	case 'n':
		return d.word("null")
	default:
		return d.number()
	}
}

// word reads true, false or null. The canonical form is the first letter.
func (d *documents) word(w string) error {
	if !bytes.HasPrefix(d.in[d.at:], []byte(w)) {
		return errDocument
	}
	d.at += len(w)
	d.out = append(d.out, w[0])
	return nil
}

// text reads a text and returns its bytes.
func (d *documents) text() ([]byte, error) {
	if d.next() != '"' {
		return nil, errDocument
	}
	from, plain := d.at, true
	for i := from + 1; i < len(d.in); i++ {
		switch c := d.in[i]; {
		case c == '"':
			d.at = i + 1
			t := d.in[from+1 : i]
			if plain || utf8.Valid(t) && !bytes.ContainsFunc(t, escaped) {
				return t, nil
			}
			var decoded string
			err := json.Unmarshal(d.in[from:d.at], &decoded)
			return []byte(decoded), err
		case c == '\\':
			plain = false
			i++
		case c < ' ' || c >= utf8.RuneSelf:
			plain = false
		}
	}
	return nil, errDocument
}

// escaped reports whether r begins an escape, or is not allowed in a text.
func escaped(r rune) bool { return r == '\\' || r < ' ' }

// number reads a number.
func (d *documents) number() error {
	from, whole := d.at, true
	for ; d.at < len(d.in); d.at++ {
		c := d.in[d.at]
		if c >= '0' && c <= '9' || c == '-' && d.at == from {
			continue
		}
		if c != '.' && c != 'e' && c != 'E' && c != '+' && c != '-' {
			break
		}
		whole = false
	}
	number := d.in[from:d.at]
	digits := bytes.TrimPrefix(number, []byte("-"))
	if !whole || len(digits) == 0 || digits[0] == '0' {
		if !json.Valid(number) {
			return errDocument
		}
		d.out = text(append(d.out, 'd'), []byte(decimal(string(number))))
		return nil
	}
	short := bytes.TrimRight(number, "0")
	d.out = append(d.out, 'd')
	head := d.open()
	d.out = strconv.AppendInt(append(append(d.out, short...), 'e'), int64(len(number)-len(short)), 10)
	d.close(head, len(d.out)-head)
	return nil
}

// open reserves one byte for the count of the elements that follow. close writes the count.
func (d *documents) open() int {
	d.out = append(d.out, 0)
	return len(d.out)
}

func (d *documents) close(at, n int) {
	if n < 0x80 {
		d.out[at-1] = byte(n) // a varint of one byte
		return
	}
	d.out = slices.Replace(d.out, at-1, at, binary.AppendUvarint(nil, uint64(n))...)
}

// more reports whether another element of a list follows. It reads the separator before the element, or the end of the
// list. n is the number of elements that were read before.
func (d *documents) more(n int, end byte) (bool, error) {
	switch c := d.next(); {
	case c == end:
		d.at++
		return false, nil
	case n == 0:
		return true, nil
	case c == ',':
		d.at++
		return true, nil
	default:
		return false, errDocument
	}
}

func (d *documents) array() error {
	d.at++
	d.out = append(d.out, 'a')
	head := d.open()
	for n := 0; ; n++ {
		more, err := d.more(n, ']')
		if err != nil {
			return err
		}
		if !more {
			d.close(head, n)
			return nil
		}
		if err := d.value(); err != nil {
			return err
		}
	}
}

func (d *documents) object() error {
	d.at++
	d.out = append(d.out, 'o')
	head, first, sorted := d.open(), len(d.members), true
	for n := 0; ; n++ {
		more, err := d.more(n, '}')
		if err != nil {
			return err
		}
		if !more {
			break
		}
		name, err := d.text()
		if err != nil {
			return err
		}
		if d.next() != ':' {
			return errDocument
		}
		d.at++
		m := member{name: name, from: len(d.out)}
		d.out = text(d.out, name)
		if err := d.value(); err != nil {
			return err
		}
		m.to = len(d.out)
		sorted = sorted && (n == 0 || bytes.Compare(d.members[len(d.members)-1].name, name) < 0)
		d.members = append(d.members, m)
	}
	n := len(d.members) - first
	if !sorted {
		n = d.sort(d.members[first:], head)
	}
	d.members = d.members[:first]
	d.close(head, n)
	return nil
}

// sort sorts the members of an object, which are in out from the position `from` on. Of several members with equal
// names it keeps the last. It returns the number of members that remain.
func (d *documents) sort(members []member, from int) (n int) {
	slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(a.name, b.name) })
	d.spare = append(d.spare[:0], d.out[from:]...)
	d.out = d.out[:from]
	for i, m := range members {
		if i+1 < len(members) && bytes.Equal(m.name, members[i+1].name) {
			continue
		}
		d.out = append(d.out, d.spare[m.from-from:m.to-from]...)
		n++
	}
	return n
}
