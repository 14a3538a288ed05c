package catalogdoc

import (
	"cmp"
	"encoding/json/jsontext"
	"errors"
	"regexp"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/yamldoc"
)

// sections lists the sections of a catalogue file, with the JSON type of each section in a body.
var sections = []struct {
	name string
	kind jsontext.Kind
}{{"meters", '{'}, {"plans", '{'}, {"limits", '{'}, {"tenants", '{'}, {"blocks", '['}}

// inMetadata matches the paths of metadata in a document. A null in metadata belongs to the client's data and is
// kept.
var inMetadata = regexp.MustCompile(`^tenants\..+\.metadata[.\[]`)

// Request is the body of POST /v1/catalog.
type Request struct {
	DryRun, Prune bool

	text []byte // a JSON object with the sections, without the closing brace; empty: no sections
}

// Members returns the table of the members of a Request.
func Members() []body.Member[Request] {
	members := []body.Member[Request]{
		body.Optional("dry_run", func(d *body.Document, r *Request) { r.DryRun = d.Boolean() }),
		body.Optional("prune", func(d *body.Document, r *Request) { r.Prune = d.Boolean() }),
	}
	for _, section := range sections {
		members = append(members, body.Optional(section.name, func(d *body.Document, r *Request) {
			separator := byte(',')
			if len(r.text) == 0 {
				separator = '{'
			}
			r.text = append(r.text, separator, '"')
			r.text = append(append(append(r.text, section.name...), '"', ':'), d.Section(section.kind, inMetadata.MatchString)...)
		}))
	}
	return members
}

// File returns the catalogue in the request. The error is a *body.Error with all faults.
func (r *Request) File() (*catalog.File, error) {
	if len(r.text) == 0 {
		return nil, body.Refuse("body", "must have at least one of the sections meters, plans, limits, tenants, blocks")
	}
	// JSON is YAML, except for the escapes of characters beyond U+FFFF. The text has no such escapes: d.Section
	// replaced them.
	f, err := catalog.ParseFile(append(r.text, '}'))
	if problems, ok := errors.AsType[*yamldoc.Error](err); ok {
		var faults body.Faults
		for _, p := range problems.Problems {
			p.Path = cmp.Or(p.Path, "body")
			faults.Add(body.Clip(p.Path), p.Message)
		}
		return nil, faults.Err()
	}
	if err != nil {
		return nil, err
	}
	f.ForgetLines()
	return f, nil
}
