package yamldoc

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/quotasvc/quotasvc/internal/kit/body"
)

// yamlDepth bounds the nesting of values. Objects of the catalogue need 6 levels; metadata has a smaller bound.
const yamlDepth = 32

// Reader converts YAML to JSON, so that files and request bodies are decoded in the same way. It records the line of
// each value. It accepts only YAML that JSON can express: no anchors, aliases, merge keys or tags.
type Reader struct {
	Lines    map[string]int  // by path, such as plans.starter.allowances[0].amount
	Nulls    map[string]bool // paths of values that are null
	Problems Problems
	Document body.Document
}

// NewReader returns an empty Reader.
func NewReader() *Reader { return &Reader{Lines: map[string]int{}, Nulls: map[string]bool{}} }

// ObjectText returns the mapping n as a JSON object. A null gives an empty object. If the mapping has no field with the
// name `self`, ObjectText adds this field with the value `key`, unless key is empty.
func (r *Reader) ObjectText(path, self, key string, n ast.Node) ([]byte, bool) {
	before := len(r.Problems.list)
	pairs := r.Pairs(path, n)
	if len(r.Problems.list) > before {
		return nil, false // not a mapping
	}
	named := key == ""
	for _, pair := range pairs {
		if k, ok := pair.Key.(*ast.StringNode); ok && k.Value == self {
			named = true
		}
	}
	text, ok := []byte("{}"), true
	if len(pairs) > 0 {
		text, ok = r.json(nil, path, n, 0)
	}
	if ok && !named {
		end := text[:len(text)-1]
		if len(pairs) > 0 {
			end = append(end, ',')
		}
		if end, ok = r.text(end, path, n, self); ok {
			end = append(end, ':')
			end, ok = r.text(end, path, n, key)
		}
		text = append(end, '}')
	}
	return text, ok
}

// Parse returns the root of the only document. It returns nil if there is no document. It adds a problem if the text
// is not YAML or has a second document.
func (r *Reader) Parse(data []byte) ast.Node {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		line, message := 1, err.Error()
		if syntax, ok := errors.AsType[yaml.Error](err); ok {
			message = syntax.GetMessage()
			if token := syntax.GetToken(); token != nil {
				line = token.Position.Line
			}
		}
		r.Problems.Add(line, "", explain(message, data, line))
		return nil
	}
	var root ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case root != nil:
			r.Problems.Add(LineOf(doc.Body), "", "must not be a second document; a file has one")
		default:
			root = doc.Body
		}
	}
	return root
}

// unmatched matches the parser's message about a bracket that is closed by a bracket of another kind.
var unmatched = regexp.MustCompile(`could not find '.' character corresponding to '(.)'`)

// explain returns the parser's message about a line. If that message is misleading, it returns a better message.
func explain(message string, data []byte, line int) string {
	lines := bytes.Split(data, []byte("\n"))
	text := lines[min(max(line, 1), len(lines))-1]
	indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
	if bytes.IndexByte(indent, '\t') >= 0 {
		return "is indented with a TAB; YAML takes blanks only"
	}
	if m := unmatched.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("has a %q that closes no bracket of its kind: look at the brackets that are open there", m[1])
	}
	return message
}

// LineOf returns the line of n.
func LineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 1
}

// Pairs returns the pairs of a mapping. A null counts as an empty mapping. For any other node, Pairs adds a problem.
func (r *Reader) Pairs(path string, n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	case *ast.NullNode:
		return nil
	}
	r.Problems.Add(LineOf(n), path, "must be a mapping")
	return nil
}

// Key returns the text of a pair's key. If the key is not plain text, it adds a problem and returns false.
func (r *Reader) Key(path string, pair *ast.MappingValueNode) (string, bool) {
	switch k := pair.Key.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode: // an id may look like a number or a bool
		return k.GetToken().Value, true
	}
	r.Problems.Add(LineOf(pair.Key), path, "has a key that is not plain text")
	return "", false
}

// json appends n as JSON to the text `to`. If JSON cannot express n, it adds a problem and returns false.
func (r *Reader) json(to []byte, path string, n ast.Node, depth int) ([]byte, bool) {
	r.Lines[path] = LineOf(n)
	if depth > yamlDepth {
		r.Problems.Add(LineOf(n), path, fmt.Sprintf("must be at most %d levels deep", yamlDepth))
		return to, false
	}
	switch n := n.(type) {
	case *ast.NullNode:
		r.Nulls[path] = true
		return append(to, "null"...), true
	case *ast.BoolNode:
		return strconv.AppendBool(to, n.Value), true
	case *ast.StringNode:
		// The parser takes a number that no type of Go can hold, such as 1e309, for a text.
		if n.Token.Type == token.StringType && plainNumber.MatchString(n.Value) {
			return r.number(to, path, n)
		}
		return r.text(to, path, n, n.Value)
	case *ast.LiteralNode:
		return r.text(to, path, n, n.Value.Value)
	case *ast.IntegerNode, *ast.FloatNode:
		return r.number(to, path, n)
	case *ast.MappingNode, *ast.MappingValueNode:
		return r.object(to, path, n, depth)
	case *ast.SequenceNode:
		to = append(to, '[')
		for i, v := range n.Values {
			if i > 0 {
				to = append(to, ',')
			}
			var ok bool
			if to, ok = r.json(to, path+"["+strconv.Itoa(i)+"]", v, depth+1); !ok {
				return to, false
			}
		}
		return append(to, ']'), true
	}
	what := strings.TrimSuffix(n.Type().String(), "Node")
	r.Problems.Add(LineOf(n), path, fmt.Sprintf("must be a plain value: YAML %q is not supported", what))
	return to, false
}

func (r *Reader) object(to []byte, path string, n ast.Node, depth int) ([]byte, bool) {
	to = append(to, '{')
	seen := map[string]bool{}
	for i, pair := range r.Pairs(path, n) {
		name, ok := r.Key(path, pair)
		if !ok {
			return to, false
		}
		at := path + "." + name
		if seen[name] {
			r.Problems.Add(LineOf(pair.Key), at, "is a duplicate field")
			return to, false
		}
		seen[name] = true
		if i > 0 {
			to = append(to, ',')
		}
		if to, ok = r.text(to, at, pair.Key, name); !ok {
			return to, false
		}
		to = append(to, ':')
		if to, ok = r.json(to, at, pair.Value, depth+1); !ok {
			return to, false
		}
		r.Lines[at] = LineOf(pair.Key) // people look for the field in the line of its key
	}
	return append(to, '}'), true
}

func (r *Reader) text(to []byte, path string, n ast.Node, s string) ([]byte, bool) {
	quoted, err := jsontext.AppendQuote(to, s)
	if err != nil {
		r.Problems.Add(LineOf(n), path, "must be UTF-8")
		return to, false
	}
	return quoted, true
}

// plainNumber matches numbers that have the same meaning in YAML and JSON. For example, 010 is 8 in YAML 1.1 and 10
// in YAML 1.2.
var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func (r *Reader) number(to []byte, path string, n ast.Node) ([]byte, bool) {
	digits := n.GetToken().Value
	if !plainNumber.MatchString(digits) {
		r.Problems.Add(LineOf(n), path, fmt.Sprintf("must be written in plain decimal digits, not %.40s", digits))
		return to, false
	}
	return append(to, digits...), true
}
