package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// heldRow is a row of a table in the documentation. The last cell of the row names the tests that prove it.
type heldRow struct {
	what  string // text of the first cell
	tests []string
}

// heldRows returns the rows of all tables of a page under docs/ that have this number of columns and a last column
// `test`. It fails the test if a row names no test or a test that does not exist.
func heldRows(t *testing.T, page string, columns int) []heldRow {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", page))
	require.NoError(t, err)
	declared := testsOfRepository(t)
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	var rows []heldRow
	inTable := false
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		last := strings.TrimSpace(cells[len(cells)-1])
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case last == "test":
			inTable = len(cells) == columns
			assert.True(t, inTable, "%s: a table of %d columns, want %d", page, len(cells), columns)
		case !inTable || strings.HasPrefix(line, "|---"):
		case len(cells) != columns:
			t.Errorf("%s: %d cells, want %d: %s", page, len(cells), columns, line)
		default:
			row := heldRow{what: strings.TrimSpace(cells[0])}
			for _, m := range named.FindAllStringSubmatch(last, -1) {
				row.tests = append(row.tests, m[1])
				assert.True(t, slices.Contains(declared, m[1]), "%s: %s: there is no test %s", page, row.what, m[1])
			}
			assert.NotEmpty(t, row.tests, "%s: %s: no test", page, row.what)
			rows = append(rows, row)
		}
	}
	return rows
}

// demandRows fails the test unless each of the wanted texts is the first cell of exactly one row.
func demandRows(t *testing.T, rows []heldRow, want ...string) {
	t.Helper()
	n := map[string]int{}
	for _, row := range rows {
		n[row.what]++
	}
	for _, what := range want {
		assert.True(t, n[what] == 1, "%d rows of %q, want 1", n[what], what)
	}
}

// testsOfRepository returns the names of all tests of the repository.
func testsOfRepository(t *testing.T) []string {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	var out []string
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			out = append(out, m[1])
		}
		return err
	})
	require.NoError(t, err)
	return out
}

// Every row of the table in docs/degradation.md names tests, and every fault of the contract has a row.
func TestDegradation_Table_EveryFaultHasTests(t *testing.T) {
	t.Parallel()
	demandRows(t, heldRows(t, "degradation.md", 6),
		"PostgreSQL slow", "PostgreSQL paused", "PostgreSQL down", "PostgreSQL out of connections", "PostgreSQL's disk full", "PostgreSQL read-only",
		"PostgreSQL fails over", "the synchronous standby away", "Redis slow", "Redis paused", "Redis down", "Redis flushed", "Redis failed over", "Redis full", "an instance paused", "an instance killed", "PostgreSQL's clock steps",
		"an instance's clock steps", "Redis's clock steps", "the network to PostgreSQL cut", "the network to Redis cut", "the network to PostgreSQL slow",
		"the network to Redis slow", "PostgreSQL and Redis down", "the log is not read, or its reader is gone",
		"a client, a scrape, a receiver of webhooks or a collector of traces that does not read",
	)
}
