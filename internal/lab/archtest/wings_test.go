package archtest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// wing is a folder of internal/, with all packages in it.
type wing struct {
	name    string
	imports []string // the wings that its code may import
	inTests []string // those that only its tests may import
}

// wings are the house from the ground up: no wing imports one above it. docs/architecture.md says what each is for.
var wings = []wing{
	{name: "kit"},
	{name: "serve", imports: []string{"kit"}},
	{name: "store", imports: []string{"kit"}},
	{name: "outbox", imports: []string{"kit", "store"}},
	{name: "ratelimit", imports: []string{"kit", "store"}},
	{name: "ledger", imports: []string{"kit", "store", "outbox"}},
	{name: "catalog", imports: []string{"kit", "store", "outbox", "ledger"}},
	// Tests of links and keys have tenants and announcements.
	{name: "access", imports: []string{"kit", "store", "outbox"}, inTests: []string{"catalog"}},
	{name: "notify", imports: []string{"kit", "store", "outbox"}},
	{name: "report", imports: []string{"kit", "store", "outbox", "ledger", "catalog"}},
	{name: "gate", imports: []string{"kit", "store", "outbox", "ratelimit", "ledger", "catalog", "report"}},
	{
		name:    "httpapi",
		imports: []string{"kit", "outbox", "ratelimit", "ledger", "catalog", "access", "notify", "report", "gate"},
		inTests: []string{"serve", "store"}, // the API behind real connections, over a real database
	},
	// People's pages and commands are clients of the API: they see no more than a key may.
	{name: "pages", imports: []string{"kit", "store", "ratelimit", "access", "httpapi"}},
	{name: "cli", imports: []string{"kit", "catalog", "httpapi"}},
	// The laboratory measures and tests; nothing of it is in a request.
	{name: "lab", imports: []string{"store"}},
}

// outside are the folders that are no wing, with what they may import. It also says which of them a wing may import.
var outside = map[string][]string{
	"client":        {}, // other programs import it, so it imports nothing of ours
	"deploy":        {},
	"migrations":    {},
	"lua":           {},
	"cmd/quotasvc":  {"client", "deploy", "migrations"}, // and every wing
	"internal/lab":  {"client", "deploy", "migrations"},
	"lab":           {"client", "deploy", "migrations", "internal/kit", "internal/ledger", "internal/lab"},
	"internal/cli":  {"client"},
	"internal/gate": {"lua"},

	"internal/httpapi": {"client"}, // its answers are the types that a client reads

	"internal/pages":     {"client"},
	"internal/ratelimit": {"lua"},
}

// laboratoryInTheProduct are the packages of the laboratory that the service's program contains, for `quotasvc dev`.
var laboratoryInTheProduct = []string{"internal/lab/demo", "internal/lab/localstack"}

// narrow lists packages whose code may import less than their wing does, with all that it may import of ours.
var narrow = map[string][]string{
	// the domain
	"internal/ledger": {"internal/kit/bound", "internal/kit/errcode", "internal/kit/period", "internal/kit/price"},
	// never the domain: it must not share its mistakes
	"internal/ledger/audit":      {"internal/kit/backoff", "internal/ledger/audit/seal", "internal/store/namedsql"},
	"internal/ledger/audit/seal": {},
	// the arithmetic of limits
	"internal/ratelimit/rule": {"internal/kit/bound", "internal/kit/period"},
	// second implementations
	"internal/ledger/model": {
		"internal/kit/bound", "internal/kit/errcode", "internal/kit/period", "internal/kit/price", "internal/ledger",
	},
	"internal/ratelimit/rule/oracle": {"internal/kit/bound", "internal/ratelimit/rule"},
	// a queue
	"internal/kit/lane": {},
}

// onlyTests are the second implementations: no code but tests imports them.
var onlyTests = []string{"internal/ledger/model", "internal/ratelimit/rule/oracle"}

// forAnyTest are servers and embedded files.
var forAnyTest = []string{
	"internal/lab/localstack", "internal/lab/testenv", "internal/store/namedsql",
	"deploy/postgres", "migrations", "lua",
}

// roomOf returns the wing of a package, with its path, or the folder outside of the wings in which it is.
func roomOf(pkg string) string {
	parts := strings.SplitN(pkg, "/", 3)
	if (parts[0] == "internal" || parts[0] == "cmd") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// mayImportRoom reports whether a package of one room may import one of another room.
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

// mayImport reports whether a file may import a package of ours.
func mayImport(f *file, ours string) bool {
	from, to := roomOf(f.pkg), roomOf(ours)
	switch {
	case ours == f.pkg:
		return true
	case f.pkg == "internal/lab/localstack" && ours == "internal/lab/testenv":
		return false // which imports it
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

// A wing imports wings below it, so there is no circle; and each is there, with no other beside them.
func TestWings_Table_GoesDown(t *testing.T) {
	t.Parallel()
	var below, names []string
	for _, w := range wings {
		for _, name := range slices.Concat(w.imports, w.inTests) {
			if !slices.Contains(below, name) {
				t.Errorf("%s imports %s, which is not below it", w.name, name)
			}
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
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, names) {
		t.Errorf("the wings are %q, the table has %q", got, names)
	}
	// What no package imports any longer leaves the table.
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
			if !used[[2]string{"internal/" + w.name, "internal/" + name}] {
				t.Errorf("%s does not import %s", w.name, name)
			}
		}
	}
}
