package archtest

import (
	"go/ast"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	// switchName matches the name of an environment variable of this project.
	switchName = regexp.MustCompile(`^QUOTASVC_[A-Z0-9_]+$`)

	// switchRow matches a row of the table of switches in CONTRIBUTING.md. It captures the variable and what sets it.
	switchRow = regexp.MustCompile("(?m)^\\| `(QUOTASVC_[A-Z0-9_]+)` \\|.*\\|([^|]*)\\|$")

	// switchSet matches a variable that a recipe of the Makefile sets.
	switchSet = regexp.MustCompile(`\b(QUOTASVC_[A-Z0-9_]+)=`)

	// settingTag matches the tag of a field that is a setting of the service. It captures the setting's variable.
	settingTag = regexp.MustCompile(`env:"(QUOTASVC_[A-Z0-9_]+)`)

	// target matches the line of the Makefile that begins a target. It captures the target's name.
	target = regexp.MustCompile(`^([a-z][a-z0-9-]*):`)
)

// noSwitches lists environment variables that occur in tests but are not set by hand.
var noSwitches = []string{
	"QUOTASVC_NO_SUCH_SETTING", // must not exist
	"QUOTASVC_TEST_AS_PROGRAM", // tests that start their own binary set it
}

// namesIn returns the names of environment variables that are string literals in the file.
func namesIn(f *file) (names []string) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok {
			if text, err := strconv.Unquote(literal.Value); err == nil && switchName.MatchString(text) {
				names = append(names, text)
			}
		}
		return true
	})
	return names
}

// switches returns the variables that only tests read, and the variables that the Makefile sets. The value is the
// make target that sets the variable, or empty.
func switches(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	settings := map[string]bool{}
	for _, f := range repository(t) {
		for _, name := range namesIn(f) {
			if f.test || strings.HasPrefix(f.pkg, "internal/lab/testenv") {
				all[name] = ""
			} else {
				settings[name] = true
			}
		}
		if !f.test { // settings of the service are tags of fields
			for _, field := range settingTag.FindAllStringSubmatch(tagsOf(f), -1) {
				settings[field[1]] = true
			}
		}
	}
	maps.DeleteFunc(all, func(name, _ string) bool {
		return settings[name] || slices.Contains(noSwitches, name)
	})
	makefile, err := os.ReadFile("../../../Makefile")
	require.NoError(t, err)
	of := ""
	for line := range strings.Lines(string(makefile)) {
		if m := target.FindStringSubmatch(line); m != nil {
			of = m[1]
		}
		if !strings.HasPrefix(line, "\t") {
			continue
		}
		for _, m := range switchSet.FindAllStringSubmatch(line, -1) {
			all[m[1]] = of
		}
	}
	return all
}

// tagsOf returns the tags of all fields of structs in the file.
func tagsOf(f *file) string {
	var tags strings.Builder
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok && field.Tag != nil {
			tags.WriteString(field.Tag.Value)
		}
		return true
	})
	return tags.String()
}

// The table lists each switch exactly once, with the make target that sets it, and lists nothing else.
func TestSwitches_Contributing_ListsAll(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../CONTRIBUTING.md")
	require.NoError(t, err)
	listed := map[string]string{}
	for _, row := range switchRow.FindAllStringSubmatch(string(text), -1) {
		_, twice := listed[row[1]]
		assert.False(t, twice, "CONTRIBUTING.md lists %s twice", row[1])
		listed[row[1]] = row[2]
	}
	all := switches(t)
	assert.True(t, len(all) >= 20, "found only %d switches", len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		row, ok := listed[name]
		if !ok {
			t.Errorf("CONTRIBUTING.md does not list %s", name)
		} else if by := all[name]; by != "" && !strings.Contains(row, "`make "+by) {
			t.Errorf("CONTRIBUTING.md does not say that `make %s` sets %s", by, name)
		}
		delete(listed, name)
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		t.Errorf("CONTRIBUTING.md lists %s, which nothing reads or sets", name)
	}
}
