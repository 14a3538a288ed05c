package archtest

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// subjectFirst matches a test name that begins with a subject. Conditions and guarantees follow the subject.
var subjectFirst = regexp.MustCompile(`^Test[A-Z][A-Za-z0-9]*(_[A-Za-z0-9]+)+$`)

// testNamesStartWithTheSubject returns the tests with other names, for example TestADebitIsDenied. A reader who looks
// for the tests of debits would not find that name.
func testNamesStartWithTheSubject(f *file) []string {
	var wrong []string
	for _, d := range f.syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || !f.test || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") || fn.Name.Name == "TestMain" {
			continue
		}
		if !subjectFirst.MatchString(fn.Name.Name) {
			wrong = append(wrong, fmt.Sprintf("%s: %s: start the name with what it tests, as in TestDebit_NeedsGrant_402", f.at(fn.Pos()), fn.Name.Name))
		}
	}
	return wrong
}

func TestNames_Repository_StartWithSubject(t *testing.T) {
	t.Parallel()
	for _, f := range repository(t) {
		for _, wrong := range testNamesStartWithTheSubject(f) {
			t.Error(wrong)
		}
	}
}

func TestNames_Violations_Caught(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"TestDebit_NeedsGrant_402": true, "TestSha256_Sum": true, "TestMain": true, "BenchmarkDebit": true,
		"TestADebitIsDenied": false, "Test_Debit": false, "TestDebit_": false, "Testdebit_x": false,
	} {
		f, err := parse("internal/kit/lane/x_test.go", "package lane\n\nfunc "+name+"(t *testing.T) {}\n")
		require.NoError(t, err)
		assert.Equal(t, !ok, len(testNamesStartWithTheSubject(f)) > 0, "%s: violation", name)
	}
}
