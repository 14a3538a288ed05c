package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/catalogdoc"
	"github.com/quotasvc/quotasvc/internal/kit/yamldoc"
)

const (
	// editMax is the maximum size of a catalogue that can be edited in a form, in bytes of YAML. `quotasvc apply`
	// accepts files with larger catalogues.
	editMax = 256 << 10

	// plansAsked is the maximum number of changed plans whose tenants are read. tenantsNamed is the maximum number of
	// tenants that the page names for each of these plans.
	plansAsked, tenantsNamed = 20, 5
)

// editView is the data of one step of a form that changes the catalogue.
type editView struct {
	text  string // YAML
	seen  string // the ETag of the catalogue that was edited
	prune bool
	once  string // the idempotency key of the form

	kept     bool // the form was kept during a sign-in
	problem  *failure
	diff     *client.CatalogDiff // the report of a dry run, or of the change
	affected []affected
	done     bool
	replayed bool
}

// affected has the tenants of one changed plan.
type affected struct {
	plan    string
	tenants []client.Tenant
	more    bool
	err     *failure
}

// exportText returns the meters, plans and limits of the catalogue as YAML, and the catalogue's ETag.
func (c *call) exportText() (text, tag string, err error) {
	var m client.Meta
	catalogue, err := c.ExportCatalog(c.ctx, client.WithMeta(&m))
	if err != nil {
		return "", "", err
	}
	doc, err := json.Marshal(struct {
		Meters map[string]json.RawMessage `json:"meters"`
		Plans  map[string]json.RawMessage `json:"plans"`
		Limits map[string]json.RawMessage `json:"limits"`
	}{catalogue.Meters, catalogue.Plans, catalogue.Limits})
	if err != nil {
		return "", "", err
	}
	out, err := yaml.JSONToYAML(doc)
	return string(out), m.Header.Get("ETag"), err
}

// sendCatalogue sends the catalogue as a YAML file for `quotasvc apply`.
func sendCatalogue(c *call) error {
	text, _, err := c.exportText()
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/yaml; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="catalog.yaml"`)
	_, _ = c.w.Write([]byte(text)) // on an error the browser has closed the connection
	return nil
}

// showCatalogueForm shows a form with the catalogue as YAML. If a form was kept during a sign-in, it shows that form.
func showCatalogueForm(c *call) error {
	v := &editView{once: "console-" + rand.Text()}
	if c.kept != nil {
		v = editOf(c.kept)
		v.kept = true
		return c.render(http.StatusOK, catalogueEditPage(c, v))
	}
	var err error
	if v.text, v.seen, err = c.exportText(); err != nil {
		return err
	}
	if len(v.text) > editMax {
		return &failure{
			status: http.StatusConflict, title: "The catalogue is too large for a form",
			detail: fmt.Sprintf("It has %s bytes; a form takes %s. Export it, edit the file, and run quotasvc apply -f catalog.yaml --dry-run.", num(int64(len(v.text))), num(editMax)),
		}
	}
	return c.render(http.StatusOK, catalogueEditPage(c, v))
}

func editOf(f form) *editView {
	return &editView{text: strings.ReplaceAll(f.get("text"), "\r\n", "\n"), seen: f.get("seen"), prune: f.get("prune") != "", once: f.get("once")}
}

// sendCatalogueForm shows the changes that a form would make, or makes them.
func sendCatalogueForm(c *call) error {
	v := editOf(form(c.r.PostForm))
	step := c.r.PostForm.Get("step")
	if step == "edit" {
		return c.render(http.StatusOK, catalogueEditPage(c, v))
	}
	status := http.StatusOK
	if err := v.send(c, step != "apply"); err != nil {
		v.problem = explain(err)
		v.diff, status = nil, v.problem.status
	} else {
		v.done = step == "apply"
		v.affected = affectedBy(c.ctx, c.API, v.diff)
	}
	return c.render(status, catalogueEditPage(c, v))
}

// send sends the edited catalogue to the API. If dry is true, the API changes nothing.
func (v *editView) send(c *call, dry bool) error {
	if v.once == "" || v.seen == "" {
		return &failure{status: http.StatusBadRequest, title: "The form is incomplete", detail: "Nothing was changed. Open the page again."}
	}
	if len(v.text) > editMax {
		return &failure{status: http.StatusRequestEntityTooLarge, title: "The text is too long", detail: "Nothing was changed. A form takes " + num(editMax) + " bytes; quotasvc apply takes more."}
	}
	doc, err := catalogdoc.FromYAML([]byte(v.text))
	if problems, ok := errors.AsType[*yamldoc.Error](err); ok {
		f := &failure{status: http.StatusBadRequest, title: "The text cannot be read as a catalogue", detail: "Nothing was changed."}
		for _, p := range problems.Problems {
			f.fields = append(f.fields, client.FieldError{Field: strings.TrimSpace(fmt.Sprintf("line %d %s", p.Line, p.Path)), Message: p.Message})
		}
		return f
	}
	if err != nil {
		return err
	}
	ask := func(dry bool, more ...client.Option) (*client.CatalogDiff, error) {
		diff := &client.CatalogDiff{}
		err := c.Do(c.ctx, http.MethodPost, "/v1/catalog", nil, json.RawMessage(doc.Body(dry, v.prune)), diff, append(more, client.WithKey(v.once))...)
		return diff, err
	}
	v.diff, err = ask(dry, client.WithIfMatch(v.seen))
	e := client.AsError(err)
	if e == nil || e.Problem == nil {
		return err
	}
	if e.Code == client.ProblemCodePreconditionFailed && len(e.Problem.Errors) > 0 && e.Problem.Errors[0].Field == "If-Match" {
		if again, failed := ask(true); failed == nil && !dry && again.Counts.Created+again.Counts.Changed+again.Counts.Deleted == 0 {
			v.diff, v.replayed = again, true // the form was sent twice
			return nil
		}
		return &failure{
			status: http.StatusConflict, title: "Someone else changed the catalogue", id: e.RequestID,
			detail: "This form changed nothing. Copy what you want to keep, and open the catalogue again. The audit log says who changed what.",
		}
	}
	f := ofAPI(e)
	for i, fault := range f.fields {
		if line := doc.Line(fault.Field); line > 0 {
			f.fields[i].Field = fmt.Sprintf("line %d %s", line, fault.Field)
		}
	}
	return f
}

// affectedBy reads the first tenants of each changed plan. It reads at most plansAsked plans.
func affectedBy(ctx context.Context, api *client.API, diff *client.CatalogDiff) []affected {
	var list []affected
	for i := range diff.Changes {
		change := &diff.Changes[i]
		if change.Kind != "plan" || change.Action != client.CatalogChangeActionChanged || len(list) == plansAsked {
			continue
		}
		a := affected{plan: change.ID}
		page, err := api.ListTenants(ctx, client.ListTenantsQuery{Plan: change.ID, Limit: tenantsNamed})
		if err != nil {
			a.err = explain(err)
		} else {
			a.tenants, a.more = page.Items, page.NextCursor != nil
		}
		list = append(list, a)
	}
	return list
}

// touched returns the changes that the page shows one by one. It omits objects that the document does not list and
// that are kept.
func (v *editView) touched() []client.CatalogChange {
	return slices.DeleteFunc(slices.Clone(v.diff.Changes), func(change client.CatalogChange) bool {
		return change.Action == client.CatalogChangeActionUnlisted
	})
}

// changes reports whether the form creates, changes or deletes an object.
func (v *editView) changes() bool {
	return v.diff.Counts.Created+v.diff.Counts.Changed+v.diff.Counts.Deleted > 0
}

// summary returns a sentence with the number of objects for each kind of change.
func (v *editView) summary() string {
	n := v.diff.Counts
	return fmt.Sprintf("%s created, %s changed, %s deleted, %s unchanged.", num(n.Created), num(n.Changed), num(n.Deleted), num(n.Unchanged))
}

// fieldText returns the value of a field as text. It returns a dash if the field is absent.
func fieldText(raw json.RawMessage) string { return cmp.Or(strings.Trim(string(raw), `"`), "\u2013") }
