package httpapi

import (
	"bytes"
	"encoding/json/v2"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/quotasvc/quotasvc/internal/httpapi/reference"
)

// contract returns the parsed contract with one change: answers may not have unknown members. The published contract
// permits them, so that later versions can add members. With the change, tests notice members that are not in the
// contract.
var contract = sync.OnceValue(func() *openapi3.T {
	out, err := openapi3.NewLoader().LoadFromData(closedContract())
	if err != nil {
		panic(err)
	}
	return out
})

// closedContract returns the changed contract (see contract) as JSON.
var closedContract = sync.OnceValue(func() []byte {
	var doc map[string]any
	if err := yaml.Unmarshal(reference.Specification, &doc); err != nil {
		panic(err)
	}
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	closeObjects(schemas, alternatives(doc))
	text, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return text
})

// bodySchemas returns the compiled schemas of the bodies. kin-openapi would compile a schema again for each body that
// it checks, which takes tens of milliseconds.
var bodySchemas = sync.OnceValue(func() *compiledSchemas {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(closedContract()))
	if err != nil {
		panic(err)
	}
	if err := c.AddResource(contractURL, doc); err != nil {
		panic(err)
	}
	return &compiledSchemas{compiler: c, done: map[string]*jsonschema.Schema{}}
})

const contractURL = "https://quotasvc.test/openapi.json"

type compiledSchemas struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	done     map[string]*jsonschema.Schema
}

// at returns the compiled schema at a path in the contract.
func (c *compiledSchemas) at(path ...string) (*jsonschema.Schema, error) {
	for i, name := range path {
		path[i] = url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	pointer := contractURL + "#/" + strings.Join(path, "/")
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.done[pointer]; ok {
		return s, nil
	}
	s, err := c.compiler.Compile(pointer)
	c.done[pointer] = s
	return s, err
}

// place is a response that the contract defines, with its path in the contract.
type place struct {
	path     []string
	response *openapi3.Response
}

// conformsHead checks the status and the headers of an answer to an operation. It returns the response of the
// contract that the answer must match.
func conformsHead(template, method string, op *openapi3.Operation, a *answer) (place, error) {
	status := strconv.Itoa(a.status)
	response := op.Responses.Value(status)
	if response == nil {
		return place{}, fmt.Errorf("%s has no status %s", op.OperationID, status)
	}
	at := place{[]string{"paths", template, strings.ToLower(method), "responses", status}, response.Value}
	if response.Ref != "" {
		at.path = []string{"components", "responses", strings.TrimPrefix(response.Ref, "#/components/responses/")}
	}
	for name, header := range at.response.Headers {
		values := a.header.Values(name)
		if len(values) == 0 {
			if header.Value.Required {
				return at, fmt.Errorf("%s with %s lacks the header %s", op.OperationID, status, name)
			}
			continue
		}
		path := append(slices.Clone(at.path), "headers", name, "schema")
		if header.Ref != "" {
			path = []string{"components", "headers", strings.TrimPrefix(header.Ref, "#/components/headers/"), "schema"}
		}
		schema, err := bodySchemas().at(path...)
		if err != nil {
			return at, fmt.Errorf("compile the schema of %s: %w", name, err)
		}
		var value any = values[0]
		if types := header.Value.Schema.Value.Type; types.Is("integer") || types.Is("number") {
			if value, err = jsonschema.UnmarshalJSON(strings.NewReader(values[0])); err != nil {
				return at, fmt.Errorf("the header %s: %w", name, err)
			}
		}
		if err := schema.Validate(value); err != nil {
			return at, fmt.Errorf("the header %s: %w", name, err)
		}
	}
	return at, nil
}

// conformsBody checks the body of an answer.
func conformsBody(at place, a *answer) error {
	mediaType, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	if len(at.response.Content) == 0 {
		if len(a.body) > 0 {
			return fmt.Errorf("%d has a body of %d bytes", a.status, len(a.body))
		}
		return nil
	}
	if at.response.Content[mediaType] == nil {
		return fmt.Errorf("%d is %q, which the contract does not have", a.status, mediaType)
	}
	if !strings.HasSuffix(mediaType, "json") {
		return nil
	}
	schema, err := bodySchemas().at(append(slices.Clone(at.path), "content", mediaType, "schema")...)
	if err != nil {
		return fmt.Errorf("compile the schema: %w", err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err != nil {
		return fmt.Errorf("the body: %w", err)
	}
	return schema.Validate(value)
}

// alternatives returns the names of the schemas that an object with properties lists under oneOf. These schemas add
// members to the object.
func alternatives(v any) map[string]bool {
	out := map[string]bool{}
	switch v := v.(type) {
	case map[string]any:
		_, object := v["properties"]
		list, _ := v["oneOf"].([]any)
		for _, one := range list {
			if ref, ok := one.(map[string]any)["$ref"].(string); ok && object {
				out[strings.TrimPrefix(ref, "#/components/schemas/")] = true
			}
		}
		for _, part := range v {
			maps.Copy(out, alternatives(part))
		}
	case []any:
		for _, part := range v {
			maps.Copy(out, alternatives(part))
		}
	}
	return out
}

// closeObjects changes v, a part of the contract. Every object schema with properties then refuses unknown members.
// closeObjects skips the schemas whose names are in `open`.
func closeObjects(v any, open map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if _, object := v["properties"].(map[string]any); object && v["additionalProperties"] == nil {
			v["unevaluatedProperties"] = false
		}
		for name, part := range v {
			if !open[name] {
				closeObjects(part, nil)
			}
		}
	case []any:
		for _, part := range v {
			closeObjects(part, nil)
		}
	}
}
