package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// mostEntered is the number of files that the report names.
const mostEntered = 8

// readingPath is the measurement of one request.
type readingPath struct {
	request   string
	functions int
	files     map[string]bool
	packages  map[string]bool
	lines     int // of Go that ran

	changes, returns int // of file, in the order of calls
	crossings        int // changes into another package
	deepest          int // functions in the longest chain of calls
	entered          map[string]int
	types            map[*types.TypeName]bool
	walked           map[*types.Func]bool
	notWalked        []string
	trace            []string
}

func newReadingPath(request string) *readingPath {
	return &readingPath{
		request: request, files: map[string]bool{}, packages: map[string]bool{}, entered: map[string]int{},
		types: map[*types.TypeName]bool{}, walked: map[*types.Func]bool{},
	}
}

// add counts a function that ran.
func (p *readingPath) add(f *function) {
	p.functions++
	p.files[f.file] = true
	p.packages[path.Dir(f.file)] = true
	lines := map[int]bool{}
	for _, b := range f.ran {
		for n := b.from.line; n <= b.to.line; n++ {
			lines[n] = true
		}
	}
	p.lines += len(lines)
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		if name, ok := f.pkg.info.Uses[id].(*types.TypeName); ok {
			p.meet(name)
		}
		return true
	})
}

// meet counts a type if it has a name of this module. What an alias stands for is met with it.
func (p *readingPath) meet(name *types.TypeName) {
	if _, parameter := name.Type().(*types.TypeParam); parameter || name.Pkg() == nil || !strings.HasPrefix(name.Pkg().Path(), module+"/") {
		return
	}
	p.types[name] = true
	if alias, ok := name.Type().(*types.Alias); ok {
		if named, ok := types.Unalias(alias).(*types.Named); ok {
			p.meet(named.Origin().Obj())
		}
	}
}

// enter notes a change of file.
func (p *readingPath) enter(f *function, way string, depth int) {
	p.entered[f.file]++
	p.trace = append(p.trace, strings.Repeat("  ", depth)+way+" "+f.file+" "+f.object.Name())
}

// finish notes what the walk did not reach.
func (p *readingPath) finish(ran map[*types.Func]*function) {
	for object, f := range ran {
		if !p.walked[object] {
			p.notWalked = append(p.notWalked, strings.TrimPrefix(f.file, "internal/")+" "+object.Name())
		}
	}
	slices.Sort(p.notWalked)
}

// typesByPackage returns the names of the types that are met.
func (p *readingPath) typesByPackage() map[string][]string {
	names := map[string][]string{}
	for t := range p.types {
		pkg := strings.TrimPrefix(strings.TrimPrefix(t.Pkg().Path(), module+"/"), "internal/")
		names[pkg] = append(names[pkg], t.Name())
	}
	for _, n := range names {
		slices.Sort(n)
	}
	return names
}

func (p *readingPath) print(out io.Writer, trace, typeNames bool) {
	names := p.typesByPackage()
	packages := slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(names[b]), len(names[a])), cmp.Compare(a, b))
	})
	var counts []string
	for _, pkg := range packages {
		counts = append(counts, fmt.Sprintf("%s %d", pkg, len(names[pkg])))
	}
	var most []string
	for _, file := range slices.SortedFunc(maps.Keys(p.entered), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.entered[b], p.entered[a]), cmp.Compare(a, b))
	})[:min(mostEntered, len(p.entered))] {
		most = append(most, fmt.Sprintf("%s %d", strings.TrimPrefix(file, "internal/"), p.entered[file]))
	}
	fmt.Fprintf(out, "one %s\n", p.request)
	fmt.Fprintf(out, "  functions that run                    %d, in %d files of %d packages; %d lines of Go\n", p.functions, len(p.files), len(p.packages), p.lines)
	fmt.Fprintf(out, "  deepest chain of calls                %d\n", p.deepest)
	fmt.Fprintf(out, "  changes of file in the order of calls %d, into another package %d\n", p.changes, p.crossings)
	fmt.Fprintf(out, "  returns to a file left before         %d\n", p.returns)
	fmt.Fprintf(out, "  named types met                       %d (%s)\n", len(p.types), strings.Join(counts, ", "))
	fmt.Fprintf(out, "  files entered most                    %s\n", strings.Join(most, ", "))
	fmt.Fprintf(out, "  functions not walked                  %d: %s\n", len(p.notWalked), strings.Join(p.notWalked, ", "))
	if typeNames {
		for _, pkg := range packages {
			fmt.Fprintf(out, "  %s: %s\n", pkg, strings.Join(names[pkg], " "))
		}
	}
	if trace {
		fmt.Fprintln(out, strings.Join(p.trace, "\n"))
	}
	fmt.Fprintln(out)
}
