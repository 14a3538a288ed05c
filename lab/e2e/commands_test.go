package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// asks returns the environment of commands that send requests to an instance.
func asks(in *instance) []string {
	return []string{"QUOTASVC_URL=" + in.api, "QUOTASVC_KEY=" + testKey}
}

// ended runs a command and returns its output. It fails the test unless the command ends with the status `want` and
// prints all texts in `prints`, which are separated by |.
func ended(t *testing.T, env []string, want int, prints string, args ...string) string {
	t.Helper()
	status, stdout, stderr := tool(t, env, args...)
	assert.Equal(t, want, status, "%v ended with %d, want %d\n%s%s", args, status, want, stdout, stderr)
	for _, text := range strings.Split(prints, "|") {
		assert.Contains(t, stdout+stderr, text, "%v does not print %q:\n%s%s", args, text, stdout, stderr)
	}
	assert.NotContains(t, stdout+stderr, testKey, "%v prints the key", args)
	return stdout
}

func TestCommands_OverTheAPI_DoWhatTheySay(t *testing.T) {
	in, _ := parallelService(t, 100)
	env := asks(in)
	ended(t, env, 0, "t2: plan basic, active|segment: b2b", "tenant", "create", "t2", "--plan", "basic", "--metadata", "segment=b2b")
	ended(t, env, 1, "exists already", "tenant", "create", "t2", "--plan", "basic")
	ended(t, env, 1, "plan", "tenant", "create", "t3", "--plan", "none")
	ended(t, env, 0, "TENANT|acme|t2|basic", "tenant", "list")
	assert.Equal(t, 2, strings.Count(ended(t, env, 0, "", "tenant", "list", "--json"), "\n"), "lines for 2 tenants")
	assert.Equal(t, 1, strings.Count(ended(t, env, 0, "", "tenant", "list", "--json", "--limit", "1"), "\n"),
		"lines with --limit 1")
	ended(t, env, 0, "debited 30 api_calls of acme as order-1; 70 left", "debit", "acme", "api_calls", "30", "--idempotency-key", "order-1")
	ended(t, env, 0, "already debited 30", "debit", "acme", "api_calls", "30", "--idempotency-key", "order-1")
	ended(t, env, 0, "would have debited 5", "debit", "acme", "api_calls", "5", "--dry-run")
	ended(t, env, 1, "quota_exceeded", "debit", "acme", "api_calls", "71")
	ended(t, env, 0, "debited 70|1 were not covered", "debit", "acme", "api_calls", "71", "--mode", "best_effort")
	ended(t, env, 0, "granted 5,000 to api_calls of acme|5,000 left", "grant", "acme", "api_calls", "5000", "--expires-at", "2999-01-01T00:00:00Z")
	ended(t, env, 0, "METER|api_calls|5,000", "balance", "acme")
	ended(t, env, 0, "GRANT|topup|2999-01-01", "balance", "acme", "api_calls")
	ended(t, env, 0, "acme: plan basic|5,000", "tenant", "get", "acme")
	ended(t, env, 1, "tenant_not_found", "balance", "nobody")
	ended(t, env, 0, "allowed: acme may use 3 api_calls now.|5,000 of", "explain", "acme", "api_calls", "3")
	ended(t, env, 0, "denied: acme may not use 9,000 api_calls now: too little is left|at most 5,000", "explain", "acme", "api_calls", "9000")
	ended(t, env, 0, "allowed: acme could use 100 api_calls at |if nothing is used until then|would come from grant|would remain", "explain", "acme", "api_calls", "100", "--at", time.Now().AddDate(0, 2, 0).Format(time.DateOnly))
	ended(t, env, 0, "denied: acme could not use 9,000 api_calls at |credits_exhausted", "explain", "acme", "api_calls", "9000", "--at", time.Now().AddDate(0, 2, 0).Format(time.DateOnly))
	ended(t, env, 1, "must lie in the next 400 days", "explain", "acme", "api_calls", "1", "--at", "yesterday")
	in.sellTokens(t)
	const rounded = "500 tokens would come from grant|3 coins would come from grant|coins pays for 2,345 tokens, at 1 per 1,000: exactly 2.345, rounded up to 3."
	ended(t, env, 0, "allowed: ada may use 2,845 tokens now.|"+rounded, "explain", "ada", "tokens", "2845")
	ended(t, env, 0, `"exact": "2.345"|"allowed": true`, "explain", "ada", "tokens", "2845", "--json")
	ended(t, env, 0, "USED|100", "usage", "acme", "api_calls")
	ended(t, env, 0, "USED|100", "usage", "acme", "api_calls", "--from", "yesterday")
	ended(t, env, 0, "api_calls of acme|opening|granted|used|-100|closing|5,000", "statement", "acme", "api_calls")
	ended(t, env, 0, ",", "statement", "acme", "api_calls", "current", "--csv")
	for _, args := range [][]string{
		{"tenant", "get", "acme"},
		{"balance", "acme"},
		{"balance", "acme", "api_calls"},
		{"explain", "acme", "api_calls", "1"},
		{"statement", "acme", "api_calls"},
		{"grant", "acme", "api_calls", "1"},
		{"debit", "acme", "api_calls", "1"},
		{"export"},
	} {
		var v map[string]any
		err := json.Unmarshal([]byte(ended(t, env, 0, "", append(args, "--json")...)), &v)
		assert.True(t, err == nil && len(v) != 0, "%v --json: %v", args, err)
	}
}

func TestCommands_WrongUse_StatusTwo(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"balance"},
		{"debit", "t", "m", "many"},
		{"tenant", "list", "--near", "101"},
		{"tenant", "create", "t"},
		{"completion", "tcsh"},
		{"schema", "other"},
		{"balance", "t", "--url", "nowhere", "--key", "k"},
		{"balance", "t", "--url", "http://127.0.0.1:1"},
		{"apply", "-f", "x", "--exit-code", "--url", "http://127.0.0.1:1"},
		{"balance", "t", "--config", "/nonexistent"},
		{"apply", "-f", "x"},
	} {
		ended(t, []string{"HOME=" + t.TempDir()}, 2, "quotasvc: ", args...)
	}
	ended(t, []string{"HOME=" + t.TempDir()}, 2, "QUOTASVC_URL and QUOTASVC_KEY", "balance", "t")
	ended(t, nil, 1, "balance|no_answer", "balance", "t", "--url", "http://"+freeAddress(t), "--key", "k")
}

func TestCommands_Contexts_FromTheFile(t *testing.T) {
	in, _ := parallelService(t, 100)
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "quotasvc")
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		require.NoError(t, os.MkdirAll(dir, 0o700))
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		require.NoError(t, os.Chmod(path, mode))
	}
	write("test.key", testKey+"\n", 0o600)
	const contexts = "current: test\ncontexts:\n  test: {url: %q, key_file: test.key}\n" +
		"  open: {url: %q, key: %s}\n  away: {url: 'http://%s', key: k}\n"
	write("config.yaml", fmt.Sprintf(contexts, in.api, in.api, testKey, freeAddress(t)), 0o644)
	env := []string{"HOME=" + home, "XDG_CONFIG_HOME="}
	ended(t, env, 0, "api_calls", "balance", "acme")
	ended(t, env, 0, "other users of this machine can read the key", "balance", "acme", "--context", "open")
	ended(t, env, 1, "no_answer", "balance", "acme", "--context", "away")
	ended(t, env, 2, `no context "prod"; it has: away, open, test`, "balance", "acme", "--context", "prod")
	// The environment overrides the current context.
	ended(t, append(env, "QUOTASVC_URL=http://"+freeAddress(t), "QUOTASVC_KEY=k"), 1, "no_answer", "balance", "acme")
	ended(t, append(env, "QUOTASVC_URL=http://"+freeAddress(t), "QUOTASVC_KEY=k"), 0, "api_calls", "balance", "acme",
		"--context", "test")
	write("config.yaml", "current: test\ncontext: {}\n", 0o600)
	ended(t, env, 2, "context|2", "balance", "acme")
}

func TestCommands_Apply_OverTheAPIAsOnTheDatabase(t *testing.T) {
	t.Parallel()
	env := backends(t)
	in := serve(t, env)
	file := filepath.Join(t.TempDir(), "catalog.yaml")
	write := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	const first = "meters:\n  calls: {unit: call}\n  idle: {unit: u}\nplans:\n  p:\n    allowances:\n      - {meter: calls, amount: 10, every: day, anchor: calendar}\nlimits:\n  - {rule: slow, per: [tenant], kind: token_bucket, rate: 5/s}\ntenants:\n  t1: {plan: p}\n"
	write(first)
	api := asks(in)
	ended(t, api, 3, "+ plan p|5 created|dry run", "apply", "-f", file, "--dry-run", "--exit-code")
	ended(t, api, 0, "+ plan p|5 created|dry run", "apply", "-f", file, "--dry-run")
	ended(t, api, 0, "+ meter calls|+ plan p|    + allowances[calls].amount: 10|5 created, 0 changed", "apply", "-f", file)
	ended(t, api, 0, "0 created, 0 changed, 5 unchanged", "apply", "-f", file, "--dry-run", "--exit-code")
	ended(t, env[:1], 0, "0 created, 0 changed, 5 unchanged", "apply", "-f", file, "--dry-run", "--exit-code") // on the database
	write("meters:\n  calls: {unit: call}\nplans:\n  p:\n    allowances:\n      - {meter: calls, amount: 9, every: day, anchor: calendar}\nlimits: {}\n")
	var d struct {
		DryRun  bool `json:"dry_run"`
		Changes []struct{ Kind, ID, Action string }
		Counts  map[string]int
	}
	for _, env := range [][]string{api, env[:1]} {
		out := ended(t, env, 3, "", "apply", "-f", file, "--prune", "--dry-run", "--exit-code", "--json")
		err := json.Unmarshal([]byte(out), &d)
		assert.True(t, err == nil && d.DryRun && d.Counts["deleted"] == 2 && d.Counts["changed"] == 1, "%s %v", out, err)
	}
	ended(t, api, 0, "~ plan p|    ~ allowances[calls].amount: 10 -> 9|- meter idle|- limit slow|2 deleted", "apply", "-f", file, "--prune")
	exported := ended(t, api, 0, "# yaml-language-server: $schema=|calls:", "export")
	write(exported)
	ended(t, api, 0, "0 created, 0 changed, 2 unchanged", "apply", "-f", file)

	write("meters:\n  calls: {unit: call}\nplans:\n  p:\n    allowances:\n      - {meter: none, amount: 9, every: day, anchor: calendar}\n")
	for _, env := range [][]string{api, env[:1]} {
		ended(t, env, 1, "nothing was changed|line 6|names the meter", "apply", "-f", file)
	}
	write("meters:\n  calls: {unti: call}\n")
	for _, env := range [][]string{api, env[:1]} {
		ended(t, env, 1, "is not valid|line 2: meters.calls.unti is an unknown field", "apply", "-f", file)
	}
}

func TestCommands_Denials_SayWhatWasRefused(t *testing.T) {
	in, _ := parallelService(t, 100)
	env := asks(in)
	ended(t, env, 0, "No request of acme was refused", "denials", "acme")
	ended(t, env, 1, "credits_exhausted", "debit", "acme", "api_calls", "101")
	testenv.Eventually(t, func() bool {
		status, stdout, _ := tool(t, env, "denials", "acme")
		return status == 0 && strings.Contains(stdout, "credits_exhausted") && strings.Contains(stdout, "AVAILABLE")
	}, "the denial is counted")
	ended(t, env, 0, "1|credits_exhausted|api_calls|101|100", "denials", "acme")
	var list struct{ Items, Counts []map[string]any }
	err := json.Unmarshal([]byte(ended(t, env, 0, "", "denials", "acme", "--json")), &list)
	assert.True(t, err == nil && len(list.Items) == 1 && len(list.Counts) == 1, "%+v %v", list, err)
	ended(t, env, 0, "No request", "denials", "acme", "--to", "2026-01-02T00:00:00Z", "--from", "2026-01-01T00:00:00Z")
	for _, from := range []string{"yesterday", "2d", "90m", "2026-01-01"} {
		ended(t, env, 0, "1|credits_exhausted", "denials", "acme", "--from", from)
	}
	ended(t, env, 0, "No request of acme was refused from 2026-01-01 00:00:00Z", "denials", "acme", "--from", "2026-01-01", "--to", "yesterday")
	for _, wrong := range []string{"tomorrow", "2026-13-01", "-3h", "999999d"} {
		ended(t, env, 2, "--from|yesterday|how long ago", "denials", "acme", "--from="+wrong)
	}
	ended(t, env, 1, "tenant_not_found", "denials", "nobody")

	// The names of a limit and of a meter stay apart.
	in.do(t, 201, "PUT", "/v1/limits/reports", "", object{"per": []string{"tenant"}, "kind": "fixed_window", "rate": "1/d"})
	key := 0
	testenv.Eventually(t, func() bool {
		key++
		_, err := in.send(t.Context(), "POST", "/v1/consume", fmt.Sprint("report-", key), debitOf("acme", "api_calls", 1))
		assert.NoError(t, err)
		_, stdout, _ := tool(t, env, "denials", "acme")
		return strings.Count(stdout, "reports api_calls") >= 2
	}, "the denials name limit and meter")
}

func TestCommands_Shadow_SaysWhatALimitWouldHaveDenied(t *testing.T) {
	in, _ := parallelService(t, 100)
	env := asks(in)
	limit := func(rule, rate, mode string) {
		in.limit(t, rule, object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": rate, "mode": mode, "match": object{"meter": "api_calls"}})
	}
	limit("live", "3/h", "enforce")
	limit("strict", "1/h", "shadow")
	ended(t, env, 0, "LAST|WOULD DENY|hour|day|week|-", "shadow", "strict")
	for i, status := range []int{200, 200, 200, 429} {
		in.do(t, status, "POST", "/v1/consume", fmt.Sprint("k", i), debitOf("acme", "api_calls", 1))
	}
	testenv.Eventually(t, func() bool {
		status, stdout, _ := tool(t, env, "shadow", "strict")
		return status == 0 && strings.Contains(strings.Join(strings.Fields(stdout), " "), "week 2 1 live 1 1 0 TENANT WOULD DENY, LAST week acme 2")
	}, "the requests are counted")
	var got struct{ Spans []map[string]any }
	err := json.Unmarshal([]byte(ended(t, env, 0, "", "shadow", "strict", "--json")), &got)
	assert.True(t, err == nil && len(got.Spans) == 3, "%+v %v", got, err)
	ended(t, env, 1, "not_found", "shadow", "none")
}

func TestCommands_Events_ListedAndFollowed(t *testing.T) {
	in, _ := parallelService(t, 100)
	env := asks(in)
	following := launch(t, env, "events", "--follow", "--type", "grant.created")
	ended(t, env, 0, "granted", "grant", "acme", "api_calls", "5")
	line := following.line("")
	assert.True(t, strings.Contains(line, "grant.created") && strings.Contains(line, "acme api_calls"),
		"followed: %q", line)
	ended(t, env, 0, "granted", "grant", "acme", "api_calls", "6")
	following.line("")
	following.signal(os.Interrupt.(syscall.Signal))
	assert.Equal(t, exitInterrupted, following.wait(), "after an interrupt")
	var first struct {
		EventID string `json:"event_id"`
		Type    string
	}
	all := strings.Split(strings.TrimSpace(ended(t, env, 0, "", "events", "--json", "--tenant", "acme", "--type", "grant.created")), "\n")
	err := json.Unmarshal([]byte(all[0]), &first)
	assert.True(t, err == nil && first.Type == "grant.created" && len(all) == 2, "%q %v", all, err)
	assert.Equal(t, 1,
		strings.Count(ended(t, env, 0, "", "events", "--after", first.EventID, "--type", "grant.created"), "\n"),
		"after the first")
	ended(t, env, 0, "", "events", "--tenant", "acme", "--limit", "1")
}

func TestCompletion_Bash_OffersCommandsFlagsAndValues(t *testing.T) {
	t.Parallel()
	script := must(t, nil, "completion", "bash")
	for line, want := range map[string][]string{
		"quotasvc ":                        {"serve", "tenant", "apply", "completion"},
		"quotasvc ten":                     {"tenant"},
		"quotasvc tenant ":                 {"list", "get", "create"},
		"quotasvc tenant list --n":         {"--near"},
		"quotasvc tenant list --sort ":     {"remaining", "tenant"},
		"quotasvc grant t m 5 --source p":  {"promo"},
		"quotasvc completion ":             {"bash", "zsh", "fish"},
		"quotasvc --url x balance t --js":  {"--json"},
		"quotasvc keys create --expires-i": {"--expires-in"},
	} {
		words := strings.Split(line, " ")
		run := fmt.Sprintf("%s\nCOMP_WORDS=('%s')\nCOMP_CWORD=%d\n_quotasvc\nprintf '%%s\\n' \"${COMPREPLY[@]}\"",
			script, strings.Join(words, "' '"), len(words)-1)
		out, err := exec.CommandContext(t.Context(), "bash", "-c", run).CombinedOutput()
		require.NoError(t, err, "%s: %v\n%s", line, err, out)
		got := strings.Fields(string(out))
		for _, w := range want {
			assert.Contains(t, "\n"+strings.Join(got, "\n")+"\n", "\n"+w+"\n", "%q offers %q, not %s", line, got, w)
		}
	}
	for _, shell := range []string{"zsh", "fish"} {
		script := must(t, nil, "completion", shell)
		assert.Contains(t, script, "tenant", "%s", shell)
		if path, err := exec.LookPath(shell); err == nil {
			out, err := exec.CommandContext(t.Context(), path, "-n", write(t, "script", script)).CombinedOutput()
			assert.NoError(t, err, "%s: %v\n%s", shell, err, out)
		}
	}
}

func TestMan_Page_HasEveryCommand(t *testing.T) {
	t.Parallel()
	page := must(t, nil, "man")
	for _, want := range []string{".TH QUOTASVC 1", ".SS quotasvc tenant list", ".SS quotasvc serve", `\fB\-\-near=PERCENT\fR`, "QUOTASVC_URL", ".SH EXIT STATUS"} {
		assert.Contains(t, page, want, "the page has no %s", want)
	}
	assert.True(t, !strings.Contains(page, "%!") && !regexp.MustCompile(`(?m)^\.[^TSB I]`).MatchString(page),
		"a line is a request of roff by accident")
}

func TestSchema_Catalog_AcceptsWhatApplyAccepts(t *testing.T) {
	t.Parallel()
	var document any
	require.NoError(t, json.Unmarshal([]byte(must(t, nil, "schema", "catalog")), &document))
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("catalog.schema.json", document))
	schema, err := compiler.Compile("catalog.schema.json")
	require.NoError(t, err)
	for text, ok := range map[string]bool{
		`{"meters":{"calls":{"unit":"call"}}}`:                                                                       true,
		`{"meters":[{"meter":"calls","unit":"call"}]}`:                                                               true,
		`{"meters":{"calls":{"unit":"call","meter":"calls"}}}`:                                                       true,
		`{"limits":[{"rule":"r","per":["tenant"],"kind":"token_bucket","rate":"1/s"}],"tenants":{"t":{"plan":"p"}}}`: true,
		`{"blocks":[{"kind":"ip","value":"192.0.2.1"}]}`:                                                             true,
		`{"meters":{"calls":{"unti":"call"}}}`:                                                                       false,
		`{"meters":[{"unit":"call"}]}`:                                                                               false,
		`{"plans":{"p":{"allowances":[{"meter":"m","amount":"many"}]}}}`:                                             false,
		`{"metres":{}}`:                false,
		`{"dry_run":true,"meters":{}}`: false,
	} {
		var v any
		require.NoError(t, json.Unmarshal([]byte(text), &v))
		err = schema.Validate(v)
		assert.True(t, (err == nil) == ok, "%s: %v", text, err)
	}
}

func TestVersion_Flag_PrintsTheVersion(t *testing.T) {
	t.Parallel()
	flag, command := must(t, nil, "--version"), must(t, nil, "version")
	assert.True(t, flag == command && strings.HasPrefix(flag, "quotasvc "), "%q, %q", flag, command)
}
