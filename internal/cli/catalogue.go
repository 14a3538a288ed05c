package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/catalog/diff"
	"github.com/quotasvc/quotasvc/internal/httpapi/catalogdoc"
)

// ErrWouldChange says that a dry run with --exit-code has found changes. It is not a failure.
var ErrWouldChange = errors.New("something would change")

// Application is a catalogue that is to be applied, with options.
type Application struct {
	Name     string // name of the file, for messages
	Text     []byte // YAML
	DryRun   bool
	Prune    bool
	ExitCode bool // a dry run that finds changes ends with ErrWouldChange
}

// Apply applies a catalogue through the API and prints the changes.
func (c *Connection) Apply(ctx context.Context, io *IO, a Application) error {
	s, err := c.Dial(io)
	if err != nil {
		return err
	}
	document, err := catalogdoc.FromYAML(a.Text)
	if err != nil {
		return fmt.Errorf("%s is not valid:\n  %s", a.Name, strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	body := document.Body(a.DryRun, a.Prune)
	var diff client.CatalogDiff
	if err := s.Do(ctx, "POST", "/v1/catalog", nil, jsonText(body), &diff, client.WithKey(client.NewKey())); err != nil {
		return explainApply(a.Name, document, err)
	}
	return PrintDiff(io, &diff, c.JSON, a.ExitCode)
}

// explainApply returns an error with one line per fault. Each line names the line of the file.
func explainApply(name string, document *catalogdoc.Document, err error) error {
	e := client.AsError(err)
	if e == nil || e.Problem == nil || len(e.Problem.Errors) == 0 {
		return fmt.Errorf("apply %s: %w", name, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s cannot be applied; nothing was changed:", name)
	for _, f := range e.Problem.Errors {
		fmt.Fprintf(&b, "\n  line %d: %s %s", document.Line(f.Field), f.Field, f.Message)
	}
	return errors.New(b.String())
}

// DiffOf converts the report of `apply` on a database to the response type of the API.
func DiffOf(r *diff.Report) (*client.CatalogDiff, error) {
	text, err := json.Marshal(catalogdoc.Diff(r))
	if err != nil {
		return nil, fmt.Errorf("describe the changes: %w", err)
	}
	d := &client.CatalogDiff{}
	return d, json.Unmarshal(text, d)
}

// PrintDiff prints the changes that were made, or that a dry run would make. If exitCode is true and a dry run finds
// changes, it returns ErrWouldChange.
func PrintDiff(io *IO, d *client.CatalogDiff, asJSON, exitCode bool) error {
	if asJSON {
		if err := io.json(d); err != nil {
			return err
		}
	} else {
		printDiff(io, d)
	}
	if c := d.Counts; exitCode && d.DryRun && c.Created+c.Changed+c.Deleted > 0 {
		return ErrWouldChange
	}
	return nil
}

func printDiff(io *IO, d *client.CatalogDiff) {
	for i := range d.Changes {
		printChange(io, &d.Changes[i])
	}
	if d.MoreTenants {
		io.printf("? more tenants are not in the file\n")
	}
	if d.MoreBlocks {
		io.printf("? more blocks are not in the file\n")
	}
	for _, w := range d.Warnings {
		io.printf("%s\n", io.paint(yellow, "! "+w))
	}
	io.printf("%d created, %d changed, %d unchanged, ", d.Counts.Created, d.Counts.Changed, d.Counts.Unchanged)
	if d.Counts.Deleted > 0 {
		io.printf("%d deleted, ", d.Counts.Deleted)
	}
	io.printf("%d not in the file (left as they are)\n", d.Counts.Unlisted)
	if d.DryRun {
		io.printf("dry run: nothing was written\n")
	}
}

func printChange(io *IO, c *client.CatalogChange) {
	switch c.Action {
	case client.CatalogChangeActionCreated:
		io.printf("%s\n", io.paint(green, "+ "+c.Kind+" "+c.ID))
	case client.CatalogChangeActionChanged:
		io.printf("%s\n", io.paint(yellow, "~ "+c.Kind+" "+c.ID))
	case client.CatalogChangeActionDeleted:
		io.printf("%s\n", io.paint(red, "- "+c.Kind+" "+c.ID))
	case client.CatalogChangeActionUnlisted:
		io.printf("? %s %s is not in the file\n", c.Kind, c.ID)
	}
	for _, f := range c.Fields {
		switch {
		case f.Before == nil:
			io.printf("    %s\n", io.paint(green, fmt.Sprintf("+ %s: %s", f.Field, f.After)))
		case f.After == nil:
			io.printf("    %s\n", io.paint(red, fmt.Sprintf("- %s: %s", f.Field, f.Before)))
		default:
			io.printf("    %s\n", io.paint(yellow, fmt.Sprintf("~ %s: %s -> %s", f.Field, f.Before, f.After)))
		}
	}
}

type exportCmd struct {
	Connection
}

// modeline is a line that tells editors with the YAML language server which schema the file has.
const modeline = "# yaml-language-server: $schema=catalog.schema.json\n"

// Run prints the catalogue.
func (c *exportCmd) Run(ctx context.Context, io *IO, s *client.Client) error {
	catalogue, err := s.ExportCatalog(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return io.json(catalogue)
	}
	text, err := json.Marshal(catalogue)
	if err != nil {
		return err
	}
	out, err := yaml.JSONToYAML(text)
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	io.printf("%s%s", modeline, out)
	return nil
}
