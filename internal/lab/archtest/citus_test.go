package archtest

import (
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// citusPackages matches the value of CITUS_PACKAGES in the Makefile, which may be on several lines.
var citusPackages = regexp.MustCompile(`(?m)^CITUS_PACKAGES := ((?:.*\\\n)*.*)$`)

// make test-citus runs the packages of CITUS_PACKAGES on a Citus cluster. If a statement is executed by none of these
// tests, nobody knows whether Citus refuses it. So the list must name every package whose tests use the database.
func TestMakefile_TestCitus_NamesEveryPackageThatUsesTheDatabase(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../Makefile")
	require.NoError(t, err)
	found := citusPackages.FindSubmatch(text)
	require.NotNil(t, found, "the Makefile has no CITUS_PACKAGES")
	named := func(pkg string) bool {
		for _, pattern := range strings.Fields(strings.ReplaceAll(string(found[1]), "\\\n", " ")) {
			pattern = strings.TrimPrefix(pattern, "./")
			if below, all := strings.CutSuffix(pattern, "/..."); pattern == pkg || all && (below == pkg || strings.HasPrefix(pkg, below+"/")) {
				return true
			}
		}
		return false
	}
	seen := map[string]bool{}
	for _, f := range repository(t) {
		if f.test && !seen[f.pkg] && usesDatabase(f) {
			if seen[f.pkg] = true; !named(f.pkg) {
				t.Errorf("%s has a test on PostgreSQL (%s) and is not in CITUS_PACKAGES of the Makefile", f.pkg, f.path)
			}
		}
	}
	assert.True(t, len(seen) >= 20, "only %d packages use the database: the test does not see them", len(seen))
}

// usesDatabase reports whether a file uses a function of testenv that creates a database for a test.
func usesDatabase(f *file) (uses bool) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if call, ok := n.(*ast.SelectorExpr); ok {
			from, named := call.X.(*ast.Ident)
			uses = uses || named && from.Name == "testenv" && strings.HasPrefix(call.Sel.Name, "Postgres")
		}
		return !uses
	})
	return uses
}
