package audit

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// jsonText generates random JSON, in the form that PostgreSQL writes and in other forms. It has spaces, escapes,
// repeated members, members in any order, and more than 127 elements.
func jsonText(depth int) *rapid.Generator[string] {
	space := rapid.SampledFrom([]string{"", "", "", " ", "\n\t\r"})
	name := rapid.SampledFrom([]string{`""`, `"a"`, `"b"`, `"ab"`, `"é"`, `"\u0061"`, `"\\\""`, `"😀"`, `"\ud83d\ude00"`, `"\ud800"`, "\"\xff\"", `"` + strings.Repeat("x", 130) + `"`})
	number := rapid.SampledFrom([]string{"0", "-0", "1", "-120", "10", "1000000000000000000000", "1.50", "-0.0", "15e-1", "0.15E1", "2E+10", "0e5"})
	word := rapid.SampledFrom([]string{"true", "false", "null"})
	return rapid.Custom(func(t *rapid.T) string {
		gap := func() string { return space.Draw(t, "space") }
		kinds := 3
		if depth > 0 {
			kinds = 5
		}
		list := func(open, end string, element func() string) string {
			all := make([]string, rapid.SampledFrom([]int{0, 1, 2, 3, 5, 130}).Draw(t, "elements"))
			for i := range all {
				all[i] = gap() + element() + gap()
			}
			return open + gap() + strings.Join(all, ",") + end
		}
		inner := func() string { return jsonText(depth-1).Draw(t, "inner") }
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return word.Draw(t, "word")
		case 1:
			return name.Draw(t, "text")
		case 2:
			return number.Draw(t, "number")
		case 3:
			return list("[", "]", inner)
		default:
			return list("{", "}", func() string { return name.Draw(t, "name") + gap() + ":" + gap() + inner() })
		}
	})
}

// documents returns the same canonical form as plainForm, which uses the general decoder. If the text is not JSON, it
// returns an error.
func TestDocuments_AnyText_EqualGeneralDecoder(t *testing.T) {
	t.Parallel()
	var d documents // used for all documents, because a document may not influence the next one
	broken := 0
	rapid.Check(t, func(rt *rapid.T) {
		document := []byte(jsonText(2).Draw(rt, "document"))
		if rapid.Bool().Draw(rt, "break it") {
			at := rapid.IntRange(0, len(document)-1).Draw(rt, "at")
			document[at] = rapid.SampledFrom([]byte("{}[]:,\"\\ 01-.e+tn\x00\x1f\xff")).Draw(rt, "byte")
		}
		got, err := d.canonical(document)
		if !json.Valid(document) {
			broken++
			require.Error(rt, err, "%q is not JSON, and has the form %q", document, got)
			return
		}
		require.NoError(rt, err, "%q", document)
		want, err := plainForm(nil, document)
		require.True(rt, err == nil && bytes.Equal(got, want),
			"%q has the form\n%q, want\n%q, %v", document, got, want, err)
	})
	assert.NotZero(t, broken, "no text was broken")
}

// The canonical form of a document with usual content is computed without an allocation.
func TestDocuments_PlainDocument_TakesNoMemory(t *testing.T) {
	var d documents
	document := []byte(`{"route": "/search", "region": "é", "sizes": [1, 200, -3], "cached": true, "a": {"b": null}}`)
	n := testing.AllocsPerRun(100, func() { _, _ = d.canonical(document) })
	assert.True(t, n <= 0, "%v allocations", n)
}

func BenchmarkDocuments(b *testing.B) {
	var d documents
	document := []byte(`{"route": "/search", "region": "eu-west-1", "items": 1200}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.canonical(document); err != nil {
			b.Fatal(err)
		}
	}
}

// plainForm appends the canonical form of a JSON document. It reads the document token by token with the general
// decoder.
func plainForm(b, document []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	b, err := plainValue(b, d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return b, nil
}

func plainValue(b []byte, d *json.Decoder) ([]byte, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return plainObject(b, d)
		}
		return plainArray(b, d)
	case string:
		return text(append(b, 's'), []byte(t)), nil
	case json.Number:
		return text(append(b, 'd'), []byte(decimal(t.String()))), nil
	case bool:
		if t {
			return append(b, 't'), nil
		}
		return append(b, 'f'), nil
	default: // null
		return append(b, 'n'), nil
	}
}

func plainArray(b []byte, d *json.Decoder) ([]byte, error) {
	var elements []byte
	n := uint64(0)
	for ; d.More(); n++ {
		var err error
		if elements, err = plainValue(elements, d); err != nil {
			return nil, err
		}
	}
	_, err := d.Token() // ]
	return append(binary.AppendUvarint(append(b, 'a'), n), elements...), err
}

func plainObject(b []byte, d *json.Decoder) ([]byte, error) {
	type member struct {
		name  string
		value []byte
	}
	var members []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		value, err := plainValue(nil, d)
		if err != nil {
			return nil, err
		}
		members = slices.DeleteFunc(members, func(m member) bool { return m.name == name.(string) }) // the last counts
		members = append(members, member{name.(string), value})
	}
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	b = binary.AppendUvarint(append(b, 'o'), uint64(len(members)))
	for _, m := range members {
		b = append(text(b, []byte(m.name)), m.value...)
	}
	_, err := d.Token() // }
	return b, err
}
