package cli

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// entry is a command of the program, with the data that completion scripts and the manual page need.
type entry struct {
	path     string // such as "tenant list"; empty: the program itself
	help     string
	children []string
	args     []string // such as TENANT or [METER]
	flags    []*kong.Flag
}

// entries returns the commands of a program. A command comes before its subcommands.
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

// takesValue reports whether a flag needs a value after it.
func takesValue(f *kong.Flag) bool { return !f.IsBool() && !f.IsCounter() }

// takesFile reports whether the value of a flag is the path of a file or a directory.
func takesFile(f *kong.Flag) bool {
	return f.PlaceHolder == "FILE" || f.PlaceHolder == "DIR" || f.Tag.Type == "path" || f.Tag.Type == "existingfile"
}

// words returns the valid values of a flag. It returns nil if the flag is not an enumeration.
func words(f *kong.Flag) []string {
	if f.Enum == "" {
		return nil
	}
	return slices.DeleteFunc(f.EnumSlice(), func(word string) bool { return word == "" })
}
