package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const module = "github.com/quotasvc/quotasvc"

// code is the product's packages of this module, checked.
type code struct {
	root      string
	positions *token.FileSet
	packages  []*pkg // a package comes after those that it imports
}

type pkg struct {
	path  string
	files []*ast.File
	types *types.Package
	info  *types.Info
}

// listed is the output of `go list` about a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// load reads this module's packages from their source and all others from the export data of Go's build cache.
func load(ctx context.Context, root string) (*code, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles", "./cmd/quotasvc")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	c := &code{root: root, positions: token.NewFileSet()}
	exports := map[string]string{}
	known := imported{ours: map[string]*types.Package{}}
	known.others = importer.ForCompiler(c.positions, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		err := dec.Decode(&l)
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		if !strings.HasPrefix(l.ImportPath, module+"/") {
			exports[l.ImportPath] = l.Export
			continue
		}
		p, err := c.check(l, known)
		if err != nil {
			return nil, err
		}
		known.ours[l.ImportPath] = p.types
		c.packages = append(c.packages, p)
	}
}

func (c *code) check(l listed, known types.Importer) (*pkg, error) {
	p := &pkg{path: l.ImportPath, info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Instances: map[*ast.Ident]types.Instance{},
	}}
	for _, name := range l.GoFiles {
		f, err := parser.ParseFile(c.positions, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
	}
	var err error
	cfg := types.Config{Importer: known}
	p.types, err = cfg.Check(l.ImportPath, c.positions, p.files, p.info)
	return p, err
}

// imported finds packages for the type checker.
type imported struct {
	ours   map[string]*types.Package
	others types.Importer
}

func (i imported) Import(path string) (*types.Package, error) {
	if p := i.ours[path]; p != nil {
		return p, nil
	}
	return i.others.Import(path)
}

// file returns the name of pos' file, from the root.
func (c *code) file(pos token.Pos) string {
	name, err := filepath.Rel(c.root, c.positions.Position(pos).Filename)
	if err != nil {
		return c.positions.Position(pos).Filename
	}
	return filepath.ToSlash(name)
}

// span returns where n is in its file.
func (c *code) span(n ast.Node) span {
	from, to := c.positions.Position(n.Pos()), c.positions.Position(n.End())
	return span{position{from.Line, from.Column}, position{to.Line, to.Column}}
}
