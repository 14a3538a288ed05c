package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

const root = "../../.."

// The table of features names only tests that exist, for each supported feature of the Go client.
func TestFeatures_OfGo_NameTestsThatExist(t *testing.T) {
	t.Parallel()
	raw := testenv.Must(t).Get(os.ReadFile(filepath.Join(root, "client/features.json")))
	var f features
	require.NoError(t, json.Unmarshal(raw, &f))
	declared := map[string]bool{}
	for _, pkg := range []string{"client", "lab/e2e"} {
		files := testenv.Must(t).Get(filepath.Glob(filepath.Join(root, pkg, "*_test.go")))
		for _, name := range files {
			text := testenv.Must(t).Get(os.ReadFile(name))
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
				declared[pkg+"/"+string(m[1])] = true
			}
		}
	}
	for _, row := range rows {
		feature, ok := f.Features[row.name]
		assert.True(t, ok, "client/features.json has no %s", row.name)
		for _, test := range feature.Tests {
			assert.True(t, declared[test], "%s names %s, which does not exist", row.name, test)
		}
	}
}

func TestTable_Repository_IsUpToDate(t *testing.T) {
	t.Parallel()
	want := testenv.Must(t).Get(tableOf(root))
	got, err := os.ReadFile(filepath.Join(root, "docs/sdks.md"))
	assert.True(t, err == nil && string(got) == string(want), "docs/sdks.md is out of date (%v): make generate", err)
}

func TestComplete_UnknownOrUnshown_Refused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"features":{"magic":{"supported":true,"tests":["x"]}}}`: "has no row",
		`{"features":{"retries":{"supported":true}}}`:             "names no test",
		`{"features":{"retries":{"supported":false}}}`:            "",
	} {
		var f features
		require.NoError(t, json.Unmarshal([]byte(text), &f))
		err := complete(&f)
		assert.True(t, (err == nil) == (want == "") && (err == nil || strings.Contains(err.Error(), want)),
			"%s: %v, want %q", text, err, want)
	}
}

// The client has a method for each operation of the contract, and the generated methods are up to date.
func TestOperations_OfTheContract_EachHasAMethod(t *testing.T) {
	t.Parallel()
	contract, err := openapi3.NewLoader().LoadFromFile(filepath.Join(root, "internal/httpapi/reference/openapi.yaml"))
	require.NoError(t, err)
	all := testenv.Must(t).Get(readOperations(contract))
	want := testenv.Must(t).Get(methodsOf(all, codesOf(contract)))
	got, err := os.ReadFile(filepath.Join(root, "client/operations.gen.go"))
	assert.True(t, err == nil && string(got) == string(want),
		"client/operations.gen.go is out of date (%v): make generate", err)
	assert.True(t, len(all) >= 70, "%d operations were found", len(all))
}

func TestTypeOf_Unknown_Refused(t *testing.T) {
	t.Parallel()
	_, err := typeOf(openapi3.NewArraySchema())
	assert.Error(t, err, "a list is a parameter")
}
