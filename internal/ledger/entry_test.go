package ledger

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEntryKinds_ListEveryConstant(t *testing.T) {
	t.Parallel()
	want := entryKindConstants(t)
	require.NotEmpty(t, want, "entry.go has no constants of type EntryKind")
	got := EntryKinds()
	slices.Sort(want)
	slices.Sort(got)
	assert.Equal(t, want, got, "the constants and the table differ")
	for _, kind := range want {
		_, known := kind.Moves()
		assert.True(t, known, "kind %s has no moves", kind)
	}
}

func TestEntryKind_Unknown_HasNoMoves(t *testing.T) {
	t.Parallel()
	m, known := EntryKind("gift").Moves()
	assert.True(t, !known && m == (Moves{}), "got %+v, %v", m, known)
}

func TestSums_ApplyUnknownKind_Panics(t *testing.T) {
	t.Parallel()
	assert.PanicsWithValue(t, "ledger: entry of unknown kind gift", func() { new(Sums).Apply("gift", 1) })
}

// entryKindConstants returns the values of the constants of type EntryKind in entry.go.
func entryKindConstants(t *testing.T) []EntryKind {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "entry.go", nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var out []EntryKind
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "EntryKind" {
			return true
		}
		for _, value := range spec.Values {
			literal, ok := value.(*ast.BasicLit)
			require.True(t, ok, "%v is not a literal", spec.Names)
			text, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			out = append(out, EntryKind(text))
		}
		return true
	})
	return out
}
