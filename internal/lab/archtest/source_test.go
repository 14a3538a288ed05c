package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// module is the import path of the repository's root.
const module = "github.com/quotasvc/quotasvc"

// file is one Go file of the repository.
type file struct {
	path      string // path from the repository's root, with slashes
	pkg       string // directory of the file; "." for the root
	test      bool
	generated bool
	lines     int
	syntax    *ast.File
	positions *token.FileSet
}

// imports returns the import paths of the file.
func (f *file) imports() []string {
	var paths []string
	for _, spec := range f.syntax.Imports {
		// The parser accepts only a string literal here.
		p, _ := strconv.Unquote(spec.Path.Value)
		paths = append(paths, p)
	}
	return paths
}

// at returns the position pos as file:line, as in messages of the compiler.
func (f *file) at(pos token.Pos) string {
	return f.path + ":" + strconv.Itoa(f.positions.Position(pos).Line)
}

// repository returns every Go file below the root. The files are parsed only once.
func repository(t *testing.T) []*file {
	t.Helper()
	files, err := parsed()
	require.NoError(t, err)
	require.True(t, len(files) >= 20, "found only %d Go files: this is not the repository's root", len(files))
	return files
}

var parsed = sync.OnceValues(parseAll)

func parseAll() ([]*file, error) {
	const root = "../../.."
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return nil, fmt.Errorf("the repository's root was not found: %w", err)
	}
	var files []*file
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && name != root && (strings.HasPrefix(base, ".") || base == "testdata" || base == "bin") {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(base, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := parse(filepath.ToSlash(rel), string(text))
		if err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

func parse(name, text string) (*file, error) {
	positions := token.NewFileSet()
	syntax, err := parser.ParseFile(positions, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &file{
		path: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), generated: ast.IsGenerated(syntax),
		lines: strings.Count(text, "\n"), syntax: syntax, positions: positions,
	}, nil
}

// calls returns the positions at which the file uses pkg.name, for example time.Now, for each name in names.
func (f *file) calls(pkg string, names ...string) []token.Pos {
	var found []token.Pos
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		base, ok := selector.X.(*ast.Ident)
		if !ok || base.Name != pkg {
			return true
		}
		for _, name := range names {
			if selector.Sel.Name == name {
				found = append(found, selector.Pos())
			}
		}
		return true
	})
	return found
}
