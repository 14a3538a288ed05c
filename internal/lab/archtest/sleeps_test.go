package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maySleep lists the functions of tests that may sleep for a fixed time, with the reason. All other tests wait for an
// event, with testenv.Eventually or testenv.Receive. Sleeping in a bubble of testing/synctest is allowed, because it
// takes no real time. The list may only become shorter.
var maySleep = map[string]string{
	"lab/e2e/process_test.go pace":                                          "the pace of a load",
	"internal/gate/bundle_test.go pace":                                     "the pace of a load",
	"internal/ledger/pg/clients_test.go backOff":                            "the pace of a load",
	"internal/ratelimit/fullest_bench_test.go BenchmarkFullest":             "the pace of a load, in a benchmark",
	"lab/bench/load_test.go TestOpenLoop_WaitForConnection_CountsAsLatency": "a receiver that is slow",
	"lab/e2e/memory_test.go heap":                                           "what is kept for 2 s is let go: no metric shows it",
}

// sleeps returns the functions of a test file that call time.Sleep or time.After outside a synctest bubble. Each
// result is the path of the file and the name of the function.
func sleeps(f *file) []string {
	var found []string
	for _, d := range f.syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		slept := false
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isCall(call, "synctest", "Test") {
				return false
			}
			if use, ok := n.(*ast.SelectorExpr); ok {
				slept = slept || isUse(use, "time", "Sleep") || isUse(use, "time", "After") || isUse(use, "time", "Tick")
			}
			return true
		})
		if slept {
			found = append(found, f.path+" "+fn.Name.Name)
		}
	}
	return found
}

func isCall(call *ast.CallExpr, pkg, name string) bool {
	use, ok := call.Fun.(*ast.SelectorExpr)
	return ok && isUse(use, pkg, name)
}

func isUse(use *ast.SelectorExpr, pkg, name string) bool {
	from, ok := use.X.(*ast.Ident)
	return ok && from.Name == pkg && use.Sel.Name == name
}

func TestSleeps_Repository_OnlyThoseListed(t *testing.T) {
	t.Parallel()
	unseen := maps.Clone(maySleep)
	for _, f := range repository(t) {
		if !f.test {
			continue
		}
		for _, place := range sleeps(f) {
			assert.NotEmpty(t, maySleep[place],
				"%s lets a span of time pass: wait for what is meant, with testenv.Eventually or testenv.Receive", place)
			delete(unseen, place)
		}
	}
	for _, place := range slices.Sorted(maps.Keys(unseen)) {
		t.Errorf("%s does not sleep any more: take it off the list", place)
	}
}

func TestSleeps_Violations_Caught(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		"time.Sleep(1)": 1, "<-time.After(1)": 1, "nap := time.Sleep; nap(1)": 1, "func() { time.Sleep(1) }()": 1, "for range time.Tick(1) {}": 1,
		"synctest.Test(t, func(t *testing.T) { time.Sleep(1) })":                0,
		"synctest.Test(t, func(t *testing.T) { time.Sleep(1) }); time.Sleep(1)": 1,
		"time.Now(); testenv.Eventually(t, ok)":                                 0,
	} {
		f, err := parse("internal/kit/lane/x_test.go", fmt.Sprintf("package lane\n\nfunc TestX_Y(t *testing.T) { %s }\n", body))
		require.NoError(t, err)
		found := sleeps(f)
		assert.Len(t, found, want, "%s", body)
	}
}
