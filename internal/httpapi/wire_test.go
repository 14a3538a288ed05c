package httpapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// A generated type that neither this package nor another generated type mentions belongs in exclude-schemas.
func TestWire_GeneratesOnlyTypesInUse(t *testing.T) {
	t.Parallel()
	generated := parse(t, "wire/types.gen.go")
	used := map[string]bool{}
	ast.Inspect(generated, func(n ast.Node) bool { noteTypes(used, n); return true })
	for _, dir := range []string{".", "catalogdoc"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			ast.Inspect(parse(t, f), func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == "wire" {
						used[s.Sel.Name] = true
					}
				}
				return true
			})
		}
	}
	for _, d := range generated.Decls {
		types, ok := d.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		for _, spec := range types.Specs {
			if name := spec.(*ast.TypeSpec).Name.Name; !used[name] {
				t.Errorf("%s is used nowhere: list its schema under exclude-schemas in wire/oapi-codegen.yaml", name)
			}
		}
	}
}

// noteTypes notes the names of types in a declaration, but not the names of fields.
func noteTypes(used map[string]bool, n ast.Node) {
	var of ast.Expr
	switch n := n.(type) {
	case *ast.TypeSpec:
		of = n.Type
	case *ast.Field:
		of = n.Type
	case *ast.ArrayType:
		of = n.Elt
	case *ast.MapType:
		of = n.Value
	case *ast.StarExpr:
		of = n.X
	}
	if id, ok := of.(*ast.Ident); ok {
		used[id.Name] = true
	}
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
