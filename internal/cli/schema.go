package cli

import (
	"fmt"
	"maps"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/quotasvc/quotasvc/internal/httpapi/reference"
)

type schemaCmd struct {
	File string `arg:"" enum:"catalog" help:"Which file: catalog, for catalog.yaml."`
}

// Run prints the JSON Schema. With it, editors that use the YAML language server complete and check catalog.yaml.
func (c *schemaCmd) Run(io *IO) error {
	schema, err := catalogSchema()
	if err != nil {
		return err
	}
	return io.json(schema)
}

type object = map[string]any

// selves maps each section of catalog.yaml to the name of a field. If the section is a list, an object has its id in
// this field.
var selves = map[string]string{"meters": "meter", "plans": "plan", "limits": "rule", "tenants": "tenant"}

// catalogSchema returns the JSON Schema of catalog.yaml. The API's contract has a schema of the same document, because
// OpenAPI 3.1 uses JSON Schema. catalogSchema extends that schema for files: a section may also be a list of objects
// that contain their ids.
func catalogSchema() (object, error) {
	var contract struct {
		Components struct {
			Schemas map[string]object `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(reference.Specification, &contract); err != nil {
		return nil, fmt.Errorf("read the contract: %w", err)
	}
	schemas := contract.Components.Schemas
	root := schemas["CatalogRequest"]
	properties := maps.Clone(root["properties"].(object))
	delete(properties, "dry_run")
	delete(properties, "prune")
	defs := object{}
	for name, self := range selves {
		section := properties[name].(object)
		reference := section["additionalProperties"].(object)["$ref"].(string)
		of := reference[strings.LastIndexByte(reference, '/')+1:]
		defs[of+"InFile"] = inFile(schemas[of], self, false)
		defs[of+"InList"] = inFile(schemas[of], self, true)
		properties[name] = object{
			"description": section["description"],
			"oneOf": []any{
				object{"type": []any{"object", "null"}, "additionalProperties": object{"$ref": "#/$defs/" + of + "InFile"}},
				object{"type": "array", "items": object{"$ref": "#/$defs/" + of + "InList"}},
			},
		}
	}
	out := object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "catalog.yaml of quotasvc", "description": "Meters, plans, limits, tenants and blocks.",
		"type": "object", "additionalProperties": false, "minProperties": 1, "properties": properties, "$defs": defs,
	}
	collect(out, schemas, defs)
	return rewrite(out).(object), nil
}

// inFile returns the schema of an object in a file. The object may have its id in the field named self. This field is
// required if must is true, which means that the object is in a list.
func inFile(schema object, self string, must bool) object {
	out := maps.Clone(schema)
	properties := maps.Clone(schema["properties"].(object))
	properties[self] = object{"$ref": "#/components/schemas/Id"}
	out["properties"] = properties
	required, _ := schema["required"].([]any)
	if must {
		out["required"] = append([]any{self}, required...)
	}
	return out
}

// collect adds the schemas that v refers to, directly and indirectly, to defs.
func collect(v any, schemas map[string]object, defs object) {
	switch v := v.(type) {
	case object:
		if ref, ok := v["$ref"].(string); ok {
			name := ref[strings.LastIndexByte(ref, '/')+1:]
			if _, known := defs[name]; !known {
				defs[name] = schemas[name]
				collect(schemas[name], schemas, defs)
			}
		}
		for _, member := range v {
			collect(member, schemas, defs)
		}
	case []any:
		for _, element := range v {
			collect(element, schemas, defs)
		}
	}
}

// rewrite returns a copy of v in which references lead to the new locations of the schemas.
func rewrite(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for name, member := range v {
			if ref, ok := member.(string); ok && name == "$ref" {
				member = strings.Replace(ref, "#/components/schemas/", "#/$defs/", 1)
			}
			out[name] = rewrite(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = rewrite(v[i])
		}
		return out
	default:
		return v
	}
}
