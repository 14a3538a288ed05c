package namedsql

import (
	"fmt"
	"io/fs"
	"strings"
)

// Load reads the files sql/*.sql of files and returns the SQL of each statement by its name. It fails when a file
// cannot be read, and when a statement is empty, lacks its semicolon or has the name of another one.
func Load(files fs.FS) (map[string]string, error) {
	paths, err := fs.Glob(files, "sql/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list embedded SQL: %w", err)
	}
	all := map[string]string{}
	for _, path := range paths {
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, fmt.Errorf("read embedded SQL %s: %w", path, err)
		}
		for _, part := range strings.Split(string(text), "-- name: ")[1:] {
			name, body, _ := strings.Cut(part, "\n")
			name = strings.TrimSpace(name)
			statement, ended := strings.CutSuffix(withoutComments(body), ";")
			if _, twice := all[name]; twice || !ended || statement == "" {
				return nil, fmt.Errorf("embedded SQL %s: statement %q is empty, lacks its semicolon or has the name of another one", path, name)
			}
			all[name] = statement
		}
	}
	return all, nil
}

// withoutComments returns the statement of body without comment lines.
func withoutComments(body string) string {
	var sql strings.Builder
	for row := range strings.SplitSeq(body, "\n") {
		if !strings.HasPrefix(row, "--") {
			sql.WriteString(row + "\n")
		}
	}
	return strings.TrimSpace(sql.String())
}
