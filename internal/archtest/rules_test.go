package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mayImport lists, for each package of this module, the packages of this module that
// its code may import. Imports go down only: cmd -> httpapi -> gate -> {balances,
// ledger, ratelimit, catalog} -> {lane, period, bound}. ledger and ratelimit do not
// import each other.
var mayImport = map[string][]string{
	"migrations":                     {},
	"lua":                            {},
	"deploy":                         {},
	"deploy/postgres":                {},
	"client":                         {}, // other programs import it, so it imports nothing of ours
	"client/quotahttp":               {"client"},
	"client/quotaecho":               {"client", "client/quotahttp"},
	"client/examples/nethttp":        {"client", "client/quotahttp"},
	"client/quotaecho/examples/echo": {"client", "client/quotaecho", "client/quotahttp"},
	"client/examples/stream":         {"client"},
	"client/examples/hotpath":        {"client"},
	"client/examples/errors":         {"client"},
	"client/examples/webhook":        {"client"},
	"internal/clientgen":             {}, // reads the contract as a file
	"internal/archtest":              {},
	"internal/bound":                 {},
	"internal/period":                {},
	"internal/lane":                  {},
	"internal/price":                 {"internal/bound"}, // pure
	"internal/recent":                {},
	"internal/waitlist":              {}, // pure
	"internal/breaker":               {},
	"internal/localstack":            {},
	"internal/testenv":               {"internal/citus", "internal/localstack", "deploy/postgres", "migrations"},
	"internal/testenv/suite":         {"internal/testenv"},                                          // the program of make test
	"internal/catalog/diff":          {},                                                            // pure
	"internal/feature":               {"internal/body", "internal/bound", "internal/catalog/check"}, // pure
	"internal/gauge":                 {"internal/bound", "internal/catalog", "internal/ledger", "internal/namedsql", "internal/trail"},
	"internal/newcomer":              {"internal/bound", "internal/catalog", "internal/ledger"},
	"internal/admission":             {"internal/catalog", "internal/denial", "internal/feature", "internal/gate", "internal/ledger", "internal/newcomer", "internal/trail"},
	"internal/catalog/check":         {"internal/body", "internal/bound", "internal/period"},        // pure
	"internal/catalog/block":         {"internal/body", "internal/bound", "internal/catalog/check"}, // pure
	"internal/catalog/reload":        {"internal/backoff"},
	"internal/catalog":               {"internal/address", "internal/catalog/block", "internal/catalog/check", "internal/catalog/diff", "internal/catalog/reload", "internal/body", "internal/bound", "internal/clock", "internal/lane", "internal/listener", "internal/namedsql", "internal/parts", "internal/period", "internal/price", "internal/recent", "internal/route", "internal/trail", "internal/yamldoc", "internal/events", "internal/feature"},
	"internal/catalogdoc":            {"internal/body", "internal/catalog", "internal/catalog/diff", "internal/httpapi/wire", "internal/yamldoc"},
	"internal/backoff":               {},
	"internal/listener":              {"internal/backoff"},
	"internal/events":                {"internal/namedsql"},
	"internal/webhooks":              {"internal/address", "internal/body", "internal/bound", "internal/catalog", "internal/events", "internal/namedsql", "internal/trail"},
	"internal/ledger/hints":          {"internal/ledger"},
	"internal/ledger/pace":           nil,
	"internal/ledger/jobs":           {},
	"internal/ledger/notice":         {"internal/events", "internal/ledger", "internal/period"}, // pure: what changes tell
	"internal/cli":                   {"client", "internal/catalog/diff", "internal/catalogdoc", "internal/httpapi/wire"},
	"internal/namedsql":              {},
	"internal/citus":                 {},
	"internal/override":              {"internal/body", "internal/bound", "internal/catalog", "internal/lane", "internal/namedsql", "internal/trail"},
	"internal/access":                {"internal/body", "internal/bound", "internal/catalog", "internal/namedsql", "internal/trail"},
	"internal/trail":                 {"internal/namedsql"},
	"internal/tracing":               {},
	"internal/pgpool":                {},
	"internal/clock":                 {},                                                                                   // pure: two clocks
	"internal/ledger":                {"internal/bound", "internal/ledger/canonical", "internal/period", "internal/price"}, // pure: the domain
	"internal/ledger/canonical":      {},                                                                                   // pure
	"internal/ledger/audit/seal":     {},                                                                                   // pure: the log of seals
	"internal/ledger/audit":          {"internal/ledger/audit/seal", "internal/namedsql"},                                  // never the ledger: it must not share its mistakes
	"internal/ledger/journal":        {"internal/namedsql"},
	"internal/ledger/archive":        {"internal/ledger", "internal/ledger/journal", "internal/namedsql", "internal/pgpool", "internal/trail"},
	"internal/ledger/model":          {"internal/bound", "internal/ledger", "internal/period", "internal/price"}, // the second implementation, for tests
	"internal/ledger/verifier":       {"internal/bound", "internal/events", "internal/trail", "internal/pgpool", "internal/ledger", "internal/ledger/audit", "internal/ledger/audit/seal", "internal/namedsql"},
	"internal/ledger/pg/termrows":    {"internal/ledger", "internal/period"},
	"internal/ledger/pg":             {"internal/citus", "internal/clock", "internal/events", "internal/ledger", "internal/ledger/hints", "internal/ledger/jobs", "internal/ledger/notice", "internal/ledger/journal", "internal/ledger/pace", "internal/ledger/pg/termrows", "internal/namedsql", "internal/pgpool", "internal/bound", "internal/breaker", "internal/lane", "internal/period", "internal/trail"},
	"internal/ledger/history":        {"internal/ledger", "internal/ledger/pg", "internal/pgpool", "internal/namedsql", "internal/bound", "internal/period"},
	"internal/redisstore":            {"internal/lane"},
	"internal/once":                  {"internal/redisstore"},
	"internal/ratelimit":             {"internal/ratelimit/replica", "internal/ratelimit/rule", "internal/redisstore", "internal/bound", "lua"},
	"internal/ratelimit/replica":     {"internal/ratelimit/rule", "internal/redisstore", "internal/bound", "lua"},
	"internal/ratelimit/rule":        {"internal/bound", "internal/period"},         // pure: the arithmetic of limits
	"internal/ratelimit/rule/oracle": {"internal/ratelimit/rule", "internal/bound"}, // the second implementation, for tests
	"internal/balances":              {"internal/ledger", "internal/recent", "internal/redisstore", "lua"},
	"internal/address":               {}, // pure: which addresses count as one caller
	"internal/business":              {"internal/catalog", "internal/ledger"},
	"internal/roster":                {"internal/bound", "internal/catalog", "internal/ledger", "internal/ledger/history", "internal/ledger/pg", "internal/namedsql"},
	"internal/denial":                {"internal/events", "internal/ledger", "internal/ledger/history", "internal/namedsql", "internal/pgpool"},
	"internal/status":                {"internal/ledger", "internal/ledger/history", "internal/namedsql"},
	"internal/gate":                  {"internal/address", "internal/balances", "internal/business", "internal/denial", "internal/trail", "internal/once", "internal/body", "internal/catalog", "internal/catalog/block", "internal/ledger", "internal/ledger/pg", "internal/override", "internal/ratelimit", "internal/ratelimit/rule", "internal/redisstore", "internal/parts", "internal/period", "internal/route", "internal/newcomer", "internal/waitlist"},

	"internal/body":                 {"internal/bound", "internal/period"},
	"internal/yamldoc":              {"internal/body"},
	"internal/parts":                {},                                   // pure: a map in versions
	"internal/route":                {"internal/bound", "internal/parts"}, // pure: patterns and spellings of routes
	"internal/testclock":            {"internal/body", "internal/catalog", "internal/clock", "internal/ledger/pg", "internal/trail"},
	"internal/httpapi/wire":         {},
	"internal/httpapi/answers":      {"internal/access", "internal/address", "internal/catalog", "internal/catalog/block", "internal/denial", "internal/events", "internal/feature", "internal/gate", "internal/gauge", "internal/ledger", "internal/ledger/audit", "internal/ledger/history", "internal/ledger/pg", "internal/ledger/verifier", "internal/ratelimit/rule", "internal/roster", "internal/status", "internal/httpapi/wire", "internal/override", "internal/testclock", "internal/trail", "internal/webhooks"},
	"internal/httpapi/reference":    {"internal/httpapi/wire"},
	"internal/httpapi/forwarded":    {"internal/body", "internal/bound", "internal/route"},
	"internal/httpapi/encoding":     {"internal/gate", "internal/ledger"},
	"internal/httpapi/limitheaders": {"internal/gate"},
	"internal/envoyrls":             {"internal/access", "internal/body", "internal/bound", "internal/gate", "internal/httpapi/limitheaders", "internal/ledger", "internal/ratelimit", "internal/route"},
	"internal/transport":            {}, // connections, whatever they carry
	"internal/ops":                  {},
	"internal/httpapi": {
		"internal/address", "internal/body", "internal/bound", "internal/httpapi/wire", "internal/httpapi/encoding", "internal/httpapi/forwarded", "internal/httpapi/limitheaders", "internal/httpapi/reference", "internal/gate", "internal/balances", "internal/catalog", "internal/catalogdoc", "internal/catalog/block", "internal/ledger", "internal/ledger/pg", "internal/admission", "internal/feature", "internal/newcomer", "internal/gauge", "internal/httpapi/answers",
		"internal/ledger/audit", "internal/ledger/audit/seal", "internal/ledger/history", "internal/ledger/verifier",
		"internal/ratelimit", "internal/ratelimit/rule", "internal/period", "internal/trail", "internal/access", "internal/denial", "internal/override", "internal/roster", "internal/status", "internal/testclock", "internal/events", "internal/webhooks", "internal/portal/link",
	},

	"internal/console/session": {"internal/catalog", "internal/namedsql"},
	"internal/console/oidc":    {"internal/access", "internal/bound"},
	"internal/console":         {"client", "internal/access", "internal/catalogdoc", "internal/console/oidc", "internal/console/session", "internal/once", "internal/yamldoc", "internal/inprocess", "internal/asset"}, // catalogdoc reads YAML as requests; all it shows and changes goes through the API's handler
	"internal/inprocess":       {"client", "internal/access"},
	"internal/asset":           {},
	"internal/portal/look":     {},
	"internal/portal/words":    {},
	"internal/portal":          {"client", "internal/access", "internal/asset", "internal/inprocess", "internal/portal/link", "internal/portal/look", "internal/portal/words", "internal/ratelimit/rule"},
	"internal/portal/link":     {"internal/body", "internal/catalog", "internal/namedsql", "internal/trail"},

	"internal/demo":    {"client"}, // a client like others
	"internal/program": {},         // starts the product's binary
	"internal/bench": {
		"internal/httpapi", "internal/gate", "internal/catalog", "internal/ledger", "internal/ratelimit", "internal/lane",
		"internal/bench/chart", "internal/bench/growth", "internal/bench/past", "internal/bench/report", "internal/bench/tuning", "internal/localstack", "internal/program", "migrations",
	},
	"internal/bench/chart":  {},
	"internal/bench/report": {"internal/bench/chart"},
	"internal/bench/scale":  {}, // pure: a load model
	"internal/bench/growth": {"internal/bench/chart", "internal/bench/report"},
	"internal/bench/past":   {"internal/ledger"}, // writes what the ledger would have written
	"internal/bench/tuning": {"internal/bench/chart", "internal/bench/report"},
	"internal/drill":        {"internal/bench/chart", "internal/localstack", "internal/program"}, // it asks the product over HTTP
	"internal/drill/cmd":    {"internal/drill", "internal/localstack"},
	"internal/bench/cmd": {
		"internal/bench", "internal/bench/report", "internal/bench/scale", "internal/localstack",
	},
	"cmd/quotasvc": {
		"internal/httpapi", "internal/httpapi/limitheaders", "internal/gate", "internal/balances", "internal/catalog", "internal/catalog/diff", "internal/ledger", "internal/ledger/pg", "internal/ledger/history", "internal/ledger/audit", "internal/ledger/audit/seal", "internal/ledger/journal", "internal/ledger/archive", "internal/ledger/verifier",
		"internal/citus", "internal/cli", "internal/clock", "internal/denial", "internal/envoyrls", "internal/once", "internal/override", "internal/ratelimit", "internal/ratelimit/replica", "internal/redisstore", "internal/lane", "internal/testclock", "internal/events", "internal/webhooks",
		"internal/newcomer", "internal/status",
		"internal/gauge",
		"internal/console", "internal/console/oidc", "internal/console/session", "internal/body", "internal/httpapi/forwarded", "internal/portal", "internal/portal/link", "internal/portal/look",
		"client", "internal/demo", // dev fills its data as a client
		"internal/bound", "internal/namedsql", "internal/period", "internal/localstack", "internal/ops", "internal/pgpool", "internal/transport", "internal/trail", "internal/tracing", "internal/access", "internal/yamldoc", "deploy/postgres", "migrations",
		"internal/httpapi/answers",
	},
}

// mayImportInTests lists further packages that a package's tests may import.
var mayImportInTests = map[string][]string{
	// Programs on the real ledger, explained by the model; every test ends with a verification.
	"internal/ledger/pg":            {"internal/ledger/audit", "internal/ledger/history", "internal/ledger/model", "internal/ledger/verifier"},
	"internal/denial":               {"internal/ledger/pg"}, // the ledger behind the reports
	"internal/status":               {"internal/ledger/pg"},
	"internal/ledger/history":       {"internal/ledger/verifier"},
	"internal/ledger/archive":       {"internal/clock", "internal/trail", "internal/ledger/audit", "internal/ledger/audit/seal", "internal/ledger/model", "internal/ledger/pg", "internal/ledger/history", "internal/ledger/verifier"}, // make, read and verify what is archived
	"internal/ledger/verifier":      {"internal/ledger/pg"},                                                                                                                                                                            // what documents may be; makes what is verified
	"internal/httpapi/limitheaders": {"internal/body", "internal/bound"},
	"internal/httpapi":              {"internal/transport", "internal/catalog/diff", "internal/price"},                                          // the API behind real connections
	"cmd/quotasvc":                  {"client/quotahttp", "internal/bench", "internal/bench/growth", "internal/bench/report", "internal/drill"}, // the client on the real service; the small forms of `make bench-outage`, `make bench-growth` and `make drill`
	"internal/gate":                 {"internal/price"},
	"internal/gauge":                {"internal/ledger/audit"}, // every test ends with a verification
	"internal/ratelimit":            {"internal/ratelimit/rule/oracle"},
	"internal/ratelimit/rule":       {"internal/ratelimit/rule/oracle"},
}

// outsideTheOrder lists packages that any test may import: servers and embedded files.
var outsideTheOrder = []string{"internal/localstack", "internal/namedsql", "deploy/postgres", "migrations", "lua"}

// onlyIn lists the packages whose code may import a library. Tests may import any
// library, for example to read a server's data, except those in notEvenInTests.
var onlyIn = map[string][]string{
	"github.com/labstack/echo":                    {"internal/httpapi", "internal/bench", "client/quotaecho", "client/quotaecho/examples/echo"},
	"github.com/a-h/templ":                        {"internal/console", "internal/portal"},
	"github.com/coreos/go-oidc":                   {"internal/console/oidc"},
	"golang.org/x/oauth2":                         {"internal/console/oidc"},
	"google.golang.org/grpc":                      {"internal/envoyrls"},
	"github.com/envoyproxy/go-control-plane":      {"internal/envoyrls"},
	"github.com/jackc/pgx":                        {"internal/citus", "internal/pgpool", "internal/bench", "internal/bench/past", "internal/drill", "internal/ledger/pg", "internal/ledger/pg/termrows", "internal/ledger/history", "internal/ledger/audit", "internal/ledger/journal", "internal/ledger/archive", "internal/ledger/verifier", "internal/catalog", "internal/access", "internal/denial", "internal/override", "internal/console/session", "internal/portal/link", "internal/trail", "internal/testclock", "internal/localstack", "internal/testenv", "cmd/quotasvc", "internal/events", "internal/listener", "internal/gauge", "internal/webhooks", "internal/roster", "internal/status"},
	"database/sql":                                {"internal/testenv", "cmd/quotasvc"}, // goose needs it
	"github.com/pressly/goose":                    {"internal/testenv", "cmd/quotasvc"},
	"github.com/redis/go-redis":                   {"internal/redisstore", "internal/testenv"},
	"go.opentelemetry.io/otel/sdk":                {"internal/tracing"},
	"go.opentelemetry.io/contrib":                 {"internal/tracing"},
	"go.opentelemetry.io/otel/exporters":          {"internal/tracing"},
	"github.com/riverqueue/river":                 {"internal/webhooks"},
	"github.com/standard-webhooks":                {"internal/webhooks", "internal/cli"},
	"github.com/exaring/otelpgx":                  {"internal/pgpool"},
	"github.com/alecthomas/kong":                  {"cmd/quotasvc", "internal/cli", "internal/bench/cmd", "internal/drill/cmd"},
	"github.com/testcontainers/testcontainers-go": {"internal/testenv"},
	"github.com/moby/moby":                        {"internal/testenv"},
	"go.uber.org/goleak":                          {"internal/testenv"},
	"pgregory.net/rapid":                          {"internal/ledger/model"},
	"testing":                                     {"internal/testenv", "internal/ledger/model"},
	"golang.org/x/mod":                            {"internal/ledger/audit/seal"},
	"github.com/stretchr/testify":                 {},
	"unsafe":                                      {},
	"C":                                           {},
}

var notEvenInTests = []string{"github.com/labstack/echo", "unsafe", "C"}

// pure matches the files that decide without input or output: the state machine,
// the burn order, calendars and bucket arithmetic. Tests can cover all their cases,
// because their results depend on their arguments only.
var pure = regexp.MustCompile(`^internal/((bound|ledger|ledger/canonical|period|price|ratelimit/rule)/\w+|balances/policy|` +
	`ratelimit/(lease_id|vector|workbench|replica/membership|replica/shares))\.go$`)

// pureOurs are the packages of ours that pure files may import: those that are pure, and replica and redisstore for their values
// (sets of replicas, script calls and replies).
var pureOurs = []string{
	"internal/bound", "internal/ledger", "internal/ledger/canonical", "internal/price", "internal/period", "internal/ratelimit/rule", "internal/ratelimit/replica", "internal/redisstore",
}

// impure lists standard packages that pure files must not import.
var impure = []string{"context", "database/", "io/", "log", "math/rand", "crypto/rand", "net", "os", "runtime", "syscall"}

const (
	// maxLines bounds hand-written code. The style guide asks for at most 400 lines; a
	// file with 500 has two subjects.
	maxLines = 500

	// maxTestLines bounds a test file, which may have long tables.
	maxTestLines = 800
)

// A rule returns one line for each violation in a file.
type rule func(f *file) []string

func importsGoDown(f *file) []string {
	var wrong []string
	allowed, known := mayImport[f.pkg]
	if !known {
		return []string{fmt.Sprintf("%s: package %s is missing in mayImport: add it with its imports", f.path, f.pkg)}
	}
	for _, p := range f.imports() {
		ours, ok := strings.CutPrefix(p, module+"/")
		switch {
		case !ok || ours == f.pkg || slices.Contains(allowed, ours):
		case f.test && ours == "internal/testenv" && f.pkg != "internal/localstack": // testenv imports localstack
		case f.test && slices.Contains(outsideTheOrder, ours):
		case f.test && slices.Contains(mayImportInTests[f.pkg], ours):
		default:
			wrong = append(wrong, fmt.Sprintf("%s: %s must not import %s", f.path, f.pkg, ours))
		}
	}
	return wrong
}

func librariesStayWhereTheyBelong(f *file) []string {
	var wrong []string
	for _, p := range f.imports() {
		for library, packages := range onlyIn {
			if p != library && !strings.HasPrefix(p, library+"/") {
				continue
			}
			applies := !f.test || slices.Contains(notEvenInTests, library)
			if applies && !slices.Contains(packages, f.pkg) {
				wrong = append(wrong, fmt.Sprintf("%s: %s must not import %s", f.path, f.pkg, p))
			}
		}
	}
	return wrong
}

func pureFilesTouchNothing(f *file) []string {
	if f.test || !pure.MatchString(f.path) {
		return nil
	}
	var wrong []string
	for _, p := range f.imports() {
		standard := !strings.Contains(strings.Split(p, "/")[0], ".")
		if !standard && !slices.Contains(pureOurs, strings.TrimPrefix(p, module+"/")) {
			wrong = append(wrong, fmt.Sprintf("%s: a pure file must not import %s", f.path, p))
		}
		for _, bad := range impure {
			if p == strings.TrimSuffix(bad, "/") || strings.HasPrefix(p, strings.TrimSuffix(bad, "/")+"/") {
				wrong = append(wrong, fmt.Sprintf("%s: a pure file must not import %s", f.path, p))
			}
		}
	}
	for _, pos := range f.calls("time", "Now", "Since", "Until", "Sleep", "After", "NewTimer", "NewTicker", "Tick", "AfterFunc") {
		wrong = append(wrong, fmt.Sprintf("%s: a pure file must not read the clock: pass the time as an argument", f.at(pos)))
	}
	return wrong
}

func filesStayShort(f *file) []string {
	limit := maxLines
	if f.test {
		limit = maxTestLines
	}
	if f.generated || f.lines <= limit {
		return nil
	}
	return []string{fmt.Sprintf("%s has %d lines; at most %d are allowed: split the file", f.path, f.lines, limit)}
}

func nothingHappensBeforeMain(f *file) []string {
	var wrong []string
	for _, d := range f.syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" && !f.generated {
			wrong = append(wrong, f.at(fn.Pos())+": init() is not allowed: a package does nothing before it is called")
		}
	}
	return wrong
}

// todo matches a marker of unfinished work, issue the number of an issue.
var (
	todo  = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)
	issue = regexp.MustCompile(`#\d+`)
)

func noPromisesInComments(f *file) []string {
	if f.pkg == "internal/archtest" {
		return nil // it contains the markers
	}
	var wrong []string
	for _, group := range f.syntax.Comments {
		for _, c := range group.List {
			if todo.MatchString(c.Text) && !issue.MatchString(c.Text) {
				wrong = append(wrong, f.at(c.Pos())+": finish the work, or name the number of its issue")
			}
		}
	}
	return wrong
}

// typographic holds typographic quotation marks. gofmt makes one out of two single quotes in a doc comment.
const typographic = "\u2018\u2019\u201c\u201d"

func commentsHavePlainQuotes(f *file) []string {
	var wrong []string
	for _, group := range f.syntax.Comments {
		for _, c := range group.List {
			if strings.ContainsAny(c.Text, typographic) {
				wrong = append(wrong, f.at(c.Pos())+": a typographic quotation mark; write \"empty\" for an empty string")
			}
		}
	}
	return wrong
}

// banned maps words to the glossary's word for the same thing. Only exported names are
// checked, because other packages use them.
var banned = map[string]string{
	"Account": "tenant", "Customer": "tenant", "Organization": "tenant", "Tier": "plan",
	"Entitlement": "allowance", "Cycle": "period", "Reservation": "hold", "Decrement": "debit", "Accrual": "grant",
}

var words = regexp.MustCompile(`[A-Z][a-z]+`)

func exportedNamesFollowTheGlossary(f *file) []string {
	if f.test || f.generated {
		return nil
	}
	var wrong []string
	check := func(id *ast.Ident) {
		if !id.IsExported() {
			return
		}
		for _, w := range words.FindAllString(id.Name, -1) {
			if better, ok := banned[strings.TrimSuffix(w, "s")]; ok {
				wrong = append(wrong, fmt.Sprintf("%s: %s: the glossary's word is %q", f.at(id.Pos()), id.Name, better))
			}
		}
	}
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			check(d.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					check(s.Name)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						check(name)
					}
				}
			}
		}
	}
	return wrong
}

var rules = map[string]rule{
	"imports go down only":               importsGoDown,
	"libraries stay where they belong":   librariesStayWhereTheyBelong,
	"pure files touch nothing":           pureFilesTouchNothing,
	"files stay short":                   filesStayShort,
	"nothing happens before main":        nothingHappensBeforeMain,
	"no promises in comments":            noPromisesInComments,
	"comments have plain quotes":         commentsHavePlainQuotes,
	"exported names follow the glossary": exportedNamesFollowTheGlossary,
}

func TestRules_Repository_Hold(t *testing.T) {
	t.Parallel()
	files := repository(t)
	for name, check := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, f := range files {
				for _, wrong := range check(f) {
					t.Error(wrong)
				}
			}
		})
	}
}

// A rule about files that do not exist checks nothing.
func TestRules_PureFiles_Exist(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, f := range repository(t) {
		if !f.test && pure.MatchString(f.path) {
			found[f.path] = true
		}
	}
	for _, name := range []string{
		"ledger/advance", "ledger/batch", "ledger/book", "ledger/debit",
		"ratelimit/rule/bucket", "ratelimit/rule/limit", "ratelimit/lease_id", "ratelimit/replica/membership", "ratelimit/replica/shares", "ratelimit/vector",
		"ratelimit/workbench", "period/schedule", "bound/bound", "bound/metadata", "balances/policy",
	} {
		if p := path.Join("internal", name+".go"); !found[p] {
			t.Errorf("%s is gone or no longer counts as pure", p)
		}
	}
}

func TestRules_Packages_Documented(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for _, f := range repository(t) {
		if f.test || f.generated {
			continue
		}
		documented[f.pkg] = documented[f.pkg] || f.syntax.Doc != nil
		if strings.HasPrefix(f.pkg, "internal/") && path.Base(f.path) != "doc.go" && f.syntax.Doc != nil {
			t.Errorf("%s: move the package comment to doc.go", f.path)
		}
	}
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment", pkg)
		}
	}
}

// Each rule must find its violation.
func TestRules_Violations_Caught(t *testing.T) {
	t.Parallel()
	long := "package lane\n" + strings.Repeat("// line\n", maxLines)
	for _, c := range []struct{ rule, path, text string }{
		{"imports go down only", "internal/lane/x.go", `package lane; import _ "github.com/quotasvc/quotasvc/internal/ledger"`},
		{"imports go down only", "internal/ledger/x.go", `package ledger; import _ "github.com/quotasvc/quotasvc/internal/ratelimit"`},
		{"imports go down only", "internal/ledger/x.go", `package ledger; import _ "github.com/quotasvc/quotasvc/internal/ledger/pg"`},
		{"imports go down only", "internal/ledger/x.go", `package ledger; import _ "github.com/quotasvc/quotasvc/internal/lane"`},
		{"imports go down only", "internal/ledger/audit/x.go", `package audit; import _ "github.com/quotasvc/quotasvc/internal/ledger"`},
		{"imports go down only", "internal/gate/x.go", `package gate; import _ "github.com/quotasvc/quotasvc/internal/ledger/model"`},
		{"imports go down only", "internal/ledger/x_test.go", `package ledger; import _ "github.com/quotasvc/quotasvc/internal/ratelimit"`},
		{"imports go down only", "internal/ratelimit/x.go", `package ratelimit; import _ "github.com/quotasvc/quotasvc/internal/ledger"`},
		{"imports go down only", "internal/gate/x.go", `package gate; import _ "github.com/quotasvc/quotasvc/internal/httpapi"`},
		{"imports go down only", "internal/gate/x.go", `package gate; import _ "github.com/quotasvc/quotasvc/internal/testenv"`},
		{"imports go down only", "internal/common/x.go", `package common`},
		{"imports go down only", "cmd/quotasvc/x.go", `package main; import _ "github.com/quotasvc/quotasvc/internal/bench"`},
		{"libraries stay where they belong", "internal/gate/x.go", `package gate; import _ "github.com/labstack/echo/v4"`},
		{"libraries stay where they belong", "internal/gate/x_test.go", `package gate; import _ "github.com/labstack/echo/v4/middleware"`},
		{"libraries stay where they belong", "internal/httpapi/x.go", `package httpapi; import _ "github.com/jackc/pgx/v5"`},
		{"libraries stay where they belong", "internal/ledger/pg/x.go", `package pg; import _ "github.com/redis/go-redis/v9"`},
		{"libraries stay where they belong", "internal/ledger/x.go", `package ledger; import _ "github.com/jackc/pgx/v5"`},
		{"libraries stay where they belong", "internal/ledger/x.go", `package ledger; import _ "pgregory.net/rapid"`},
		{"pure files touch nothing", "internal/period/x.go", `package period; import _ "github.com/google/uuid"`},
		{"pure files touch nothing", "internal/ledger/batch.go", `package ledger; import _ "log/slog"`},
		{"pure files touch nothing", "internal/ledger/batch.go", `package ledger; import _ "context"`},
		{"pure files touch nothing", "internal/ratelimit/rule/bucket.go", `package rule; import "time"; var x = time.Now`},
		{"files stay short", "internal/lane/x.go", long},
		{"nothing happens before main", "internal/lane/x.go", `package lane; func init() {}`},
		{"no promises in comments", "internal/lane/x.go", "package lane\n\n// TODO: later\nvar x int\n"},
		{"comments have plain quotes", "internal/lane/x.go", "package lane\n\n// x is \u201d when there is none.\nvar x string\n"},
		{"exported names follow the glossary", "internal/ledger/x.go", `package ledger; type CustomerID string`},
		{"exported names follow the glossary", "internal/ledger/x.go", `package ledger; func (l *Ledger) NewReservations() {}`},
	} {
		f, err := parse(c.path, c.text)
		if err != nil {
			t.Fatal(err)
		}
		if len(rules[c.rule](f)) == 0 {
			t.Errorf("rule %q does not find the violation in %s: %.80q", c.rule, c.path, c.text)
		}
	}
	for _, c := range []struct{ path, text string }{
		{"internal/lane/x.go", "package lane\n\n// x isn't \"empty\".\nvar x string\n"},
		{"internal/gate/x.go", `package gate; import _ "github.com/quotasvc/quotasvc/internal/ledger"`},
		{"internal/gate/x_test.go", `package gate; import (_ "github.com/quotasvc/quotasvc/internal/testenv"; _ "github.com/jackc/pgx/v5")`},
		{"internal/ledger/batch.go", `package ledger; import ("time"; _ "github.com/quotasvc/quotasvc/internal/period"); var _ time.Time`},
		{"internal/lane/x.go", "package lane\n\n// TODO(#12): later\nfunc (l *Lane) init() {}\n"},
	} {
		f, err := parse(c.path, c.text)
		if err != nil {
			t.Fatal(err)
		}
		for name, check := range rules {
			if wrong := check(f); len(wrong) > 0 {
				t.Errorf("rule %q finds a violation in %s: %v", name, c.path, wrong)
			}
		}
	}
}
