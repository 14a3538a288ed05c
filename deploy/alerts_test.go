package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// envWithout is the variable with the name of a tool whose tests are skipped. Without it a missing tool fails the tests, because
// the rules would be unchecked.
const envWithout = "QUOTASVC_TEST_WITHOUT"

// promtool runs promtool in deploy/prometheus.
func promtool(t *testing.T, args ...string) string {
	t.Helper()
	name, err := exec.LookPath("promtool")
	if err != nil {
		if name, err = filepath.Abs("../bin/promtool"); err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestAlerts_Rules_Valid(t *testing.T) {
	t.Parallel()
	if out := promtool(t, "check", "rules", "--lint=all", "--lint-fatal", "alerts.yml"); !strings.Contains(out, "SUCCESS") {
		t.Error(out)
	}
}

func TestAlerts_Samples_FireWhenTheyShould(t *testing.T) {
	t.Parallel()
	if out := promtool(t, "test", "rules", "alerts_test.yml"); !strings.Contains(out, "SUCCESS") {
		t.Error(out)
	}
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
	if len(all) < 10 {
		t.Fatalf("%d alerts", len(all))
	}
	return all
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func TestAlerts_Annotations_CauseAndRemedy(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range readAlerts(t) {
		if a.Labels["severity"] != "page" && a.Labels["severity"] != "ticket" || a.Annotations["summary"] == "" {
			t.Errorf("%s: labels %v, annotations %v", a.Alert, a.Labels, a.Annotations)
		}
		if !strings.Contains(string(guide), "`"+a.Alert+"`") {
			t.Errorf("docs/operations.md does not say what to do about %s", a.Alert)
		}
	}
}

// Without a sample that fires, a rule may never fire. Without a silent sample, it may always fire.
func TestAlerts_Samples_CoverFiringAndSilent(t *testing.T) {
	t.Parallel()
	var file struct {
		Tests []struct {
			AlertRuleTest []struct {
				Alertname string           `yaml:"alertname"`
				ExpAlerts []map[string]any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	readYAML(t, "prometheus/alerts_test.yml", &file)
	firing, silent := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, a := range test.AlertRuleTest {
			if len(a.ExpAlerts) > 0 {
				firing[a.Alertname] = true
			} else {
				silent[a.Alertname] = true
			}
		}
	}
	for _, a := range readAlerts(t) {
		if !firing[a.Alert] || !silent[a.Alert] {
			t.Errorf("%s: firing %v, silent %v", a.Alert, firing[a.Alert], silent[a.Alert])
		}
	}
}
