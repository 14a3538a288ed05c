package archtest

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// step matches the name of a Go file in a section "The way of one ..." of internal/README.md. It also captures the
// name of a function if one follows the file's name.
var step = regexp.MustCompile("`((?:[a-z]+/)*[a-z_]+\\.go)`(?: ([A-Za-z]+))?")

// internal/README.md follows one debit and one check from file to file. Each file and each function that it names
// must exist.
func TestArchitecture_Ways_NameFilesAndFunctions(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../internal/README.md")
	require.NoError(t, err)
	steps := 0
	for _, way := range strings.Split(string(text), "\n## ")[1:] {
		if !strings.HasPrefix(way, "The way of one ") {
			continue
		}
		dir := ""
		for line := range strings.Lines(way) {
			cells := strings.Split(line, " | ")
			if len(cells) != 3 {
				continue
			}
			for _, m := range step.FindAllStringSubmatch(cells[1], -1) {
				if steps++; strings.Contains(m[1], "/") {
					dir = path.Dir(m[1])
				}
				file := path.Join("../..", dir, path.Base(m[1]))
				source, err := os.ReadFile(file)
				if err != nil {
					t.Errorf("step %s names a file that does not exist: %v", cells[0], err)
				} else if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + m[2] + `\b`).Match(source) {
					t.Errorf("step %s names %s, which %s does not have", cells[0], m[2], file)
				}
			}
		}
	}
	assert.True(t, steps >= 25, "%d steps; expected more", steps)
}
