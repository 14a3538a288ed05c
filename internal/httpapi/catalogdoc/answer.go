package catalogdoc

import (
	"crypto/sha256"
	"encoding/hex"
	stdjson "encoding/json"
	"encoding/json/v2"
	"fmt"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/diff"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// raw is JSON text that is written without a change.
type raw = stdjson.RawMessage

// Export returns the catalogue f as one document of the contract.
func Export(f *catalog.File) (out client.Catalog, err error) {
	if out.Meters, err = byID(f.Meters, "meter", func(m *catalog.Meter) string { return m.ID }); err != nil {
		return out, err
	}
	if out.Plans, err = byID(f.Plans, "plan", func(p *catalog.Plan) string { return p.ID }); err != nil {
		return out, err
	}
	if out.Limits, err = byID(f.Limits, "rule", func(l *catalog.Limit) string { return l.Rule }); err != nil {
		return out, err
	}
	out.Blocks, err = blocksOf(f)
	return out, err
}

// Tag returns an ETag of the meters, plans and limits of a catalogue. The ETag does not depend on the blocks, because
// blocks expire without a request.
func Tag(f *catalog.File) (string, error) {
	doc, err := Export(&catalog.File{Meters: f.Meters, Plans: f.Plans, Limits: f.Limits})
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(doc, json.Deterministic(true))
	if err != nil {
		return "", fmt.Errorf("name the catalogue's state: %w", err)
	}
	sum := sha256.Sum256(text)
	return `"` + hex.EncodeToString(sum[:16]) + `"`, nil
}

// Expect returns a function that compares the ETag of a stored catalogue with `seen`, the values of a header or field.
// The argument `field` is the name of this header or field. The function returns an error unless `seen` has exactly
// one value, the ETag of the catalogue. If `seen` is empty, Expect returns nil.
func Expect(field string, seen []string) func(*catalog.File) error {
	if len(seen) == 0 {
		return nil
	}
	return func(stored *catalog.File) error {
		tag, err := Tag(stored)
		if err == nil && (len(seen) != 1 || seen[0] != tag) {
			err = &errcode.Error{Code: errcode.Conflict, Fields: []body.Fault{{Field: field, Message: "is not the ETag of the catalogue: meters, plans or limits were changed meanwhile"}}}
		}
		return err
	}
}

func blocksOf(f *catalog.File) ([]raw, error) {
	blocks := []raw{}
	for i := range f.Blocks {
		text, err := json.Marshal(&f.Blocks[i], json.Deterministic(true))
		if err != nil {
			return nil, fmt.Errorf("export a block: %w", err)
		}
		blocks = append(blocks, text)
	}
	return blocks, nil
}

// byID returns objects as JSON, keyed by their ids. The argument `self` is the name of the field with the id. The JSON
// omits this field, because it would repeat the key.
func byID[T any](objects []T, self string, id func(*T) string) (map[string]raw, error) {
	out := make(map[string]raw, len(objects))
	for i := range objects {
		text, err := json.Marshal(&objects[i], json.Deterministic(true)) // a field, for example features, may be a map
		if err != nil {
			return nil, fmt.Errorf("export the %s %s: %w", self, id(&objects[i]), err)
		}
		var members map[string]raw
		if err := json.Unmarshal(text, &members); err != nil {
			return nil, fmt.Errorf("export the %s %s: %w", self, id(&objects[i]), err)
		}
		delete(members, self)
		if text, err = json.Marshal(members, json.Deterministic(true)); err != nil {
			return nil, fmt.Errorf("export the %s %s: %w", self, id(&objects[i]), err)
		}
		out[id(&objects[i])] = text
	}
	return out, nil
}

// Diff returns the report about an applied catalogue document in the contract's type.
func Diff(r *diff.Report) client.CatalogDiff {
	out := client.CatalogDiff{
		DryRun: r.DryRun, Changes: []client.CatalogChange{}, Warnings: append([]string{}, r.Warnings...), MoreTenants: r.MoreTenants, MoreBlocks: r.MoreBlocks,
		Counts: client.CatalogCounts{
			Created: int64(r.Count(diff.Created)), Changed: int64(r.Count(diff.Changed)), Unchanged: int64(r.Count(diff.Unchanged)),
			Deleted: int64(r.Count(diff.Deleted)), Unlisted: int64(r.Count(diff.Unlisted)),
		},
	}
	for i := range r.Changes {
		c := &r.Changes[i]
		if c.Action == diff.Unchanged {
			continue
		}
		change := client.CatalogChange{Kind: c.Kind, ID: c.ID, Action: client.CatalogChangeAction(c.Action)}
		for _, f := range c.Fields {
			change.Fields = append(change.Fields, client.CatalogField{Field: f.Field, Before: valueOf(f.Before), After: valueOf(f.After)})
		}
		out.Changes = append(out.Changes, change)
	}
	return out
}

// valueOf returns the text of a field as JSON. It returns nil if the text is empty, which means that the field is
// absent.
func valueOf(text string) raw {
	if text == "" {
		return nil
	}
	return raw(text)
}
