package console

import (
	"crypto/rand"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// correction describes a kind of change that an administrator can make with a form.
type correction struct {
	name   string // the name in paths
	title  string
	help   string
	verb   string // text of the last step's button
	danger bool
	fields []field
	// fill sets values in a new form, such as the tenant's version. nil: the form needs no such values.
	fill func(*call, *correctionView) error
	// send makes the changes, and stores them in the view. If dry is true, it sends a dry run, and stores the changes
	// that the form would make.
	send func(c *call, v *correctionView, dry bool) error
}

// field is an input field of a form.
type field struct {
	name, label, help string
	kind              string // kind of the input: text, number, time, area, choice or hidden
	choices           []string
	required          bool
}

// difference is a fact before and after a correction, as texts.
type difference struct{ what, before, after string }

// correctionView is the data of the page that shows one step of a correction.
type correctionView struct {
	*tenantView

	what    *correction
	given   form
	once    string // the idempotency key of the form
	problem *failure
	meta    client.Meta // of the API's answer to the form

	tried bool // whether changes has the changes of a dry run
	done  bool // whether changes were made
	// replayed is true if the form was sent before and therefore changed nothing this time.
	replayed bool
	changes  []difference
	plans    []string // the plans that a form suggests
	audit    *auditPreview
	notes    []string
}

// auditPreview is the line of the audit log for a correction. Before the correction, it is the expected line.
type auditPreview struct {
	action, kind, id, reason string
	line                     *client.AuditLine // the stored line; nil before it is written
}

// get returns the value of a field without leading and trailing blanks.
func (v *correctionView) get(name string) string { return strings.TrimSpace(v.given.get(name)) }

// corrections returns all corrections in the order in which menus show them.
func corrections() []*correction {
	return []*correction{topUp(), adjust(), voidGrant(), extendGrant(), refund(), changePlan(), suspend(), resume(), blockTenant()}
}

// correctionNamed returns a correction by its name. It returns nil if no correction has this name.
func correctionNamed(name string) *correction {
	all := corrections()
	if i := slices.IndexFunc(all, func(c *correction) bool { return c.name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// openCorrection returns the view for the correction and the tenant in the path, with the values in given.
func (c *call) openCorrection(given form) (*correctionView, error) {
	what := correctionNamed(c.r.PathValue("what"))
	if what == nil {
		return nil, &failure{status: http.StatusNotFound, title: "There is no such correction", detail: "Open the tenant's page, and choose one there."}
	}
	t, err := c.readTenant()
	if err != nil {
		return nil, err
	}
	v := &correctionView{tenantView: t, what: what, given: given}
	if v.once = given.get("once"); v.once == "" {
		v.once = "console-" + rand.Text()
	}
	if t.meter = given.get("meter"); what.name == "plan" {
		v.plans = c.planNames(suggestionsMax)
	}
	return v, nil
}

// suggestionsMax is the maximum number of values that a field suggests.
const suggestionsMax = 200

// suggested returns the values that the page suggests for a field.
func (v *correctionView) suggested(f field) []string {
	switch f.name {
	case "plan":
		return v.plans
	case "meter":
		return v.counters()
	default:
		return nil
	}
}

// help returns the help text of a field on the page.
func (v *correctionView) help(f field) string {
	if f.name == "plan" {
		return "The plan is " + v.Plan + " now."
	}
	return f.help
}

// counters returns the meters that are not gauges, at most suggestionsMax of them.
func (v *tenantView) counters() []string {
	all := slices.DeleteFunc(slices.Sorted(maps.Keys(v.units)), func(m string) bool { return slices.Contains(v.gaugeMeters, m) })
	return all[:min(len(all), suggestionsMax)]
}

// showCorrection shows the form of a correction. The fields have the values of a kept form, or else the values in the
// URL's query.
func showCorrection(c *call) error {
	given := form(c.r.URL.Query())
	kept := c.kept != nil
	if kept {
		given = c.kept
	}
	v, err := c.openCorrection(given)
	if err != nil {
		return err
	}
	if !kept {
		v.once = "console-" + rand.Text() // the link may have the key of another form, so this form gets a new key
		if v.what.fill != nil {
			if err := v.what.fill(c, v); err != nil {
				return err
			}
		}
	} else {
		v.notes = append(v.notes, "Your session had ended. Nothing was changed, and your input is still here.")
	}
	return c.render(http.StatusOK, correctionPage(c, v))
}

// sendCorrection shows the changes that a correction would make, or makes them.
func sendCorrection(c *call) error {
	v, err := c.openCorrection(form(c.r.PostForm))
	if err != nil {
		return err
	}
	step := c.r.PostForm.Get("step")
	if step == "edit" {
		return c.render(http.StatusOK, correctionPage(c, v))
	}
	status := http.StatusOK
	if err := v.what.send(c, v, step != "apply"); err != nil {
		f := explain(err)
		v.problem, v.changes, v.audit, status = f, nil, nil, f.status
	} else {
		v.tried, v.done = step != "apply", step == "apply"
	}
	if v.done {
		v.written(c)
	}
	return c.render(status, correctionPage(c, v))
}

// integer returns the whole number in a field. The number may have thousands separators.
func (v *correctionView) integer(name string) (int64, error) {
	text := strings.NewReplacer(",", "", " ", "", "\u2212", "-").Replace(v.get(name))
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, &failure{
			status: http.StatusBadRequest, title: "The amount is not a whole number", detail: "Nothing was changed. Enter it in the meter's smallest unit, such as 250.",
			fields: []client.FieldError{{Field: name, Message: "is " + strconv.Quote(clip(text))}},
		}
	}
	return n, nil
}

// instant parses the text in a field as a time in the tenant's zone.
func (v *correctionView) instant(name string) (time.Time, error) {
	return dayIn(name, v.get(name), v.zone)
}

// written reads the line of the audit log that the correction has written. If it does not find the line, the page
// shows the expected line.
func (v *correctionView) written(c *call) {
	v.replayed = v.replayed || v.meta.Replayed
	if v.audit == nil || v.meta.Replayed {
		return
	}
	list, err := c.ListAudit(c.ctx, client.ListAuditQuery{Tenant: v.Tenant.Tenant, Action: v.audit.action, Limit: 10})
	if err != nil {
		return
	}
	for i := range list.Items {
		if list.Items[i].RequestID == v.meta.RequestID {
			v.audit.line = &list.Items[i]
		}
	}
}

// amountChange returns a difference between two amounts of a meter's units.
func (v *correctionView) amountChange(what, meter string, before, after int64) difference {
	unit := " " + v.unit(meter)
	return difference{what, num(before) + unit, num(after) + unit}
}
