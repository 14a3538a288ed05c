package archtest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// wing is a folder of internal/ with all its packages.
type wing struct {
	name    string
	imports []string // the wings that its code may import
	inTests []string // the wings that only its tests may import
}

// wings lists the wings from the lowest to the highest. A wing imports only wings that come before it in this list.
// docs/architecture.md describes the purpose of each wing.
var wings = []wing{
	{name: "kit"},
	{name: "serve", imports: []string{"kit"}},
	{name: "store", imports: []string{"kit"}},
	{name: "outbox", imports: []string{"kit", "store"}},
	{name: "ratelimit", imports: []string{"kit", "store"}},
	{name: "ledger", imports: []string{"kit", "store", "outbox"}},
	{name: "catalog", imports: []string{"kit", "store", "outbox", "ledger"}},
	// Tests of links and keys create tenants and announcements.
	{name: "access", imports: []string{"kit", "store", "outbox"}, inTests: []string{"catalog"}},
	{name: "notify", imports: []string{"kit", "store", "outbox"}},
	{name: "report", imports: []string{"kit", "store", "outbox", "ledger", "catalog"}},
	{name: "gate", imports: []string{"kit", "store", "outbox", "ratelimit", "ledger", "catalog", "report"}},
	{
		name:    "httpapi",
		imports: []string{"kit", "outbox", "ratelimit", "ledger", "catalog", "access", "notify", "report", "gate"},
		inTests: []string{"serve", "store"}, // the tests use the API with real connections and a real database
	},
	// The pages and the commands are clients of the API: they can read and do only what an API key allows.
	{name: "pages", imports: []string{"kit", "store", "ratelimit", "access", "httpapi"}},
	{name: "cli", imports: []string{"kit", "catalog", "httpapi"}},
	// The laboratory measures and tests. No request runs its code.
	{name: "lab", imports: []string{"store"}},
}

// outside maps each folder that is not a wing to the folders that its packages may import. For some wings, it also
// lists the folders that are not wings and that the wing may import.
var outside = map[string][]string{
	"client":        {}, // other programs import the client, so it imports no other package of ours
	"deploy":        {},
	"migrations":    {},
	"lua":           {},
	"cmd/quotasvc":  {"client", "deploy", "migrations"}, // also every wing: see mayImportRoom
	"internal/lab":  {"client", "deploy", "migrations"},
	"lab":           {"client", "deploy", "migrations", "internal/kit", "internal/ledger", "internal/lab"},
	"internal/cli":  {"client"},
	"internal/gate": {"lua"},

	"internal/httpapi": {"client"}, // answers of the API are types of the client

	"internal/pages":     {"client"},
	"internal/ratelimit": {"lua"},
}

// laboratoryInTheProduct are the packages of the laboratory that the service's program contains, for `quotasvc dev`.
var laboratoryInTheProduct = []string{"internal/lab/demo", "internal/lab/localstack"}

// narrow lists packages that may import less than the rest of their wing. The value contains all packages of this
// repository that the package may import.
var narrow = map[string][]string{
	// The domain has no input and output.
	"internal/ledger": {"internal/kit/bound", "internal/kit/errcode", "internal/kit/period", "internal/kit/price"},
	// The audit never imports the domain: it must not repeat the domain's mistakes.
	"internal/ledger/audit":      {"internal/kit/backoff", "internal/ledger/audit/seal", "internal/store/namedsql"},
	"internal/ledger/audit/seal": {},
	// The arithmetic of limits has no input and output.
	"internal/ratelimit/rule": {"internal/kit/bound", "internal/kit/period"},
	// The second implementations, with which tests compare the first ones, may import only few packages.
	"internal/ledger/model": {
		"internal/kit/bound", "internal/kit/errcode", "internal/kit/period", "internal/kit/price", "internal/ledger",
	},
	"internal/ratelimit/rule/oracle": {"internal/kit/bound", "internal/ratelimit/rule"},
	// The queue depends on no other package.
	"internal/kit/lane": {},
}

// onlyTests lists the second implementations. Only tests may import them.
var onlyTests = []string{"internal/ledger/model", "internal/ratelimit/rule/oracle"}

// forAnyTest lists the packages that the tests of every package may import: test servers and embedded files.
var forAnyTest = []string{
	"internal/lab/localstack", "internal/lab/testenv", "internal/store/namedsql",
	"deploy/postgres", "migrations", "lua",
}

// roomOf returns the path of the wing that contains a package. If the package is in no wing, roomOf returns its
// folder.
func roomOf(pkg string) string {
	parts := strings.SplitN(pkg, "/", 3)
	if (parts[0] == "internal" || parts[0] == "cmd") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// mayImportRoom reports whether the packages of one wing or folder may import the packages of another.
func mayImportRoom(from, to string, test bool) bool {
	if slices.Contains(outside[from], to) {
		return true
	}
	name, isWing := strings.CutPrefix(to, "internal/")
	if from == "cmd/quotasvc" {
		return isWing && (name != "lab" || test)
	}
	for _, w := range wings {
		if "internal/"+w.name == from {
			return isWing && (slices.Contains(w.imports, name) || test && slices.Contains(w.inTests, name))
		}
	}
	return false
}

// mayImport reports whether a file may import the package `ours` of this repository.
func mayImport(f *file, ours string) bool {
	from, to := roomOf(f.pkg), roomOf(ours)
	switch {
	case ours == f.pkg:
		return true
	case f.pkg == "internal/lab/localstack" && ours == "internal/lab/testenv":
		return false // testenv imports localstack
	case f.test && slices.Contains(forAnyTest, ours):
		return true
	case !f.test && slices.Contains(onlyTests, ours):
		return from == "internal/lab"
	case !f.test && narrow[f.pkg] != nil:
		return slices.Contains(narrow[f.pkg], ours)
	case from == "cmd/quotasvc" && slices.Contains(laboratoryInTheProduct, ours):
		return true
	}
	return from == to || mayImportRoom(from, to, f.test)
}

func importsGoDown(f *file) []string {
	from := roomOf(f.pkg)
	isWing := slices.ContainsFunc(wings, func(w wing) bool { return "internal/"+w.name == from })
	if _, known := outside[from]; !known && !isWing {
		return []string{fmt.Sprintf("%s: %s is no wing: see docs/architecture.md", f.path, from)}
	}
	var wrong []string
	for _, p := range f.imports() {
		if ours, ok := strings.CutPrefix(p, module+"/"); ok && !mayImport(f, ours) {
			wrong = append(wrong, fmt.Sprintf("%s: %s must not import %s", f.path, f.pkg, ours))
		}
	}
	return wrong
}

// A wing imports only wings below it, so imports have no cycle. The table lists exactly the wings that exist.
func TestWings_Table_GoesDown(t *testing.T) {
	t.Parallel()
	var below, names []string
	for _, w := range wings {
		for _, name := range slices.Concat(w.imports, w.inTests) {
			assert.True(t, slices.Contains(below, name), "%s imports %s, which is not below it", w.name, name)
		}
		below, names = append(below, w.name), append(names, "internal/"+w.name)
	}
	found := map[string]bool{}
	for _, f := range repository(t) {
		if room := roomOf(f.pkg); path.Dir(room) == "internal" {
			found[room] = true
		}
	}
	slices.Sort(names)
	got := slices.Sorted(maps.Keys(found))
	assert.True(t, slices.Equal(got, names), "the wings are %q, the table has %q", got, names)
	// If no package uses a permitted import any more, the import must leave the table.
	used := map[[2]string]bool{}
	for _, f := range repository(t) {
		for _, p := range f.imports() {
			if ours, ok := strings.CutPrefix(p, module+"/"); ok {
				used[[2]string{roomOf(f.pkg), roomOf(ours)}] = true
			}
		}
	}
	for _, w := range wings {
		for _, name := range slices.Concat(w.imports, w.inTests) {
			assert.True(t, used[[2]string{"internal/" + w.name, "internal/" + name}],
				"%s does not import %s", w.name, name)
		}
	}
}
