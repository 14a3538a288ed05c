package listing

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

func TestCut_AllPages_HaveEveryItemOnce(t *testing.T) {
	t.Parallel()
	items := []string{"a", "b", "c", "d", "e"}
	var got []string
	for q := (Query{Limit: 2}); ; {
		after, err := q.After()
		require.NoError(t, err)
		var rest []string // what the SQL statement returns: up to one more than the limit
		for _, id := range items {
			if id > after && len(rest) <= q.Limit {
				rest = append(rest, id)
			}
		}
		page := Cut(rest, q, func(id *string) string { return *id })
		got = append(got, page.Items...)
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	assert.Equal(t, fmt.Sprint(items), fmt.Sprint(got), "the pages have %q", got)
}

func TestAfter_OutOfBounds_NamesEveryField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		query  Query
		fields string
	}{
		{Query{Limit: 1}, ""},
		{Query{Limit: Max}, ""},
		{Query{}, "limit "},
		{Query{Limit: Max + 1}, "limit "},
		{Query{Limit: 1, Cursor: "%"}, "cursor "},
		{Query{Limit: 1, Cursor: "AAAA"}, "cursor "},
		{Query{Cursor: "%"}, "limit cursor "},
	} {
		_, err := c.query.After()
		fields := ""
		if e, ok := errors.AsType[*errcode.Error](err); ok {
			for _, f := range e.Fields {
				fields += f.Field + " "
			}
		}
		assert.True(t, fields == c.fields && (err == nil || errcode.Of(err) == errcode.InvalidArgument),
			"%+v: %v", c.query, err)
	}
}
