package namedsql

import (
	"fmt"
	"io/fs"
	"strings"
)

// Target is the kind of database that statements are for.
type Target bool

// The kinds of databases.
const (
	Plain Target = false // PostgreSQL
	Citus Target = true  // PostgreSQL with Citus, whose tables are distributed
)

// A line that begins with citusLine belongs to the statement only on Citus. A line that ends with plainLine belongs to
// the statement only on PostgreSQL. Load removes both marks.
const (
	citusLine = "-- citus: "
	plainLine = " -- plain"
)

// Must is like Load, but panics if Load would fail. It is for the embedded files of packages. They are part of the
// program and a test loads them, so Must does not panic in a released program.
func Must(target Target, files ...fs.FS) map[string]string {
	all, err := Load(target, files...)
	if err != nil {
		panic(err)
	}
	return all
}

// Load returns the SQL of each statement in the files sql/*.sql, by the statement's name, for one kind of database. It
// fails if a file cannot be read, if a statement is empty or lacks its semicolon, or if two statements have the same
// name.
func Load(target Target, files ...fs.FS) (map[string]string, error) {
	all := map[string]string{}
	for _, f := range files {
		paths, err := fs.Glob(f, "sql/*.sql")
		if err != nil {
			return nil, fmt.Errorf("list embedded SQL: %w", err)
		}
		for _, path := range paths {
			text, err := fs.ReadFile(f, path)
			if err != nil {
				return nil, fmt.Errorf("read embedded SQL %s: %w", path, err)
			}
			if err := target.addTo(all, string(text)); err != nil {
				return nil, fmt.Errorf("embedded SQL %s: %w", path, err)
			}
		}
	}
	return all, nil
}

// addTo adds the statements of a file to the map all.
func (target Target) addTo(all map[string]string, file string) error {
	for _, part := range strings.Split(file, "-- name: ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		name = strings.TrimSpace(name)
		statement, ended := strings.CutSuffix(target.text(body), ";")
		if _, twice := all[name]; twice || !ended || statement == "" {
			return fmt.Errorf("statement %q is empty, lacks its semicolon or has the name of another one", name)
		}
		all[name] = statement
	}
	return nil
}

// text returns the statement in body as the target needs it: without comments, and without the lines for the other kind
// of database.
func (target Target) text(body string) string {
	var sql strings.Builder
	for row := range strings.SplitSeq(body, "\n") {
		only, forCitus := strings.CutPrefix(strings.TrimLeft(row, " "), citusLine)
		both, forPlain := strings.CutSuffix(row, plainLine)
		switch {
		case forCitus && target == Citus:
			sql.WriteString(only + "\n")
		case forCitus, forPlain && target == Citus, strings.HasPrefix(row, "--"):
		default:
			sql.WriteString(both + "\n")
		}
	}
	return strings.TrimSpace(sql.String())
}
