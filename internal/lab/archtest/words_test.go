package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// oddWords maps odd words to better words. Newcomers did not understand the odd words in names, so no name may use them
// again.
var oddWords = map[string]string{
	"crowd":   "counts of rules",
	"desk":    "provisioner",
	"foresee": "simulate",
	"lives":   "epochs",
	"roster":  "list of tenants",
	"settle":  "what it does: answer from memory, capture, pay, advance",
	"settled": "what is true: answered, captured, paid, complete",
	"shelf":   "queue for a lock",
	"shelved": "parked",
	"sift":    "filter",
	"stands":  "status",
	"tell":    "emit, notify or report",
	"teller":  "dispatcher",
	"told":    "emitted, notified or reported",
	"trail":   "audit log",
	"unborn":  "new balances",
	"untold":  "not emitted",
	"wishes":  "subscribers",
	"world":   "empty ledger",
}

// oddWordsKept lists the packages that still have such names. Rows are only removed from this list. The rows of the
// client stay: in the client, "settle" always means to capture or release the units that a request held. So do the rows
// of the limits: to settle a charge of limits is to change its cost, also in the API.
var oddWordsKept = map[string][]string{
	"client":           {"settle", "settled"},
	"client/quotahttp": {"settle"},

	"internal/gate":             {"settle", "settled"},
	"internal/httpapi":          {"settle"},
	"internal/httpapi/encoding": {"settled"},
	"internal/ratelimit":        {"settle"},
}

// wordOf matches one word of an identifier in mixed case.
var wordOf = regexp.MustCompile(`[A-Z]*[a-z]+|[A-Z]+`)

// oddWordsOf returns the words of oddWords that occur in names which the file declares, each with a position.
func oddWordsOf(f *file) map[string]token.Pos {
	found := map[string]token.Pos{}
	look := func(names ...*ast.Ident) {
		for _, name := range names {
			if name == nil {
				continue
			}
			for _, word := range wordOf.FindAllString(name.Name, -1) {
				if _, odd := oddWords[strings.ToLower(word)]; odd {
					found[strings.ToLower(word)] = name.Pos()
				}
			}
		}
	}
	look(f.syntax.Name)
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			look(n.Name)
		case *ast.TypeSpec:
			look(n.Name)
		case *ast.ValueSpec:
			look(n.Names...)
		case *ast.Field:
			look(n.Names...)
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if name, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
					look(name)
				}
			}
		}
		return true
	})
	return found
}

func TestWords_Names_HaveNoOddOnes(t *testing.T) {
	t.Parallel()
	kept := map[string]bool{}
	for _, f := range repository(t) {
		if f.test || f.generated || strings.HasPrefix(f.pkg, "lab/") {
			continue
		}
		for word, pos := range oddWordsOf(f) {
			if slices.Contains(oddWordsKept[f.pkg], word) {
				kept[f.pkg+" "+word] = true
				continue
			}
			t.Errorf("%s: %q in a name: newcomers do not understand it; better: %s", f.at(pos), word, oddWords[word])
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(oddWordsKept)) {
		for _, word := range oddWordsKept[pkg] {
			assert.True(t, kept[pkg+" "+word], "%s has no name with %q any more: take it from the list", pkg, word)
		}
	}
}

func TestWords_Violations_Caught(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		"package roster":                                               1,
		"package x\n\nfunc tellAll() {}":                               1,
		"package x\n\ntype Wishes struct{ isSettled, worldOf int }":    3,
		"package x\n\nvar unborn, x = 1, 2":                            1,
		"package x\n\nfunc f(told int) { shelf := told; _ = shelf }":   2,
		"package x\n\nvar trailing, stellar, worldly, storyteller int": 0,
		"package x\n\n// The desk was told.\nvar s = \"world\"":        0,
	} {
		f, err := parse("internal/kit/lane/x.go", code+"\n")
		require.NoError(t, err)
		found := oddWordsOf(f)
		assert.Len(t, found, want, "%s: %s found", code, fmt.Sprint(slices.Sorted(maps.Keys(found))))
	}
}
