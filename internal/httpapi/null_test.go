package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/body"
)

// withoutEach calls the function `each` for each optional field of the schema, and of the objects in it. It passes the
// body without the field, and the body with null in the field.
func withoutEach(schema *openapi3.Schema, object map[string]any, path string, put func(m any) any,
	each func(path string, absent, null any),
) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		property := schema.Properties[name]
		if property == nil {
			continue // a name that the client chooses
		}
		with := func(v any) any {
			m := maps.Clone(object)
			m[name] = v
			return put(m)
		}
		at := body.Join(path, name)
		if !slices.Contains(schema.Required, name) {
			absent := maps.Clone(object)
			delete(absent, name)
			each(at, put(absent), with(nil))
		}
		switch value := object[name].(type) {
		case map[string]any:
			withoutEach(property.Value, value, at, with, each)
		case []any:
			if m, ok := value[0].(map[string]any); ok {
				first := func(m any) any { return with(append([]any{m}, value[1:]...)) }
				withoutEach(property.Value.Items.Value, m, at+"[0]", first, each)
			}
		}
	}
}

// A request with null in an optional field has the status of the same request without the field. With one
// Idempotency-Key both are one operation. Only a PATCH of a tenant differs: there null removes.
func TestBodies_OptionalNull_IsAbsent(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.materials()
	removed := map[string]bool{"anchor": true, "features": true, "metadata": true, "overrides": true, "timezone": true}
	sent := 0
	for _, item := range contract().Paths.Map() {
		for _, op := range item.Operations() {
			good, ok := fullBodies()[op.OperationID]
			if op.RequestBody == nil || !ok || op.OperationID == "applyCatalog" {
				continue // a catalogue has the rules of catalog.yaml
			}
			schema := op.RequestBody.Value.Content.Get(typeJSON).Schema.Value
			var object map[string]any
			require.NoError(t, json.Unmarshal([]byte(good.body), &object))
			whole := func(m any) any { return m }
			withoutEach(schema, object, "", whole, func(path string, absent, null any) {
				sent++
				call := func(body any, key string) *answer {
					return s.call(good.method, good.path, encoded(body), headerIdempotencyKey, fmt.Sprint(key, sent))
				}
				key := "null-"
				if op.OperationID == "patchTenant" && removed[path] {
					key = "removed-"
				}
				want, got := call(absent, "null-"), call(null, key)
				same := got.status == want.status || want.status < 300 && got.status < 300
				if want.status >= 300 && op.OperationID == "patchTenant" {
					return // what is absent and what is removed may be refused for other reasons
				}
				assert.True(t, same, "%s: %s is null: %s, without: %s",
					op.OperationID, path, got.body, want.body)
			})
		}
	}
	assert.True(t, sent > 100, "only %d optional fields", sent)
}

// In a PATCH of a tenant, null removes what a PUT could have left out.
func TestPatch_Null_RemovesZoneAnchorMetadataOverridesFeatures(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	plain := s.readTenant("acme")
	s.patch(`{"timezone":"Asia/Tokyo","anchor":"2026-01-31t00:00:00z","metadata":{"a":1},"overrides":{"calls":5},
		"features":{"sso":true},"apply":"now"}`).want(200)
	changed := s.readTenant("acme")
	anchor := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	assert.True(t, changed.Timezone == "Asia/Tokyo" && changed.Anchor.Equal(anchor), changed)
	s.patch(`{"plan":null,"status":null,"apply":null,"reason":null,"dry_run":null}`).want(200)
	assert.Equal(t, changed, s.readTenant("acme"), "a plan and a status cannot be removed")
	s.patch(`{"timezone":null,"anchor":null,"metadata":null,"overrides":null,"features":null,"apply":"now"}`).want(200)
	got := s.readTenant("acme")
	got.UpdatedAt, got.Version = plain.UpdatedAt, plain.Version
	assert.Equal(t, plain, got)
}

func TestDecode_WholeNumberWithFraction_IsAnInteger(t *testing.T) {
	t.Parallel()
	for _, amount := range []string{"5.0", "5.000"} {
		r, faults := faultsOf(t, `{"tenant":"acme","items":[{"meter":"m","amount":`+amount+`}]}`)
		assert.True(t, faults == nil && r.Items[0].Amount == 5, "%s: %q", amount, faults)
	}
}
