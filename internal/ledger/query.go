package ledger

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// queries maps the names in sql/*.sql to their statements. Comments stay in the files: they are for readers.
type queries map[string]string

// loadQueries parses the embedded files. Every statement starts with "-- name: X" and ends with a semicolon.
func loadQueries() (queries, error) {
	q := queries{}
	paths, err := fs.Glob(sqlFiles, "sql/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list embedded SQL: %w", err)
	}
	for _, path := range paths {
		text, err := fs.ReadFile(sqlFiles, path)
		if err != nil {
			return nil, fmt.Errorf("read embedded SQL %s: %w", path, err)
		}
		for _, part := range strings.Split(string(text), "-- name: ")[1:] {
			name, body, _ := strings.Cut(part, "\n")
			var sql strings.Builder
			for row := range strings.SplitSeq(body, "\n") {
				if !strings.HasPrefix(row, "--") {
					sql.WriteString(row + "\n")
				}
			}
			statement := strings.TrimSuffix(strings.TrimSpace(sql.String()), ";")
			name = strings.TrimSpace(name)
			if _, twice := q[name]; twice || statement == "" {
				return nil, fmt.Errorf("embedded SQL %s: statement %q is empty or named twice", path, name)
			}
			q[name] = statement
		}
	}
	return q, nil
}
