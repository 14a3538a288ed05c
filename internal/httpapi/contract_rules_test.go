package httpapi

import (
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/httpapi/reference"
)

// published returns the contract exactly as the service serves it. In the result of contract(), answers may have no
// unknown members.
func published(t *testing.T) map[string]any {
	t.Helper()
	var doc map[string]any
	require.NoError(t, yaml.Unmarshal(reference.Specification, &doc))
	return doc
}

// walk calls visit with every JSON object in v, and with the path of that object.
func walk(v any, path string, visit func(path string, object map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(path, v)
		for name, part := range v {
			walk(part, path+"/"+name, visit)
		}
	case []any:
		for _, part := range v {
			walk(part, path, visit)
		}
	}
}

// described matches the paths of the contract's objects that need a description. An object that refers to another
// object needs none.
var described = regexp.MustCompile(`^/tags$|` +
	`^/paths/[^ ]+/(get|put|post|patch|delete)$|/parameters$|/responses/\d+$|/headers/[A-Za-z-]+$|` +
	`^/components/(parameters|headers|responses|schemas|securitySchemes)/[A-Za-z]+$|/properties/[a-z0-9_-]+$`)

func TestContract_Everything_IsDescribed(t *testing.T) {
	t.Parallel()
	seen := 0
	walk(published(t), "", func(path string, object map[string]any) {
		if !described.MatchString(path) || strings.Contains(path, "/example") || object["$ref"] != nil {
			return
		}
		if strings.HasSuffix(path, "/parameters") && object["in"] == nil { // shared parameters, not one parameter
			return
		}
		seen++
		text, _ := object["description"].(string)
		assert.NotEmpty(t, text, "%s %v has no description", path, object["name"])
	})
	assert.True(t, seen >= 500, "only %d were looked at", seen)
}

func TestContract_Operations_HaveWhatToolsNeed(t *testing.T) {
	t.Parallel()
	ids, tags := map[string]bool{}, map[string]bool{}
	doc := published(t)
	for _, tag := range doc["tags"].([]any) {
		tags[tag.(map[string]any)["name"].(string)] = true
	}
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			o, ok := op.(map[string]any)
			if !ok { // the parameters of all operations on this path
				continue
			}
			id, _ := o["operationId"].(string)
			assert.True(t, id != "" && !ids[id], "%s %s: operationId %q is missing or not alone", method, path, id)
			ids[id] = true
			list, _ := o["tags"].([]any)
			assert.True(t, len(list) == 1 && tags[list[0].(string)], "%s: tags %v", id, list)
			summary, _ := o["summary"].(string)
			assert.NotEmpty(t, summary, "%s has no summary", id)
			refused := false
			for status := range o["responses"].(map[string]any) {
				refused = refused || strings.HasPrefix(status, "4")
			}
			assert.True(t, refused, "%s is never refused", id)
		}
	}
}

// The contract lets answers gain members, so that a client with strict checks accepts the new members. Names of Go
// types belong in the overlay, not in the contract.
func TestContract_Answers_AreOpenAndOfNoLanguage(t *testing.T) {
	t.Parallel()
	doc := published(t)
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	reached := map[string]bool{}
	var reach func(v any)
	reach = func(v any) {
		walk(v, "", func(_ string, object map[string]any) {
			if ref, _ := object["$ref"].(string); ref != "" && !reached[ref] {
				reached[ref] = true
				var target any = doc
				for _, name := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
					target = target.(map[string]any)[name]
				}
				reach(target)
			}
		})
	}
	walk(doc["paths"], "", func(path string, object map[string]any) {
		if strings.HasSuffix(path, "/responses") {
			reach(object)
		}
	})
	for name, schema := range schemas {
		walk(schema, name, func(path string, object map[string]any) {
			assert.False(t, reached["#/components/schemas/"+name] && object["additionalProperties"] == false,
				"%s is part of an answer and refuses other members", path)
		})
	}
	if text := string(reference.Specification); strings.Contains(text, "x-go-") || strings.Contains(text, "nullable") || !strings.HasPrefix(text, "openapi: 3.1.") {
		t.Error("it names Go's types, or is not OpenAPI 3.1")
	}
}

// Clients are generated from the contract. Therefore the contract requires an idempotency key for each request that
// moves amounts.
func TestContract_IdempotencyKey_IsRequiredWhereAmountsMove(t *testing.T) {
	t.Parallel()
	required := map[string]bool{}
	for _, item := range contract().Paths.Map() {
		for _, op := range item.Operations() {
			for _, p := range op.Parameters {
				if p.Value.Name == headerIdempotencyKey && p.Value.Required {
					required[op.OperationID] = true
				}
			}
		}
	}
	for _, id := range []string{"consume", "debit", "hold", "captureHold", "releaseHold", "extendHold", "refund", "grant", "voidGrant", "extendGrant", "adjust"} {
		assert.True(t, required[id], "%s does not require it", id)
	}
}
