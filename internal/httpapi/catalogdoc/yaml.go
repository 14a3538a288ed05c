package catalogdoc

import (
	"encoding/json"
	"strings"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/yamldoc"
)

// Document is a catalogue file that was converted into the JSON that the API reads.
type Document struct {
	members map[string]json.RawMessage
	file    *catalog.File
}

// FromYAML reads a catalogue file as strictly as `quotasvc apply`. If the file is invalid, the error is a
// *yamldoc.Error with all problems and their lines.
func FromYAML(text []byte) (*Document, error) {
	file, err := catalog.ParseFile(text)
	if err != nil {
		return nil, err
	}
	d := &Document{members: map[string]json.RawMessage{}, file: file}
	r := yamldoc.NewReader()
	for _, pair := range r.Pairs("", r.Parse(text)) {
		name, _ := r.Key("", pair)
		if d.members[name], err = section(file, name); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// section returns one section of a catalogue file as the JSON that the API reads.
func section(f *catalog.File, name string) (json.RawMessage, error) {
	var v any
	var err error
	switch name {
	case "meters":
		v, err = byID(f.Meters, "meter", func(m *catalog.Meter) string { return m.ID })
	case "plans":
		v, err = byID(f.Plans, "plan", func(p *catalog.Plan) string { return p.ID })
	case "limits":
		v, err = byID(f.Limits, "rule", func(l *catalog.Limit) string { return l.Rule })
	case "tenants":
		v, err = byID(f.Tenants, "tenant", func(t *catalog.Tenant) string { return t.ID })
	case "blocks":
		v, err = blocksOf(f)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// Body returns the catalogue as the body of POST /v1/catalog.
func (d *Document) Body(dryRun, prune bool) []byte {
	var b strings.Builder
	b.WriteByte('{')
	for _, s := range sections {
		if text, ok := d.members[s.name]; ok {
			b.WriteString(`"` + s.name + `":` + string(text) + ",")
		}
	}
	flag := map[bool]string{false: "false", true: "true"}
	b.WriteString(`"dry_run":` + flag[dryRun] + `,"prune":` + flag[prune] + "}")
	return []byte(b.String())
}

// Line returns the line of the catalogue file to which the path in a fault refers.
func (d *Document) Line(path string) int { return d.file.Line(path) }
