package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strings"
)

// The names that the walk depends on. It fails if they are gone.
const (
	startFile, startName = "internal/httpapi/", "serve"

	// A lane's callers wait in laneWait for what its goroutine, laneRun, does.
	lanePath, laneWait, laneRun = module + "/internal/lane", "await", "run"
)

// walker is a walk under way.
type walker struct {
	path   *readingPath
	code   *code
	ran    map[*types.Func]*function
	values map[*types.Func]bool
	worker *function
	active map[string]bool
	file   string // where the walk is
	left   map[string]bool
}

// body is one step of the walk: the body of a function or a literal, with the bindings of its type parameters.
type body struct {
	of      *function
	block   *ast.BlockStmt
	types   bindings
	literal *ast.FuncLit // nil for a function's body
}

// keeps reports whether v has its value from before b is entered: it is a field, or a literal's captured variable.
func (b body) keeps(v *types.Var) bool {
	return v.IsField() || b.literal != nil && (v.Pos() < b.literal.Pos() || v.Pos() >= b.literal.End())
}

// walk measures the path of a request.
func walk(request string, c *code, counted, idle counters) (*readingPath, error) {
	w := &walker{
		path: newReadingPath(request), code: c, ran: functionsThatRan(c, counted, idle), values: usedAsValues(c),
		active: map[string]bool{}, left: map[string]bool{},
	}
	var start *function
	waits := false
	for _, f := range w.ran {
		if strings.HasPrefix(f.file, startFile) && f.object.Name() == startName {
			start = f
		}
		if f.pkg.path == lanePath && f.object.Name() == laneRun {
			w.worker = f
		}
		waits = waits || f.pkg.path == lanePath && f.object.Name() == laneWait
		w.path.add(f)
	}
	if start == nil || w.worker == nil || !waits {
		return nil, fmt.Errorf("%s of %s, or %s or %s of %s did not run: adapt the constants of walk.go", startName, startFile, laneWait, laneRun, lanePath)
	}
	w.enter(body{of: start, block: start.syntax.Body}, 0)
	w.path.finish(w.ran)
	return w.path, nil
}

// enter walks b and everything that it calls.
func (w *walker) enter(b body, depth int) {
	w.move(b.of, "->", depth)
	w.path.walked[b.of.object] = true
	w.path.deepest = max(w.path.deepest, depth+1)
	id := fmt.Sprint(b.block.Pos(), b.types)
	if w.active[id] {
		return
	}
	w.active[id] = true
	for _, call := range callsIn(b.block) {
		for _, next := range w.callees(b, call) {
			w.enter(next, depth+1)
			w.move(b.of, "<-", depth)
		}
	}
	delete(w.active, id)
}

// move notes that the walk is in f.
func (w *walker) move(f *function, way string, depth int) {
	if w.file == f.file {
		return
	}
	w.path.enter(f, way, depth)
	if w.file != "" {
		w.path.changes++
		if w.left[f.file] {
			w.path.returns++
		}
		if path.Dir(w.file) != path.Dir(f.file) {
			w.path.crossings++
		}
		w.left[w.file] = true
	}
	w.file = f.file
}

// callsIn lists the calls in a body in the order in which the names of what they call are written.
func callsIn(block *ast.BlockStmt) []*ast.CallExpr {
	var calls []*ast.CallExpr
	ast.Inspect(block, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && nameOf(call.Fun) != nil {
			calls = append(calls, call)
		}
		return true
	})
	slices.SortStableFunc(calls, func(a, b *ast.CallExpr) int { return cmp.Compare(nameOf(a.Fun).Pos(), nameOf(b.Fun).Pos()) })
	return calls
}

// callees returns what call goes to, of the functions that run.
func (w *walker) callees(from body, call *ast.CallExpr) []body {
	name := nameOf(call.Fun)
	switch object := from.of.pkg.info.Uses[name].(type) {
	case *types.Func:
		object = object.Origin()
		if f := w.ran[object]; f != nil {
			next := []body{{of: f, block: f.syntax.Body, types: bind(object, from.of.pkg.info.Instances[name].TypeArgs, from.types)}}
			if f.pkg.path == lanePath && object.Name() == laneWait {
				next = append(next, body{of: w.worker, block: w.worker.syntax.Body})
			}
			return next
		}
		if receiver := object.Signature().Recv(); receiver != nil {
			if i, ok := receiver.Type().Underlying().(*types.Interface); ok {
				return w.implementations(i, object.Name())
			}
		}
	case *types.Var:
		if signature, ok := object.Type().Underlying().(*types.Signature); ok {
			return w.functionsLike(signature, from.keeps(object), from.types)
		}
	}
	return nil
}

// implementations returns the methods that run of types that implement i.
func (w *walker) implementations(i *types.Interface, name string) []body {
	var found []body
	for object, f := range w.ran {
		receiver := object.Signature().Recv()
		if object.Name() == name && receiver != nil && types.Implements(receiver.Type(), i) {
			found = append(found, body{of: f, block: f.syntax.Body})
		}
	}
	return inOrder(found)
}

// functionsLike returns the functions and literals that run and can be the value of a variable with this signature. The
// signature of a kept value may have type parameters that are unknown here; they stand for any type.
func (w *walker) functionsLike(signature *types.Signature, kept bool, known bindings) []body {
	var found []body
	fits := func(t types.Type) bool {
		return types.Identical(t, signature) || kept && known.match(signature, t)
	}
	for object, f := range w.ran {
		if w.values[object] && len(f.made) == 0 && fits(types.NewSignatureType(nil, nil, nil, object.Signature().Params(), object.Signature().Results(), false)) {
			found = append(found, body{of: f, block: f.syntax.Body})
		}
		for _, literal := range f.made {
			if fits(f.pkg.info.Types[literal].Type) {
				found = append(found, body{of: f, block: literal.Body, literal: literal})
			}
		}
	}
	return inOrder(found)
}

func inOrder(found []body) []body {
	slices.SortFunc(found, func(a, b body) int { return cmp.Compare(a.block.Pos(), b.block.Pos()) })
	return found
}
