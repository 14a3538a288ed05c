package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/quotasvc/quotasvc/internal/catalog/block"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/yamldoc"
)

const (
	// MaxFile is the largest size of a file, in bytes.
	MaxFile = 8 << 20

	// maxFileObjects is the largest number of objects in a file. One transaction can store about this many objects
	// within applyTimeout.
	maxFileObjects = 10_000
)

// File is the content of catalog.yaml. Each section contains objects. An object has the same form as in the REST
// contract. A section is a mapping from ids to objects,
//
//	meters:
//	  api_calls: {unit: call}
//
// or a list of objects. In a list, an object has its id in the field meter, plan, rule or tenant:
//
//	meters:
//	  - {meter: api_calls, unit: call}
//
// Blocks have no id and are always a list.
type File struct {
	Meters  []Meter
	Plans   []Plan
	Limits  []Limit
	Tenants []Tenant          // nil if the file has no section tenants: then Apply does not change tenants
	Blocks  []block.Block     // nil if the file has no section blocks
	Expect  func(*File) error // Apply calls it first, with the stored objects. If it fails, Apply fails. nil: no call

	lines map[string]int // line of each value, by path
}

// ParseFile parses a file and checks its objects, as strictly as request bodies. The error is a *yamldoc.Error with
// all problems and their lines.
func ParseFile(data []byte) (*File, error) {
	r := yamldoc.NewReader()
	if len(data) > MaxFile {
		r.Problems.Add(1, "", fmt.Sprintf("must have at most %d bytes, has %d", MaxFile, len(data)))
		return nil, r.Problems.Err()
	}
	f := &File{lines: r.Lines}
	root := r.Parse(data)
	if root == nil {
		if r.Problems.Err() == nil {
			r.Problems.Add(1, "", "must have at least one of the sections meters, plans, limits, tenants, blocks")
		}
		return nil, r.Problems.Err()
	}
	for _, pair := range r.Pairs("", root) {
		if name, ok := r.Key("", pair); ok {
			f.readSection(r, name, pair)
		}
	}
	f.refuseNulls(r)
	if n := len(f.Meters) + len(f.Plans) + len(f.Limits) + len(f.Tenants) + len(f.Blocks); n > maxFileObjects {
		r.Problems.Add(1, "", fmt.Sprintf("must have at most %d objects, has %d", maxFileObjects, n))
	}
	if err := r.Problems.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

// readSection reads the section with the given name.
func (f *File) readSection(r *yamldoc.Reader, name string, pair *ast.MappingValueNode) {
	switch name {
	case "meters":
		f.Meters = readObjects(r, name, "meter", pair.Value, func(m *Meter) string { return m.ID })
	case "plans":
		f.Plans = readObjects(r, name, "plan", pair.Value, func(p *Plan) string { return p.ID })
	case "limits":
		f.Limits = readObjects(r, name, "rule", pair.Value, func(l *Limit) string { return l.Rule })
	case "tenants":
		f.Tenants = readObjects(r, name, "tenant", pair.Value, func(t *Tenant) string { return t.ID })
	case "blocks":
		f.Blocks = readBlocks(r, pair.Value)
	default:
		r.Problems.Add(yamldoc.LineOf(pair.Key), name, "is an unknown section; the sections are meters, plans, limits, tenants, blocks"+body.Similar(name, []string{"meters", "plans", "limits", "tenants", "blocks"}))
	}
}

// refuseNulls adds a problem for each null in allowances and overrides. Elsewhere null means an absent field. Here it
// could be read as "no cap", although the author perhaps forgot the number.
func (f *File) refuseNulls(r *yamldoc.Reader) {
	for _, path := range slices.Sorted(maps.Keys(r.Nulls)) {
		isOverride := func(t Tenant) bool { return strings.HasPrefix(path, "tenants."+t.ID+".overrides.") }
		if strings.HasPrefix(path, "plans.") && strings.Contains(path, ".allowances[") || slices.ContainsFunc(f.Tenants, isOverride) {
			r.Problems.Add(r.Lines[path], path, mustHaveValue)
		}
	}
}

const mustHaveValue = "must have a value, or be left out"

// ForgetLines removes the line numbers from the errors of Apply. It is for documents without lines, such as JSON
// request bodies.
func (f *File) ForgetLines() { f.lines = nil }

// Line returns the line of the field or object at path. If the field has no line, it returns the line of the object
// that contains the field.
func (f *File) Line(path string) int {
	for path != "" {
		if line, ok := f.lines[path]; ok {
			return line
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 1
}

// readObjects reads the objects of a section. The section is a mapping from ids to objects, or a list of objects. In a
// list, an object has its id in the field named self.
func readObjects[T any, P interface {
	*T
	body.Checked
}](r *yamldoc.Reader, section, self string, n ast.Node, id func(P) string) []T {
	objects := []T{}
	seen := map[string]bool{}
	add := func(path string, line int, key string, n ast.Node) {
		var o T
		r.Lines[path] = line
		text, ok := r.ObjectText(path, self, key, n)
		if !ok || !decode(r, path, text, P(&o)) {
			return
		}
		r.Lines[path] = line
		switch own := id(&o); {
		case key != "" && own != key:
			r.Problems.Add(line, path+"."+self, fmt.Sprintf("must be absent, or %q like the key", key))
		case seen[own]:
			r.Problems.Add(line, path, "is a duplicate "+self)
		default:
			seen[own] = true
			objects = append(objects, o)
		}
	}
	if list, ok := n.(*ast.SequenceNode); ok {
		for i, v := range list.Values {
			add(pathInList(section, self, i, v), yamldoc.LineOf(v), "", v)
		}
		return objects
	}
	for _, pair := range r.Pairs(section, n) {
		if key, ok := r.Key(section, pair); ok {
			add(section+"."+key, yamldoc.LineOf(pair.Key), key, pair.Value)
		}
	}
	return objects
}

// readBlocks reads the section blocks.
func readBlocks(r *yamldoc.Reader, n ast.Node) []block.Block {
	blocks := []block.Block{}
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		if _, isNull := n.(*ast.NullNode); !isNull {
			r.Problems.Add(yamldoc.LineOf(n), "blocks", "must be a list")
		}
		return blocks
	}
	seen := map[string]int{}
	for i, v := range list.Values {
		path := fmt.Sprintf("blocks[%d]", i)
		r.Lines[path] = yamldoc.LineOf(v)
		var b block.Block
		text, ok := r.ObjectText(path, "", "", v)
		if !ok || !decode(r, path, text, &b) {
			continue
		}
		b.Normalize()
		if j, twice := seen[b.ID()]; twice {
			r.Problems.Add(yamldoc.LineOf(v), path, fmt.Sprintf("is a duplicate of blocks[%d]", j))
			continue
		}
		seen[b.ID()] = i
		blocks = append(blocks, b)
	}
	return blocks
}

// pathInList returns the path of an element of a list. The path contains the element's id. If the element has no id,
// it contains the index.
func pathInList(section, self string, i int, n ast.Node) string {
	if m, ok := n.(*ast.MappingNode); ok {
		for _, pair := range m.Values {
			id, isText := pair.Value.(*ast.StringNode)
			if k, ok := pair.Key.(*ast.StringNode); ok && isText && k.Value == self && id.Value != "" {
				return section + "." + id.Value
			}
		}
	}
	return fmt.Sprintf("%s[%d]", section, i)
}

// decode reads an object from its JSON form. It adds the faults of the object to the problems of r, each with its
// line.
func decode(r *yamldoc.Reader, path string, text []byte, into body.Checked) bool {
	err := r.Document.JSON(text, into, body.Options{File: true})
	if err == nil {
		return true
	}
	e, ok := errors.AsType[*body.Error](err)
	if !ok {
		r.Problems.Add(r.Lines[path], path, err.Error())
		return false
	}
	f := File{lines: r.Lines}
	for _, fault := range e.Faults {
		at, message := path+"."+fault.Field, fault.Message
		if r.Nulls[at] {
			message = mustHaveValue
			delete(r.Nulls, at)
		}
		r.Problems.Add(f.Line(at), at, message)
	}
	return false
}
