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

// madeBefore returns the outermost literals that ran of a function that did not run itself, or nil if the function ran.
func madeBefore(c *code, syntax *ast.FuncDecl, blocks []span) []*ast.FuncLit {
	var literals []*ast.FuncLit // the outer one before those in it
	ast.Inspect(syntax.Body, func(n ast.Node) bool {
		if literal, ok := n.(*ast.FuncLit); ok {
			literals = append(literals, literal)
		}
		return true
	})
	ran := map[*ast.FuncLit]bool{}
	for _, b := range blocks {
		var innermost *ast.FuncLit
		for _, l := range literals {
			if c.span(l.Body).contains(b) {
				innermost = l
			}
		}
		if innermost == nil {
			return nil
		}
		ran[innermost] = true
	}
	var made []*ast.FuncLit
	for _, l := range literals {
		inside := slices.ContainsFunc(made, func(outer *ast.FuncLit) bool { return c.span(outer.Body).contains(c.span(l)) })
		if ran[l] && !inside {
			made = append(made, l)
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
