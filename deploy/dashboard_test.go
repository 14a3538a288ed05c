package deploy_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dashboard has the members of Grafana's file format that the dashboard uses. Reading refuses other members. A
// misspelled member has no effect in Grafana, so otherwise nobody would notice it.
type dashboard struct {
	Title, UID, Description, Refresh, Timezone string
	Tags                                       []string
	SchemaVersion, Version                     int
	Editable                                   bool
	Time                                       struct{ From, To string }
	Links                                      []dashboardLink
	Annotations                                struct{ List []annotation }
	Templating                                 struct{ List []variable }
	Panels                                     []panel
}

type dashboardLink struct {
	Title, Type, URL, Tooltip, Icon                string
	TargetBlank, AsDropdown, IncludeVars, KeepTime bool
	Tags                                           []string
}

type datasource struct{ Type, UID string }

type annotation struct {
	Name, IconColor, Expr, Step, TitleFormat, TextFormat, TagKeys string
	Datasource                                                    datasource
	Enable, Hide, UseValueForTime                                 bool
}

type variable struct {
	Name, Type, Label, Description, AllValue string
	Query                                    any
	Datasource                               datasource
	IncludeAll, Multi                        bool
	Refresh                                  int
	Current                                  struct{ Text, Value string }
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               datasource
	GridPos                  struct{ H, W, X, Y int }
	Collapsed                bool
	Panels                   []panel
	Targets                  []struct {
		RefID, Expr, LegendFormat, Format string
		Datasource                        datasource
		Exemplar, Instant, Range          bool
	}
	FieldConfig struct {
		Defaults struct {
			Unit       string
			Min, Max   *float64
			Custom     map[string]any
			Thresholds struct {
				Mode  string
				Steps []struct {
					Color string
					Value *float64
				}
			}
		}
		Overrides []any
	}
	Options map[string]any
}

// gridWidth is the number of columns of a Grafana dashboard.
const gridWidth = 24

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	in := json.NewDecoder(strings.NewReader(file(t, "deploy", "grafana", "quotasvc.json")))
	in.DisallowUnknownFields()
	var d dashboard
	require.NoError(t, in.Decode(&d))
	require.True(t, len(d.Panels) >= 40 && d.UID != "" && d.SchemaVersion >= 39,
		"%d panels, uid %q, schema %d", len(d.Panels), d.UID, d.SchemaVersion)
	return d
}

// units are the units of values that the dashboard uses, by their names in Grafana.
var units = []string{"short", "s", "reqps", "ops", "bytes", "percentunit"}

func TestDashboard_Panels_CompleteAndApart(t *testing.T) {
	t.Parallel()
	ids, taken := map[int]bool{}, map[[2]int]string{}
	titles := map[string]bool{}
	source := datasource{"prometheus", "${datasource}"}
	for _, p := range readDashboard(t).Panels {
		assert.True(t, p.ID > 0 && !ids[p.ID] && p.Title != "" && (!titles[p.Title] || p.Type == "row"),
			"panel %d %q: its id or its title is missing, or there is another one", p.ID, p.Title)
		ids[p.ID], titles[p.Title] = true, titles[p.Title] || p.Type != "row"
		g := p.GridPos
		assert.True(t, g.W >= 1 && g.H >= 1 && g.X >= 0 && g.Y >= 0 && g.X+g.W <= gridWidth,
			"panel %s: %+v is outside", p.Title, g)
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				other := taken[[2]int{x, y}]
				require.Empty(t, other, "panels %s and %s overlap", p.Title, other)
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		assert.True(t, p.Description != "" && len(p.Options) != 0,
			"panel %s has no description, or no options", p.Title)
		if p.Type == "text" {
			continue
		}
		assert.True(t, slices.Contains([]string{"stat", "timeseries", "heatmap", "bargauge"}, p.Type) && p.Datasource == source && slices.Contains(units, p.FieldConfig.Defaults.Unit) &&
			len(p.Targets) != 0, "panel %s: type %s, data source %v, unit %q, %d queries", p.Title, p.Type, p.Datasource, p.FieldConfig.Defaults.Unit, len(p.Targets))
		for i, q := range p.Targets {
			assert.True(t, q.RefID == string(rune('A'+i)) && q.Datasource == source && q.LegendFormat != "" &&
				strings.Contains(q.Expr, `{instance=~"$instance"`), "panel %s: query %+v", p.Title, q)
			assert.True(t, strings.Contains(q.Expr, "quotasvc_http_request_duration_seconds_bucket") == q.Exemplar,
				"panel %s: exemplars %t, and only latencies of requests have them", p.Title, q.Exemplar)
			assert.False(t, regexp.MustCompile(`\b(tenant|subject|ip)\b`).MatchString(q.Expr),
				"panel %s: %s: no such label exists", p.Title, q.Expr)
		}
	}
}

func TestDashboard_LinksAnnotationsVariables_Resolve(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	known := map[string]bool{"__rate_interval": true, "__all": true} // variables that Grafana defines
	for _, v := range d.Templating.List {
		known[v.Name] = true
		assert.True(t, v.Label != "" && slices.Contains([]string{"datasource", "query", "textbox"}, v.Type),
			"variable %+v", v)
	}
	text := file(t, "deploy", "grafana", "quotasvc.json")
	for _, use := range regexp.MustCompile(`\$\{?([a-z_]+)`).FindAllStringSubmatch(text, -1) {
		assert.True(t, known[use[1]], "there is no variable %s", use[1])
	}
	const pages = "https://github.com/quotasvc/quotasvc/blob/main/"
	targets := map[string]bool{}
	for _, l := range d.Links {
		page, ours := strings.CutPrefix(l.URL, pages)
		assert.True(t, l.Title != "" && l.Tooltip != "" && l.Type == "link" && (ours || l.URL == "${traces}"),
			"link %+v", l)
		targets[page] = true
		if path, anchor, ok := strings.Cut(page, "#"); ours && ok {
			_, exists := sectionsOf(t, "../"+path)[anchor]
			assert.True(t, exists, "link %s: no section %s in %s", l.Title, anchor, path)
		} else if _, err := os.Stat("../" + path); ours && err != nil {
			t.Errorf("link %s: %v", l.Title, err)
		}
	}
	assert.True(t, targets["docs/operations/alerts.md"] && targets["${traces}"],
		"links to %v: the runbook or the traces are missing", targets)
	var marks []string
	for _, a := range d.Annotations.List {
		marks = append(marks, a.Expr)
		assert.True(t, a.Name != "" && a.Enable && a.IconColor != "" && a.TitleFormat != "" &&
			a.Datasource.UID == "${datasource}", "annotation %+v", a)
	}
	for _, metric := range []string{"process_start_time_seconds", "quotasvc_build_info", "quotasvc_ledger_verify_differences"} {
		assert.Contains(t, strings.Join(marks, "\n"), metric, "no annotation of %s", metric)
	}
}
