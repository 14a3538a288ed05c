package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// envWithout is the environment variable that contains the name of a tool whose tests are skipped. If it is not set,
// tests fail when the tool is missing, because otherwise nobody would notice that the rules are unchecked.
const envWithout = "QUOTASVC_TEST_WITHOUT"

// promtool runs promtool in deploy/prometheus and returns its output.
func promtool(t *testing.T, args ...string) string {
	t.Helper()
	name, err := exec.LookPath("promtool")
	if err != nil {
		name, err = filepath.Abs("../bin/promtool")
		require.NoError(t, err)
		if _, err := os.Stat(name); err != nil {
			const what = "promtool, which checks the alert rules, is neither in PATH nor in bin/"
			if slices.Contains(strings.Split(os.Getenv(envWithout), ","), "promtool") {
				t.Skip(what + ": skipped because of " + envWithout)
			}
			t.Fatal(what + ": run `make test-tools`, install prometheus, or set " + envWithout + "=promtool to skip the test")
		}
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = "prometheus"
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	return string(out)
}

func TestAlerts_Rules_Valid(t *testing.T) {
	t.Parallel()
	assert.Contains(t, promtool(t, "check", "rules", "--lint=all", "--lint-fatal", "alerts.yml"), "SUCCESS")
}

// samples are the files in deploy/prometheus with sample series that test the rules.
var samples = []string{"alerts_test.yml", "alerts_slow_test.yml"}

func TestAlerts_Samples_FireWhenTheyShould(t *testing.T) {
	t.Parallel()
	assert.Contains(t, promtool(t, append([]string{"test", "rules"}, samples...)...), "SUCCESS")
}

// alertRules is the part of alerts.yml that the tests use.
type alertRules struct {
	Groups []struct {
		Rules []alertRule
	}
}

type alertRule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func readAlerts(t *testing.T) []alertRule {
	t.Helper()
	var file alertRules
	readYAML(t, "prometheus/alerts.yml", &file)
	var all []alertRule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	require.True(t, len(all) >= 10, "%d alerts", len(all))
	return all
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(file(t, "deploy", path)), into), "%s", path)
}

// runbook is the URL of the page whose sections explain the alerts.
const runbook = "https://github.com/quotasvc/quotasvc/blob/main/docs/operations/alerts.md#"

// runbookParts are the beginnings of the lines that each section about an alert must have.
var runbookParts = []string{"- **Means:** ", "- **Callers see:** ", "- **Look at:** ", "- **Do:** "}

// sectionsOf returns the sections of a page by their anchors.
func sectionsOf(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	sections, anchor := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		if marks, title, ok := strings.Cut(line, " "); ok && strings.Trim(marks, "#") == "" && marks != "" {
			anchor = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(title)), " ", "-")
			continue
		}
		sections[anchor] += line
	}
	return sections
}

func TestAlerts_Annotations_RunbookOfItsOwn(t *testing.T) {
	t.Parallel()
	sections := sectionsOf(t, "../docs/operations/alerts.md")
	linked := map[string]bool{}
	for _, a := range readAlerts(t) {
		if a.Labels["severity"] != "page" && a.Labels["severity"] != "ticket" || a.Annotations["summary"] == "" {
			t.Errorf("%s: labels %v, annotations %v", a.Alert, a.Labels, a.Annotations)
		}
		anchor, ok := strings.CutPrefix(a.Annotations["runbook_url"], runbook)
		if !ok || anchor != strings.ToLower(a.Alert) {
			t.Errorf("%s: runbook_url %q", a.Alert, a.Annotations["runbook_url"])
			continue
		}
		linked[anchor] = true
		for _, part := range runbookParts {
			_, text, found := strings.Cut(sections[anchor], part)
			assert.True(t, found && len(strings.Fields(text)) >= 2,
				"docs/operations/alerts.md#%s does not have %q", anchor, part)
		}
	}
	for anchor := range sections {
		assert.False(t, strings.HasPrefix(anchor, "quotasvc") && !linked[anchor],
			"docs/operations/alerts.md#%s is about no alert", anchor)
	}
}

// Each rule needs sample series that fire it; otherwise it may never fire. It also needs sample series that do not
// fire it; otherwise it may always fire.
func TestAlerts_Samples_CoverFiringAndSilent(t *testing.T) {
	t.Parallel()
	firing, silent := map[string]bool{}, map[string]bool{}
	for _, name := range samples {
		var file struct {
			Tests []struct {
				AlertRuleTest []struct {
					Alertname string           `yaml:"alertname"`
					ExpAlerts []map[string]any `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		readYAML(t, "prometheus/"+name, &file)
		for _, test := range file.Tests {
			for _, a := range test.AlertRuleTest {
				firing[a.Alertname] = firing[a.Alertname] || len(a.ExpAlerts) > 0
				silent[a.Alertname] = silent[a.Alertname] || len(a.ExpAlerts) == 0
			}
		}
	}
	for _, a := range readAlerts(t) {
		assert.True(t, firing[a.Alert] && silent[a.Alert],
			"%s: firing %v, silent %v", a.Alert, firing[a.Alert], silent[a.Alert])
	}
}
