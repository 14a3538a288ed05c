package verifier

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// document generates the text of a random JSON value as any client may write it. It has spaces and escapes, repeated
// members, members in any order, and numbers in any form.
func document(depth int) *rapid.Generator[string] {
	space := rapid.SampledFrom([]string{"", "", " ", "\n\t"})
	text := rapid.Custom(func(t *rapid.T) string {
		var out strings.Builder
		out.WriteByte('"')
		for range rapid.IntRange(0, 6).Draw(t, "length") {
			out.WriteString(rapid.SampledFrom([]string{
				"a", "B", "0", "é", "é", "\u2028", "😀", `\n`, `\/`, "/", `\"`, `\\`, `\u0041`, `\u00e9`, `\u001f`, `\ud83d\ude00`, "<", "\x7f",
			}).Draw(t, "part"))
		}
		return out.String() + `"`
	})
	number := rapid.Custom(func(t *rapid.T) string {
		out := rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign") +
			rapid.SampledFrom([]string{"0", "1", "10", "100200", "9007199254740993", "123456789012345678901234567890"}).Draw(t, "whole")
		out += rapid.SampledFrom([]string{"", ".0", ".5", ".250", ".000100"}).Draw(t, "fraction")
		return out + rapid.SampledFrom([]string{"", "e0", "E+2", "e-3", "e10", "E05"}).Draw(t, "exponent")
	})
	return rapid.Custom(func(t *rapid.T) string {
		kinds := 4
		if depth > 0 {
			kinds = 6
		}
		gap := func() string { return space.Draw(t, "space") }
		list := func(open, shut string, element func() string) string {
			var all []string
			for range rapid.IntRange(0, 4).Draw(t, "elements") {
				all = append(all, gap()+element()+gap())
			}
			return open + strings.Join(all, ",") + shut
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "word")
		case 1:
			return text.Draw(t, "text")
		case 2, 3:
			return number.Draw(t, "number")
		case 4:
			return list("[", "]", func() string { return document(depth-1).Draw(t, "element") })
		default:
			return list("{", "}", func() string { return text.Draw(t, "name") + gap() + ":" + gap() + document(depth-1).Draw(t, "member") })
		}
	})
}

// The hash chain covers the JSON document that the ledger received. verify reads that document as PostgreSQL has
// stored it (jsonb). Both must have the same canonical form.
func TestVerify_DocumentsOfStrangers_HaveOneForm(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 1_000_000)
	var documents []string
	rapid.Check(t, func(rt *rapid.T) {
		for range 5 {
			text := fmt.Sprintf(`{"a": %s, "b": %s}`, document(3).Draw(rt, "first"), document(2).Draw(rt, "second"))
			if bound.Metadata([]byte(text)) {
				documents = append(documents, text)
			}
		}
	})
	require.True(t, len(documents) >= 400, "only %d documents", len(documents))
	var work errgroup.Group
	work.SetLimit(50)
	for i, text := range documents {
		work.Go(func() error {
			debit := debitOf("acme", fmt.Sprint("d", i), 1)
			debit.Metadata = []byte(text)
			if _, err := pg.Do(t.Context(), b.ledger, debit); err != nil {
				return fmt.Errorf("%s: %w", text, err)
			}
			return nil
		})
	}
	b.must(work.Wait())
	assert.GreaterOrEqual(t, b.mustVerify().Entries, int64(len(documents)), "entries")
}
