package cli

import (
	"strings"

	"github.com/alecthomas/kong"
)

// entry is a command, as the completion and the manual page need it.
type entry struct {
	path     string // "tenant list"; empty: the program
	help     string
	children []string
	args     []string // as in TENANT, [METER]
	flags    []*kong.Flag
}

// entries returns the commands of a program, parents before children.
func entries(root *kong.Node) []entry {
	var all []entry
	var walk func(n *kong.Node, path string)
	walk = func(n *kong.Node, path string) {
		e := entry{path: path, help: n.Help}
		for _, group := range n.AllFlags(true) {
			for _, f := range group {
				if !f.Hidden {
					e.flags = append(e.flags, f)
				}
			}
		}
		for _, arg := range n.Positional {
			name := strings.ToUpper(arg.Name)
			if !arg.Required {
				name = "[" + name + "]"
			}
			e.args = append(e.args, name)
		}
		for _, child := range n.Children {
			if child.Type == kong.CommandNode && !child.Hidden {
				e.children = append(e.children, child.Name)
			}
		}
		all = append(all, e)
		for _, child := range n.Children {
			if child.Type == kong.CommandNode && !child.Hidden {
				walk(child, strings.TrimSpace(path+" "+child.Name))
			}
		}
	}
	walk(root, "")
	return all
}

// takesValue reports whether a flag is followed by a value.
func takesValue(f *kong.Flag) bool { return !f.IsBool() && !f.IsCounter() }

// takesFile reports whether the value of a flag is the name of a file or a directory.
func takesFile(f *kong.Flag) bool {
	return f.PlaceHolder == "FILE" || f.PlaceHolder == "DIR" || f.Tag.Type == "path" || f.Tag.Type == "existingfile"
}

// words returns the valid values of a flag that is an enumeration.
func words(f *kong.Flag) []string {
	var list []string
	if f.Enum != "" {
		for _, w := range f.EnumSlice() {
			if w != "" {
				list = append(list, w)
			}
		}
	}
	return list
}
