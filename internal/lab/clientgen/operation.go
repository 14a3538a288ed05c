package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// operation is the data of one operation for the template.
type operation struct {
	ID, Method, Path, Summary string

	Parts  []part  // parts of the path
	Query  []param // parameters in the order of the contract
	Body   string  // type of the request's body; empty: no body
	Answer string  // type of the answer; empty: no content, or text
	Text   bool    // the method returns the answer's bytes
	Key    bool    // the operation takes an Idempotency-Key
	Safe   bool    // the operation may be sent twice without an Idempotency-Key
	Item   string  // type of the items of a page; empty: the answer has no pages
}

// part is a constant part of a path, or a parameter in it.
type part struct {
	Text  string
	Param *param
}

// param is a parameter of a path or a query.
type param struct {
	Name, Type, Doc string
}

// safePosts are the POST operations that may be sent twice without an Idempotency-Key. Each of them changes nothing,
// or has keys in its body, or sets a state that the second request does not change.
var safePosts = []string{"check", "checkBatch", "debitBatch", "refundCharge", "settleCharge", "renewLease", "resetLimit", "applyCatalog"}

// forGateways are operations that gateways call with headers alone. A program calls check, consume and chargeLimits
// instead.
var forGateways = []string{"authorize", "authorizeEnvoy"}

var methods = []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete}

// codesOf returns the codes of all problems, sorted.
func codesOf(contract *openapi3.T) []string {
	var codes []string
	for _, code := range contract.Components.Schemas["ProblemCode"].Value.Enum {
		codes = append(codes, fmt.Sprint(code))
	}
	slices.Sort(codes)
	return codes
}

// readOperations returns the operations of a contract, sorted by their ids.
func readOperations(contract *openapi3.T) ([]*operation, error) {
	var all []*operation
	for _, path := range contract.Paths.InMatchingOrder() {
		item := contract.Paths.Value(path)
		for _, method := range methods {
			op := item.GetOperation(method)
			if op == nil || slices.Contains(forGateways, op.OperationID) {
				continue
			}
			o, err := newOperation(method, path, op, append(slices.Clone(item.Parameters), op.Parameters...))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", op.OperationID, err)
			}
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b *operation) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

func newOperation(method, path string, op *openapi3.Operation, params openapi3.Parameters) (*operation, error) {
	o := &operation{ID: op.OperationID, Method: method, Path: path, Summary: op.Summary}
	o.Safe = method != http.MethodPost && method != http.MethodPatch || slices.Contains(safePosts, o.ID)
	inPath := map[string]*param{}
	for _, ref := range params {
		p := ref.Value
		switch {
		case p.In == openapi3.ParameterInHeader:
			o.Key = o.Key || p.Name == "Idempotency-Key"
			continue
		case p.Name == "format": // the generated method reads only one format
			continue
		}
		typ, err := typeOf(p.Schema.Value)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", p.Name, err)
		}
		known := &param{Name: p.Name, Type: typ, Doc: p.Description}
		if p.In == openapi3.ParameterInPath {
			inPath[p.Name] = known
		} else {
			o.Query = append(o.Query, *known)
		}
	}
	for rest := path; rest != ""; {
		text, after, found := strings.Cut(rest, "{")
		o.Parts = append(o.Parts, part{Text: text})
		if !found {
			break
		}
		name, tail, _ := strings.Cut(after, "}")
		if inPath[name] == nil {
			return nil, fmt.Errorf("the path has no parameter %s", name)
		}
		o.Parts = append(o.Parts, part{Param: inPath[name]})
		rest = tail
	}
	if op.RequestBody != nil {
		body := op.RequestBody.Value.Content.Get("application/json").Schema
		if o.Body = nameOf(body); o.Body == "" {
			return nil, fmt.Errorf("the body has no schema of its own")
		}
	}
	return o, o.readAnswer(op)
}

// readAnswer stores in o the type of the successful answer and, for an answer in pages, the type of its items.
func (o *operation) readAnswer(op *openapi3.Operation) error {
	for _, status := range []string{"200", "201", "202", "204"} {
		ref := op.Responses.Value(status)
		if ref == nil {
			continue
		}
		if len(ref.Value.Content) == 0 {
			return nil
		}
		media := ref.Value.Content.Get("application/json")
		if media == nil || nameOf(media.Schema) == "" {
			o.Text = true
			return nil
		}
		o.Answer = nameOf(media.Schema)
		properties := media.Schema.Value.Properties
		pages := slices.ContainsFunc(o.Query, func(p param) bool { return p.Name == "cursor" })
		if items := properties["items"]; items != nil && pages {
			if o.Item = nameOf(items.Value.Items); o.Item == "" {
				return fmt.Errorf("the items have no schema of their own")
			}
		}
		return nil
	}
	return fmt.Errorf("no answer with a status from 200 to 204")
}

// nameOf returns the name of the schema that ref refers to. It returns an empty string if the schema has no name.
func nameOf(ref *openapi3.SchemaRef) string {
	if ref == nil {
		return ""
	}
	name := strings.TrimPrefix(ref.Ref, "#/components/schemas/")
	if other := renamed[name]; other != "" {
		return other
	}
	return name
}

// renamed maps the name of a schema to the name of its Go type, if the two differ. overlay.yaml gives the reasons.
var renamed = map[string]string{"NewKey": "CreatedKey"}

// typeOf returns the Go type of a parameter.
func typeOf(s *openapi3.Schema) (string, error) {
	switch {
	case s.Type.Is("string") && s.Format == "date-time":
		return "time.Time", nil
	case s.Type.Is("string"):
		return "string", nil
	case s.Type.Is("integer"):
		return "int64", nil
	case s.Type.Is("boolean"):
		return "bool", nil
	case s.Type.Is("object"):
		return "map[string]string", nil
	case s.Type.Is("number"):
		return "float64", nil
	default:
		return "", fmt.Errorf("its type %v is not known", s.Type.Slice())
	}
}
