package diff

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Action says how Apply changed an object, or would change it in a dry run.
type Action string

// Values of Action.
const (
	Created   Action = "created"
	Changed   Action = "changed"
	Unchanged Action = "unchanged"
	Deleted   Action = "deleted"
	Unlisted  Action = "unlisted" // in the catalogue but not in the file; not changed
)

// Report lists the changes that Apply made, or would make in a dry run, to meters, plans, limits, tenants and blocks.
// The objects of each kind are in the order of the file, but tenants are in the order of their ids. The objects that
// are not in the file follow.
type Report struct {
	Changes     []Change
	DryRun      bool
	MoreTenants bool // more unlisted tenants exist than Changes contains
	MoreBlocks  bool // more unlisted blocks exist than Changes contains

	// Warnings are sentences about changes that may be unintended: how many tenants get less of a meter or a feature.
	Warnings []string
}

// Change describes the change of one object.
type Change struct {
	Kind   string // meter, plan, limit, tenant or block
	ID     string
	Action Action
	Fields []FieldChange // of a created object all fields; of a changed object the changed fields
}

// FieldChange is the value of a field before and after, as JSON. An empty string means that the field is absent.
type FieldChange struct{ Field, Before, After string }

// Count returns the number of objects with an action.
func (d *Report) Count(action Action) int {
	n := 0
	for i := range d.Changes {
		if d.Changes[i].Action == action {
			n++
		}
	}
	return n
}

// String returns the diff as text for a terminal. For unchanged objects it contains only their number.
func (d *Report) String() string {
	var b strings.Builder
	for i := range d.Changes {
		d.Changes[i].print(&b)
	}
	if d.MoreTenants {
		b.WriteString("? more tenants are not in the file\n")
	}
	if d.MoreBlocks {
		b.WriteString("? more blocks are not in the file\n")
	}
	for _, w := range d.Warnings {
		fmt.Fprintf(&b, "! %s\n", w)
	}
	fmt.Fprintf(&b, "%d created, %d changed, %d unchanged, ", d.Count(Created), d.Count(Changed), d.Count(Unchanged))
	if n := d.Count(Deleted); n > 0 {
		fmt.Fprintf(&b, "%d deleted, ", n)
	}
	fmt.Fprintf(&b, "%d not in the file (left as they are)\n", d.Count(Unlisted))
	if d.DryRun {
		b.WriteString("dry run: nothing was written\n")
	}
	return b.String()
}

func (c *Change) print(b *strings.Builder) {
	switch c.Action {
	case Created:
		fmt.Fprintf(b, "+ %s %s\n", c.Kind, c.ID)
	case Changed:
		fmt.Fprintf(b, "~ %s %s\n", c.Kind, c.ID)
	case Deleted:
		fmt.Fprintf(b, "- %s %s\n", c.Kind, c.ID)
	case Unlisted:
		fmt.Fprintf(b, "? %s %s is not in the file\n", c.Kind, c.ID)
	case Unchanged:
	}
	for _, f := range c.Fields {
		switch {
		case f.Before == "":
			fmt.Fprintf(b, "    + %s: %s\n", f.Field, f.After)
		case f.After == "":
			fmt.Fprintf(b, "    - %s: %s\n", f.Field, f.Before)
		default:
			fmt.Fprintf(b, "    ~ %s: %s -> %s\n", f.Field, f.Before, f.After)
		}
	}
}

// Add compares an object before and after, and adds its Change to the report. For a new object, the argument `before`
// is nil.
func (d *Report) Add(kind, id string, before, after any) error {
	c := Change{Kind: kind, ID: id, Action: Unchanged}
	old, err := fieldsOf(kind, before)
	if err != nil {
		return err
	}
	now, err := fieldsOf(kind, after)
	if err != nil {
		return err
	}
	names := maps.Clone(old)
	maps.Copy(names, now)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if old[name] != now[name] {
			c.Fields = append(c.Fields, FieldChange{name, old[name], now[name]})
			c.Action = Changed
		}
	}
	if before == nil {
		c.Action = Created
	}
	d.Changes = append(d.Changes, c)
	return nil
}

// AddUnlisted adds a Change with action Unlisted for each id in stored that is not in listed.
func (d *Report) AddUnlisted(kind string, stored, listed []string) {
	isListed := make(map[string]bool, len(listed))
	for _, id := range listed {
		isListed[id] = true
	}
	for _, id := range stored {
		if !isListed[id] {
			d.Changes = append(d.Changes, Change{Kind: kind, ID: id, Action: Unlisted})
		}
	}
}

// Of returns the ids of the objects of a kind whose Change has the given action.
func (d *Report) Of(kind string, action Action) []string {
	var ids []string
	for i := range d.Changes {
		if c := &d.Changes[i]; c.Kind == kind && c.Action == action {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Delete records that an unlisted object is deleted.
func (d *Report) Delete(kind, id string) {
	for i := range d.Changes {
		if c := &d.Changes[i]; c.Kind == kind && c.ID == id && c.Action == Unlisted {
			c.Action = Deleted
		}
	}
}

// headings returns the fields that identify an object of a kind.
func headings(kind string) []string {
	switch kind {
	case "limit":
		return []string{"rule"}
	case "block":
		return []string{"kind", "value", "tenant"}
	default:
		return []string{kind}
	}
}

// fieldsOf returns the fields of an object, with their paths as keys. It omits the fields that identify the object.
func fieldsOf(kind string, object any) (map[string]string, error) {
	fields := map[string]string{}
	if object == nil {
		return fields, nil
	}
	text, err := json.Marshal(object, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("describe %T: %w", object, err)
	}
	if err := flattenJSON(fields, "", text); err != nil {
		return nil, fmt.Errorf("describe %T: %w", object, err)
	}
	for _, name := range headings(kind) {
		delete(fields, name)
	}
	return fields, nil
}

// flattenJSON adds the scalar values of a JSON text to fields. In a list of objects, the path of an element contains
// the element's meter or rule. So an insertion in the middle does not change the paths of the later elements.
func flattenJSON(fields map[string]string, path string, text jsontext.Value) error {
	switch text.Kind() {
	case '{':
		var members map[string]jsontext.Value
		if err := json.Unmarshal(text, &members); err != nil {
			return err
		}
		for name, value := range members {
			if err := flattenJSON(fields, strings.TrimPrefix(path+"."+name, "."), value); err != nil {
				return err
			}
		}
		return nil
	case '[':
		var elements []jsontext.Value
		if err := json.Unmarshal(text, &elements); err != nil {
			return err
		}
		if len(elements) == 0 || elements[0].Kind() != '{' {
			break // a list of scalars is one value
		}
		for i, element := range elements {
			if err := flattenJSON(fields, path+"["+nameOfElement(element, i)+"]", element); err != nil {
				return err
			}
		}
		return nil
	}
	fields[path] = string(bytes.TrimSpace(text))
	return nil
}

func nameOfElement(element jsontext.Value, i int) string {
	var named struct {
		Meter string `json:"meter"`
		Rule  string `json:"rule"`
	}
	if json.Unmarshal(element, &named) == nil && named.Meter+named.Rule != "" {
		return named.Rule + named.Meter
	}
	return fmt.Sprint(i)
}
