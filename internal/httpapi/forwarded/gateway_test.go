package forwarded

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

func TestAppendASCII_SameDocumentInPrintableBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.Rune()).Draw(t, "text")
		if !utf8.ValidString(text) {
			t.Skip("not text")
		}
		document, err := json.Marshal(map[string]string{"detail": text})
		require.NoError(t, err)
		got := appendASCII(nil, document)
		assert.True(t, bound.ASCII(string(got), ' ', 1, len(got)), "%q", got)
		var back map[string]string
		err = json.Unmarshal(got, &back)
		assert.True(t, err == nil && back["detail"] == text, "%q became %s (%v)", text, got, err)
	})
}
