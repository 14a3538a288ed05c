package httpapi

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/diff"
	"github.com/quotasvc/quotasvc/internal/httpapi/encoding"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// guide returns the text of docs/api.md. The type of a problem is a link to this page.
func guide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/api.md")
	require.NoError(t, err)
	return string(text)
}

func TestDocs_ExplainEveryCodeWithStatus(t *testing.T) {
	t.Parallel()
	_, errorPart, found := strings.Cut(guide(t), "\n# Errors\n")
	require.True(t, found && strings.HasSuffix(problemBase, "/docs/api.md#"),
		"the page has no errors, or is not where %s links to", problemBase)
	explained := map[errcode.Code]string{}
	for _, m := range regexp.MustCompile(`(?m)^## (.+)\n\n(\d{3})\. `).FindAllStringSubmatch(errorPart, -1) {
		explained[errcode.Code(m[1])] = m[2]
	}
	want := map[errcode.Code]string{}
	for code, kind := range problemKinds() {
		want[code] = statusText(kind.status)
	}
	assert.Equal(t, want, explained)
}

func statusText(status int) string { return string(encoding.AppendField(nil, "", int64(status))) }

func TestDocs_CatalogueFileParses(t *testing.T) {
	t.Parallel()
	s := newService(t)
	_, text, found := strings.Cut(guide(t), "```yaml\n")
	text, _, closed := strings.Cut(text, "```")
	require.True(t, found && closed, "there is none")
	file, err := catalog.ParseFile([]byte(text))
	require.NoError(t, err)
	report, err := s.server.store.Apply(t.Context(), file, false)
	assert.True(t, err == nil && report.Count(diff.Created) == 5, "%v\n%v", err, report)
}

// example matches a call of the shell function api in docs/api.md. A call may assign a member of its answer to a
// variable.
var example = regexp.MustCompile(
	"(?m)^(?:([A-Z_]+)=\\$\\()?api ([A-Z]+) ('[^']+'|\"[^\"]+\"|\\S+)((?: -H '[^']+')*)(?: -d '([^']*)')?" +
		"(?: \\| sed 's/\\.\\*\"(\\w+)\":[^']+'\\))?$",
)

func TestDocs_ExamplesWorkInOrder(t *testing.T) {
	t.Parallel()
	s := newOwner(t) // the last examples move the clock
	text := guide(t)
	examples := example.FindAllStringSubmatch(text, -1)
	lines := len(regexp.MustCompile(`(?m)^(\w+=\$\()?api `).FindAllString(text, -1))
	require.True(t, len(examples) == lines && lines >= 30, "%d of %d examples are read", len(examples), lines)
	date := regexp.MustCompile(`\$\(date -u \+([^)]+)\)`)
	now := time.Now().UTC()
	clock := strings.NewReplacer("%Y", now.Format("2006"), "%m", now.Format("01"), "%d", now.Format("02"), "%H", now.Format("15"),
		"%M", now.Format("04"), "%S", now.Format("05"))
	shown := map[string]bool{}
	variables := map[string]string{}
	for _, e := range examples {
		variable, method, body, member := e[1], e[2], e[5], e[6]
		path := date.ReplaceAllStringFunc(strings.Trim(e[3], `'"`), func(cmd string) string { return clock.Replace(date.FindStringSubmatch(cmd)[1]) })
		path = os.Expand(path, func(name string) string { return variables[name] })
		var headers []string
		for _, h := range regexp.MustCompile(`-H '([^:]+): ([^']+)'`).FindAllStringSubmatch(e[4], -1) {
			headers = append(headers, h[1], h[2])
		}
		a := s.call(method, path, body, headers...)
		if variable != "" {
			answer := decoded[map[string]any](a)
			variables[variable], _ = answer[member].(string)
		}
		assert.True(t, a.status < 400, "%s\n%d %s", e[0], a.status, a.body)
		if rule, ok := strings.CutPrefix(path, "/v1/limits/"); ok && method == "PUT" && !strings.Contains(rule, "/") {
			s.eventually("the limit is known", func() bool {
				return slices.ContainsFunc(s.server.catalog.Snapshot().Limits, func(l *catalog.Limit) bool { return l.Rule == rule })
			})
		}
		if _, _, op := operationOf(method, s.request(method, path, nil).URL); op != nil {
			shown[op.OperationID] = true
		}
	}
	for _, operation := range []string{
		"check", "consume", "authorize", "debit", "debitBatch", "hold", "captureHold", "releaseHold", "extendHold", "refund", "grant", "voidGrant", "extendGrant", "adjust",
		"listBalances", "getBalance", "listEntries", "getOperation", "listPeriods", "getStatement", "listUsage", "listDenials", "putMeter", "putPlan", "putTenant",
		"patchTenant", "setGauge", "getGauge", "listGaugeEntries", "getFeatures", "listTerms",
		"putLimit", "acquireLease", "renewLease", "releaseLease", "startRoll", "startVerification", "createKey", "listKeys", "rotateKey", "revokeKey", "listAudit", "advanceTestClock", "getTestClock",
	} {
		assert.True(t, shown[operation], "%s has no example; shown are %v", operation, slices.Sorted(maps.Keys(shown)))
	}
}
