package main

import (
	"go/ast"
	"go/types"
	"slices"
)

// function is a function of this module that runs.
type function struct {
	object *types.Func
	syntax *ast.FuncDecl
	pkg    *pkg
	file   string
	ran    []span // its blocks that ran

	// made are the literals that ran of a function that did not run itself: they were made before the request.
	made []*ast.FuncLit
}

// functionsThatRan returns the functions that were counted in the request and not in the idle window.
func functionsThatRan(c *code, request, idle counters) map[*types.Func]*function {
	ran := map[*types.Func]*function{}
	for _, p := range c.packages {
		for _, f := range p.files {
			name := c.file(f.Pos())
			for _, d := range f.Decls {
				syntax, ok := d.(*ast.FuncDecl)
				if !ok || syntax.Body == nil {
					continue
				}
				body := c.span(syntax.Body)
				blocks := request.within(name, body)
				if len(blocks) == 0 || len(idle.within(name, body)) > 0 {
					continue
				}
				object, ok := p.info.Defs[syntax.Name].(*types.Func)
				if !ok {
					continue
				}
				ran[object] = &function{object: object, syntax: syntax, pkg: p, file: name, ran: blocks, made: madeBefore(c, syntax, blocks)}
			}
		}
	}
	return ran
}

// madeBefore returns the literals of a function that the blocks lie in, or nil if one lies in none: the function ran.
func madeBefore(c *code, syntax *ast.FuncDecl, blocks []span) []*ast.FuncLit {
	var literals, made []*ast.FuncLit
	ast.Inspect(syntax.Body, func(n ast.Node) bool {
		literal, ok := n.(*ast.FuncLit)
		if ok {
			literals = append(literals, literal)
		}
		return !ok // a literal in a literal is part of it
	})
	for _, b := range blocks {
		i := slices.IndexFunc(literals, func(l *ast.FuncLit) bool { return c.span(l.Body).contains(b) })
		if i < 0 {
			return nil
		}
		if !slices.Contains(made, literals[i]) {
			made = append(made, literals[i])
		}
	}
	return made
}

// usedAsValues returns the functions that the code mentions without calling them.
func usedAsValues(c *code) map[*types.Func]bool {
	values := map[*types.Func]bool{}
	for _, p := range c.packages {
		called := map[*ast.Ident]bool{}
		for _, f := range p.files {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					called[nameOf(n.Fun)] = true
				case *ast.Ident:
					if object, ok := p.info.Uses[n].(*types.Func); ok && !called[n] {
						values[object.Origin()] = true
					}
				}
				return true
			})
		}
	}
	return values
}

// nameOf returns the identifier that an expression ends with, such as run of l.run and of run[T], or nil.
func nameOf(e ast.Expr) *ast.Ident {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return e.Sel
	case *ast.IndexExpr:
		return nameOf(e.X)
	case *ast.IndexListExpr:
		return nameOf(e.X)
	}
	return nil
}
