package catalog

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml/ast"

	"github.com/quotasvc/quotasvc/internal/bound"
)

const (
	// MaxFile bounds a file, in bytes.
	MaxFile = 8 << 20

	// MaxFileObjects bounds what a file holds: about what one transaction stores within its time.
	MaxFileObjects = 10_000

	// maxProblems is how many problems of a file are listed: more than anyone reads.
	maxProblems = 50
)

// File is a catalogue as it is written in catalog.yaml. Its sections hold objects in the shapes of the REST contract, as a
// mapping from ids,
//
//	meters:
//	  api_calls: {unit: call}
//
// or as a list of objects that name themselves, by the field meter, plan, rule or tenant:
//
//	meters:
//	  - {meter: api_calls, unit: call}
//
// Blocks, which have no id of their own, are always a list.
type File struct {
	Meters  []Meter
	Plans   []Plan
	Limits  []Limit
	Tenants []Tenant // nil if the file has no such section: it says nothing about tenants then
	Blocks  []Block  // nil likewise

	lines map[string]int // where values stand, by path
}

// FileProblem is one thing that is wrong with a file.
type FileProblem struct {
	Line    int
	Path    string // as in plans.starter.allowances[0].amount; "" is the file
	Message string
}

// FileError is everything that is wrong with a file.
type FileError struct {
	Problems []FileProblem // in order of their lines
}

// Error returns a line per problem.
func (e *FileError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		if p.Path == "" {
			lines[i] = fmt.Sprintf("line %d: %s", p.Line, p.Message)
		} else {
			lines[i] = fmt.Sprintf("line %d: %s %s", p.Line, p.Path, p.Message)
		}
	}
	return strings.Join(lines, "\n")
}

// problems collects what is wrong with a file.
type problems struct{ list []FileProblem }

func (p *problems) add(line int, path, message string) {
	if len(p.list) < maxProblems {
		p.list = append(p.list, FileProblem{line, path, message})
	}
}

func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b FileProblem) int { return a.Line - b.Line })
	return &FileError{Problems: p.list}
}

// ParseFile reads a file and validates each of its objects. It is strict: unknown and repeated fields are errors. Its error is
// a *FileError that lists all problems with their lines.
func ParseFile(data []byte) (*File, error) {
	at := &problems{}
	if len(data) > MaxFile {
		at.add(1, "", fmt.Sprintf("must have at most %d bytes, has %d", MaxFile, len(data)))
		return nil, at.err()
	}
	f := &File{lines: map[string]int{}}
	r := &yamlReader{lines: f.lines, nulls: map[string]bool{}, at: at}
	root := parseYAML(data, at)
	if root == nil {
		if len(at.list) == 0 {
			at.add(1, "", "must have at least one of the sections meters, plans, limits, tenants, blocks")
		}
		return nil, at.err()
	}
	for _, pair := range r.pairs("", root) {
		name, ok := r.key("", pair)
		if !ok {
			continue
		}
		switch name {
		case "meters":
			f.Meters = readSection(r, name, "meter", pair.Value, func(m *Meter) *string { return &m.ID }, (*Meter).Validate)
		case "plans":
			f.Plans = readSection(r, name, "plan", pair.Value, func(p *Plan) *string { return &p.ID }, (*Plan).Validate)
		case "limits":
			f.Limits = readSection(r, name, "rule", pair.Value, func(l *Limit) *string { return &l.Rule }, (*Limit).Validate)
		case "tenants":
			f.Tenants = readSection(r, name, "tenant", pair.Value, func(t *Tenant) *string { return &t.ID }, (*Tenant).Validate)
		case "blocks":
			f.Blocks = readBlocks(r, pair.Value)
		default:
			at.add(lineOf(pair.Key), name, "is not a section; the sections are meters, plans, limits, tenants, blocks")
		}
	}
	f.requireAmounts(r)
	if n := len(f.Meters) + len(f.Plans) + len(f.Limits) + len(f.Tenants) + len(f.Blocks); n > MaxFileObjects {
		at.add(1, "", fmt.Sprintf("must have at most %d objects, has %d", MaxFileObjects, n))
	}
	if err := at.err(); err != nil {
		return nil, err
	}
	return f, nil
}

// requireAmounts finds allowances without an amount: it may be 0, but somebody must have said so. Nor may any other part of
// an allowance or of overrides be null: a cap that somebody forgot to write is not no cap.
func (f *File) requireAmounts(r *yamlReader) {
	for i := range f.Plans {
		for j := range f.Plans[i].Allowances {
			path := fmt.Sprintf("plans.%s.allowances[%d]", f.Plans[i].ID, j)
			if _, there := f.lines[path+".amount"]; !there {
				r.at.add(f.line(path), path+".amount", "is required")
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(r.nulls)) {
		if strings.HasPrefix(path, "plans.") && strings.Contains(path, ".allowances[") {
			r.refuseNull(path)
		}
	}
	for i := range f.Tenants {
		for _, meter := range slices.Sorted(maps.Keys(f.Tenants[i].Overrides)) {
			r.refuseNull(fmt.Sprintf("tenants.%s.overrides.%s", f.Tenants[i].ID, meter))
		}
	}
}

func (r *yamlReader) refuseNull(path string) {
	if r.nulls[path] {
		r.at.add(r.lines[path], path, "must have a value, or be left out")
	}
}

// line is where a path, or what it is part of, stands.
func (f *File) line(path string) int {
	for path != "" {
		if line, ok := f.lines[path]; ok {
			return line
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 1
}

// readSection reads the objects of a section. id is an object's place for its id, called self in a list.
func readSection[T any](
	r *yamlReader, section, self string, n ast.Node, id func(*T) *string, validate func(*T) error,
) []T {
	objects := []T{}
	seen := map[string]bool{}
	add := func(path string, line int, key string, n ast.Node) {
		var o T
		if !decodeObject(r, path, n, &o) {
			return
		}
		r.lines[path] = line
		own := id(&o)
		if *own == "" {
			*own = key
		}
		switch {
		case key != "" && *own != key:
			r.at.add(line, path+"."+self, fmt.Sprintf("must be absent or %q, as the key says", key))
		case seen[*own]:
			r.at.add(line, path, "is there twice")
		default:
			seen[*own] = true
			r.addFaults(path, validate(&o))
			objects = append(objects, o)
		}
	}
	if list, ok := n.(*ast.SequenceNode); ok {
		for i, v := range list.Values {
			add(r.pathInList(section, self, i, v), lineOf(v), "", v)
		}
		return objects
	}
	for _, pair := range r.pairs(section, n) {
		if key, ok := r.key(section, pair); ok {
			add(section+"."+key, lineOf(pair.Key), key, pair.Value)
		}
	}
	return objects
}

// readBlocks reads the section blocks.
func readBlocks(r *yamlReader, n ast.Node) []Block {
	blocks := []Block{}
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		if _, isNull := n.(*ast.NullNode); !isNull {
			r.at.add(lineOf(n), "blocks", "must be a list")
		}
		return blocks
	}
	seen := map[string]int{}
	for i, v := range list.Values {
		path := fmt.Sprintf("blocks[%d]", i)
		var b Block
		if !decodeObject(r, path, v, &b) {
			continue
		}
		r.lines[path] = lineOf(v)
		if err := b.Validate(); err != nil {
			r.addFaults(path, err)
			continue
		}
		b.normalize()
		if j, twice := seen[b.id()]; twice {
			r.at.add(lineOf(v), path, fmt.Sprintf("is about the same as blocks[%d]", j))
			continue
		}
		seen[b.id()] = i
		blocks = append(blocks, b)
	}
	return blocks
}

// pathInList is the path of a list's element: by its id, if it has one.
func (r *yamlReader) pathInList(section, self string, i int, n ast.Node) string {
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

// addFaults takes over what Validate found in the object at path.
func (r *yamlReader) addFaults(path string, err error) {
	if e, ok := errors.AsType[*Error](err); ok {
		f := File{lines: r.lines}
		for _, fault := range e.Fields {
			at := path + "." + fault.Field
			r.at.add(f.line(at), at, fault.Message)
		}
	}
}

// decodeObject decodes the mapping n into o, strictly.
func decodeObject[T any](r *yamlReader, path string, n ast.Node, o *T) bool {
	before := len(r.at.list)
	if r.pairs(path, n) == nil && len(r.at.list) > before {
		return false // not a mapping
	}
	var text []byte
	var ok bool
	if _, isNull := n.(*ast.NullNode); isNull {
		text, ok = []byte("{}"), true
	} else {
		text, ok = r.json(nil, path, n, 0)
	}
	if !ok {
		return false
	}
	err := json.Unmarshal(text, o, json.RejectUnknownMembers(true))
	if err == nil {
		return true
	}
	at, message := path, err.Error()
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		at += pathOf(semantic.JSONPointer)
		message = "must be " + nameOf(semantic.GoType)
		if errors.Is(err, json.ErrUnknownName) {
			message = "is not a field of this object"
		}
	} else if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		at += pathOf(syntactic.JSONPointer)
	}
	r.at.add((&File{lines: r.lines}).line(at), at, message)
	return false
}

// pathOf writes a JSON pointer the way paths are written here.
func pathOf(pointer jsontext.Pointer) string {
	var b strings.Builder
	for token := range pointer.Tokens() {
		if strings.Trim(token, "0123456789") == "" && token != "" {
			b.WriteString("[" + token + "]")
		} else {
			b.WriteString("." + token)
		}
	}
	return b.String()
}

// nameOf says what a Go type is in YAML.
func nameOf(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return "another type"
	}
	switch t.Kind() {
	case reflect.String:
		return "a text; quote it if it looks like a number"
	case reflect.Int64, reflect.Int32:
		return fmt.Sprintf("an integer of at most %d", int64(bound.MaxAmount))
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Map:
		return "a mapping"
	case reflect.Struct:
		if t.Name() == "Time" {
			return "a time as in 2026-01-31T00:00:00Z"
		}
		return "a mapping"
	}
	return "another type"
}
