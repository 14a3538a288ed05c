package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

type manCmd struct{}

// Run prints the manual page. To read it: `quotasvc man | man -l -`.
func (manCmd) Run(command *kong.Context, io *IO) error {
	io.printf("%s", page(command.Model))
	return nil
}

// page returns the manual page of a program, in roff.
func page(model *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n.I command\n[\\fIflags\\fR]\n", strings.ToUpper(model.Name), model.Name, roff(model.Help), model.Name)
	all := entries(model.Node)
	b.WriteString(".SH FLAGS OF ALL COMMANDS\n")
	common := map[string]bool{}
	for _, f := range all[0].flags {
		common[f.Name] = true
		writeFlag(&b, f)
	}
	b.WriteString(".SH COMMANDS\n")
	for _, e := range all[1:] {
		if len(e.children) > 0 {
			continue
		}
		fmt.Fprintf(&b, ".SS %s %s\n%s\n", model.Name, roff(strings.TrimSpace(e.path+" "+strings.Join(e.args, " "))), roff(e.help))
		for _, f := range e.flags {
			if !common[f.Name] {
				writeFlag(&b, f)
			}
		}
	}
	b.WriteString(".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\nfailed or refused\n.TP\n2\nwrong command line or configuration\n.TP\n3\napply \\-\\-dry\\-run \\-\\-exit\\-code would change something\n.TP\n130\ninterrupted\n")
	b.WriteString(".SH FILES\n.TP\n~/.config/quotasvc/config.yaml\ncontexts: addresses and keys of services\n")
	return b.String()
}

func writeFlag(b *strings.Builder, f *kong.Flag) {
	name := "--" + f.Name
	if f.Short != 0 {
		name = "-" + string(f.Short) + ", " + name
	}
	if takesValue(f) {
		name += "=" + f.FormatPlaceHolder()
	}
	fmt.Fprintf(b, ".TP\n\\fB%s\\fR\n%s", roff(name), roff(f.Help))
	if len(f.Envs) > 0 {
		fmt.Fprintf(b, " Environment: %s.", roff(strings.Join(f.Envs, ", ")))
	}
	b.WriteByte('\n')
}

// roff returns text with escapes, so that roff prints the text unchanged.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
