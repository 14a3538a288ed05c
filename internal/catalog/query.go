package catalog

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// loadQueries reads the embedded files: statements by name, without the comments, which are for readers.
func loadQueries() (map[string]string, error) {
	paths, err := fs.Glob(sqlFiles, "sql/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list embedded SQL: %w", err)
	}
	statements := map[string]string{}
	for _, path := range paths {
		text, err := fs.ReadFile(sqlFiles, path)
		if err != nil {
			return nil, fmt.Errorf("read embedded SQL: %w", err)
		}
		name := ""
		for line := range strings.Lines(string(text)) {
			switch rest, isName := strings.CutPrefix(line, "-- name: "); {
			case isName:
				name = strings.TrimSpace(rest)
				if _, twice := statements[name]; twice {
					return nil, fmt.Errorf("embedded SQL %s: %s is there twice", path, name)
				}
				statements[name] = ""
			case name != "" && !strings.HasPrefix(line, "--"):
				statements[name] += line
			}
		}
	}
	for name, statement := range statements {
		statement, ok := strings.CutSuffix(strings.TrimSpace(statement), ";")
		if !ok || statement == "" {
			return nil, fmt.Errorf("embedded SQL: %s does not end with a semicolon", name)
		}
		statements[name] = statement
	}
	return statements, nil
}
