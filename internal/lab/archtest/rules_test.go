package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onlyIn maps a library to the packages whose code may import it. Tests may import any library, for example to read a
// server's data, except the libraries in notEvenInTests.
var onlyIn = map[string][]string{
	"github.com/labstack/echo":                    {"internal/httpapi", "lab/bench", "client/quotaecho", "client/quotaecho/examples/echo"},
	"github.com/a-h/templ":                        {"internal/pages/console", "internal/pages/portal"},
	"github.com/coreos/go-oidc":                   {"internal/pages/console/oidc"},
	"golang.org/x/oauth2":                         {"internal/pages/console/oidc"},
	"google.golang.org/grpc":                      {"internal/httpapi/envoyrls"},
	"github.com/envoyproxy/go-control-plane":      {"internal/httpapi/envoyrls"},
	"github.com/jackc/pgx":                        {"internal/store/citus", "internal/store/pgpool", "internal/store/pgstore", "lab/bench", "lab/bench/past", "lab/drill", "internal/ledger/pg", "internal/ledger/agreed", "internal/ledger/history", "internal/ledger/audit", "internal/ledger/journal", "internal/ledger/archive", "internal/ledger/verifier", "internal/catalog", "internal/access", "internal/report/denial", "internal/catalog/override", "internal/access/session", "internal/access/link", "internal/outbox/auditlog", "internal/report/testclock", "internal/lab/localstack", "internal/lab/testenv", "cmd/quotasvc", "internal/outbox/events", "internal/store/listener", "internal/catalog/gauge", "internal/notify/webhooks", "internal/report/tenantlist", "internal/report/status"},
	"database/sql":                                {"internal/lab/testenv", "cmd/quotasvc"}, // goose needs it
	"github.com/pressly/goose":                    {"internal/lab/testenv", "cmd/quotasvc"},
	"github.com/redis/go-redis":                   {"internal/store/redisstore", "internal/lab/testenv", "lab/drill"},
	"go.opentelemetry.io/otel/sdk":                {"internal/serve/tracing"},
	"go.opentelemetry.io/contrib":                 {"internal/serve/tracing"},
	"go.opentelemetry.io/otel/exporters":          {"internal/serve/tracing"},
	"github.com/riverqueue/river":                 {"internal/notify/webhooks"},
	"github.com/standard-webhooks":                {"internal/notify/webhooks", "internal/cli"},
	"github.com/exaring/otelpgx":                  {"internal/store/pgpool"},
	"github.com/alecthomas/kong":                  {"cmd/quotasvc", "internal/cli", "lab/bench/cmd", "lab/drill/cmd"},
	"github.com/testcontainers/testcontainers-go": {"internal/lab/testenv"},
	"github.com/moby/moby":                        {"internal/lab/testenv"},
	"go.uber.org/goleak":                          {"internal/lab/testenv"},
	"pgregory.net/rapid":                          {"internal/ledger/model"},
	"testing":                                     {"internal/lab/testenv", "internal/ledger/model"},
	"golang.org/x/mod":                            {"internal/ledger/audit/seal"},
	"github.com/stretchr/testify":                 {"internal/lab/testenv"},
	"unsafe":                                      {},
	"C":                                           {},
}

var notEvenInTests = []string{"github.com/labstack/echo", "unsafe", "C"}

// pure matches the files that make decisions without input or output. These are the operations of the ledger, the order
// in which grants are used, the calendars and the arithmetic of buckets. Tests can cover all their cases, because the
// results of such a file depend on its arguments only.
var pure = regexp.MustCompile(`^internal/((kit/bound|ledger|kit/period|kit/price|ratelimit/rule)/\w+|gate/balances/policy|` +
	`ratelimit/(lease_id|vector|workbench|replica/membership|replica/shares))\.go$`)

// pureOurs are the packages of this repository that pure files may import. Most of these packages are pure. Three are
// allowed for their values: errcode for errors, replica for sets of replicas, redisstore for script calls and
// replies.
var pureOurs = []string{
	"internal/kit/bound", "internal/kit/errcode", "internal/kit/price", "internal/kit/period",
	"internal/ledger",
	"internal/ratelimit/rule", "internal/ratelimit/replica", "internal/store/redisstore",
}

// impure lists standard packages that pure files must not import.
var impure = []string{"context", "database/", "io/", "log", "math/rand", "crypto/rand", "net", "os", "runtime", "syscall"}

const (
	// maxLines is the maximum number of lines of a file of hand-written code. The style guide asks for at most 400
	// lines; a file with 500 lines has two subjects.
	maxLines = 500

	// maxTestLines is the maximum number of lines of a test file, which may have long tables.
	maxTestLines = 800
)

// A rule returns one line for each violation in a file.
type rule func(f *file) []string

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

// todo matches a marker of unfinished work. issue matches the number of an issue, which must follow the marker.
var (
	todo  = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)
	issue = regexp.MustCompile(`#\d+`)
)

func noPromisesInComments(f *file) []string {
	if f.pkg == "internal/lab/archtest" {
		return nil // this package contains the markers
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

// typographic contains the typographic quotation marks. gofmt writes such a mark for two single quotes in a doc
// comment.
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

// banned maps words to the glossary's word for the same concept. The rule checks only exported names, because other
// packages use them.
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

// The pattern pure must match existing files: a rule about files that do not exist checks nothing.
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
		"ratelimit/workbench", "kit/period/schedule", "kit/bound/bound", "kit/bound/metadata", "gate/balances/policy",
	} {
		p := path.Join("internal", name+".go")
		assert.True(t, found[p], "%s is gone or no longer counts as pure", p)
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
		ours := strings.HasPrefix(f.pkg, "internal/") || strings.HasPrefix(f.pkg, "lab/")
		assert.False(t, ours && path.Base(f.path) != "doc.go" && f.syntax.Doc != nil,
			"%s: move the package comment to doc.go", f.path)
	}
	for pkg, ok := range documented {
		assert.True(t, ok, "%s has no package comment", pkg)
	}
}

// Each rule must find the violation in its example.
func TestRules_Violations_Caught(t *testing.T) {
	t.Parallel()
	long := "package lane\n" + strings.Repeat("// line\n", maxLines)
	for _, c := range []struct{ rule, path, text string }{
		{"imports go down only", "internal/kit/lane/x.go", `package lane; import _ "github.com/quotasvc/quotasvc/internal/ledger"`},
		{"imports go down only", "internal/ledger/x.go", `package ledger; import _ "github.com/quotasvc/quotasvc/internal/ratelimit"`},
		{"imports go down only", "internal/ledger/x.go", `package ledger; import _ "github.com/quotasvc/quotasvc/internal/ledger/pg"`},
		{"imports go down only", "internal/ledger/x.go", `package ledger; import _ "github.com/quotasvc/quotasvc/internal/kit/lane"`},
		{"imports go down only", "internal/ledger/audit/x.go", `package audit; import _ "github.com/quotasvc/quotasvc/internal/ledger"`},
		{"imports go down only", "internal/gate/x.go", `package gate; import _ "github.com/quotasvc/quotasvc/internal/ledger/model"`},
		{"imports go down only", "internal/ledger/x_test.go", `package ledger; import _ "github.com/quotasvc/quotasvc/internal/ratelimit"`},
		{"imports go down only", "internal/ratelimit/x.go", `package ratelimit; import _ "github.com/quotasvc/quotasvc/internal/ledger"`},
		{"imports go down only", "internal/gate/x.go", `package gate; import _ "github.com/quotasvc/quotasvc/internal/httpapi"`},
		{"imports go down only", "internal/gate/x.go", `package gate; import _ "github.com/quotasvc/quotasvc/internal/lab/testenv"`},
		{"imports go down only", "internal/common/x.go", `package common`},
		{"imports go down only", "internal/pages/console/x.go", `package console; import _ "github.com/quotasvc/quotasvc/internal/gate"`},
		{"imports go down only", "client/x.go", `package client; import _ "github.com/quotasvc/quotasvc/internal/kit/bound"`},
		{"imports go down only", "cmd/quotasvc/x.go", `package main; import _ "github.com/quotasvc/quotasvc/lab/bench"`},
		{"imports go down only", "lab/bench/x.go", `package bench; import _ "github.com/quotasvc/quotasvc/internal/gate"`},
		{"libraries stay where they belong", "internal/gate/x.go", `package gate; import _ "github.com/labstack/echo/v4"`},
		{"libraries stay where they belong", "internal/gate/x_test.go", `package gate; import _ "github.com/labstack/echo/v4/middleware"`},
		{"libraries stay where they belong", "internal/httpapi/x.go", `package httpapi; import _ "github.com/jackc/pgx/v5"`},
		{"libraries stay where they belong", "internal/ledger/pg/x.go", `package pg; import _ "github.com/redis/go-redis/v9"`},
		{"libraries stay where they belong", "internal/ledger/x.go", `package ledger; import _ "github.com/jackc/pgx/v5"`},
		{"libraries stay where they belong", "internal/ledger/x.go", `package ledger; import _ "pgregory.net/rapid"`},
		{"pure files touch nothing", "internal/kit/period/x.go", `package period; import _ "github.com/google/uuid"`},
		{"pure files touch nothing", "internal/ledger/batch.go", `package ledger; import _ "log/slog"`},
		{"pure files touch nothing", "internal/ledger/batch.go", `package ledger; import _ "context"`},
		{"pure files touch nothing", "internal/ratelimit/rule/bucket.go", `package rule; import "time"; var x = time.Now`},
		{"files stay short", "internal/kit/lane/x.go", long},
		{"nothing happens before main", "internal/kit/lane/x.go", `package lane; func init() {}`},
		{"no promises in comments", "internal/kit/lane/x.go", "package lane\n\n// TODO: later\nvar x int\n"},
		{"comments have plain quotes", "internal/kit/lane/x.go", "package lane\n\n// x is \u201d when there is none.\nvar x string\n"},
		{"exported names follow the glossary", "internal/ledger/x.go", `package ledger; type CustomerID string`},
		{"exported names follow the glossary", "internal/ledger/x.go", `package ledger; func (l *Ledger) NewReservations() {}`},
	} {
		f, err := parse(c.path, c.text)
		require.NoError(t, err)
		assert.NotEmpty(t, rules[c.rule](f), "rule %q does not find the violation in %s: %.80q", c.rule, c.path, c.text)
	}
	for _, c := range []struct{ path, text string }{
		{"internal/kit/lane/x.go", "package lane\n\n// x isn't \"empty\".\nvar x string\n"},
		{"internal/gate/x.go", `package gate; import _ "github.com/quotasvc/quotasvc/internal/ledger"`},
		{"internal/gate/x_test.go", `package gate; import (_ "github.com/quotasvc/quotasvc/internal/lab/testenv"; _ "github.com/jackc/pgx/v5")`},
		{"internal/ledger/batch.go", `package ledger; import ("time"; _ "github.com/quotasvc/quotasvc/internal/kit/period"); var _ time.Time`},
		{"internal/kit/lane/x.go", "package lane\n\n// TODO(#12): later\nfunc (l *Lane) init() {}\n"},
	} {
		f, err := parse(c.path, c.text)
		require.NoError(t, err)
		for name, check := range rules {
			wrong := check(f)
			assert.Empty(t, wrong, "rule %q finds a violation in %s: %v", name, c.path, wrong)
		}
	}
}
