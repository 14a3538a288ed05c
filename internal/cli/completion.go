package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

type completeCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the completion script. The script contains the commands of this version. If the shell runs `quotasvc
// completion` at each start, the script is always up to date.
func (c *completeCmd) Run(command *kong.Context, io *IO) error {
	all := entries(command.Model.Node)
	name := command.Model.Name
	switch c.Shell {
	case "zsh":
		io.printf("#compdef %s\nautoload -U +X bashcompinit && bashcompinit\n%s", name, bash(name, all))
	case "fish":
		io.printf("%s", fish(name, all))
	default:
		io.printf("%s", bash(name, all))
	}
	return nil
}

// bash returns a completion script for bash. zsh reads it with bashcompinit.
func bash(name string, all []entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s completion bash\n_%s() {\n  local word path='' flags='' commands='' current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\" i\n", name, name)
	b.WriteString("  for ((i = 1; i < COMP_CWORD; i++)); do\n    word=\"${COMP_WORDS[i]}\"\n    case \"$path/$word\" in\n")
	for _, e := range all[1:] {
		parent, last := cutLast(e.path)
		fmt.Fprintf(&b, "      '%s/%s') path='%s' ;;\n", parent, last, e.path)
	}
	b.WriteString("    esac\n  done\n  case \"$previous\" in\n")
	seen := map[string]bool{}
	for _, e := range all {
		for _, f := range e.flags {
			list := words(f)
			key := f.Name + strings.Join(list, " ")
			if seen[key] || len(list) == 0 && !takesFile(f) {
				continue
			}
			seen[key] = true
			if len(list) == 0 {
				fmt.Fprintf(&b, "    --%s) COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n", f.Name)
			}
		}
	}
	b.WriteString("    -f) COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n  esac\n  case \"$path\" in\n")
	for _, e := range all {
		var flags []string
		var enums strings.Builder
		for _, f := range e.flags {
			flags = append(flags, "--"+f.Name)
			if list := words(f); len(list) > 0 {
				fmt.Fprintf(&enums, "        --%s) COMPREPLY=($(compgen -W '%s' -- \"$current\")); return ;;\n", f.Name, strings.Join(list, " "))
			}
		}
		fmt.Fprintf(&b, "    '%s')\n      commands='%s' flags='%s'\n", e.path, strings.Join(append(e.children, argWords(e)...), " "), strings.Join(flags, " "))
		if enums.Len() > 0 {
			fmt.Fprintf(&b, "      case \"$previous\" in\n%s      esac\n", enums.String())
		}
		b.WriteString("      ;;\n")
	}
	b.WriteString("  esac\n  if [[ $current == -* ]]; then commands=$flags; fi\n  COMPREPLY=($(compgen -W \"$commands\" -- \"$current\"))\n}\n")
	fmt.Fprintf(&b, "complete -o default -F _%s %s\n", name, name)
	return b.String()
}

// argWords returns the valid words for the argument of a command. It returns nil if any word is valid.
func argWords(e entry) []string {
	switch e.path {
	case "completion":
		return []string{"bash", "zsh", "fish"}
	case "schema":
		return []string{"catalog"}
	default:
		return nil
	}
}

// fish returns a completion script for fish.
func fish(name string, all []entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s completion fish\ncomplete -c %s -f\n", name, name)
	for _, e := range all {
		condition := "__fish_use_subcommand"
		if e.path != "" {
			condition = "__fish_seen_subcommand_from " + strings.ReplaceAll(e.path, " ", "; and __fish_seen_subcommand_from ")
		}
		for _, child := range all {
			if parent, last := cutLast(child.path); child.path != "" && parent == e.path {
				fmt.Fprintf(&b, "complete -c %s -n '%s' -a %s -d %s\n", name, condition, last, quote(child.help))
			}
		}
		for _, word := range argWords(e) {
			fmt.Fprintf(&b, "complete -c %s -n '%s' -a %s\n", name, condition, word)
		}
		for _, f := range e.flags {
			fmt.Fprintf(&b, "complete -c %s -n '%s' -l %s -d %s", name, condition, f.Name, quote(f.Help))
			switch list := words(f); {
			case len(list) > 0:
				fmt.Fprintf(&b, " -x -a '%s'", strings.Join(list, " "))
			case takesFile(f):
				b.WriteString(" -r -F")
			case takesValue(f):
				b.WriteString(" -x")
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// cutLast divides the path of a command before its last word.
func cutLast(path string) (parent, last string) {
	if at := strings.LastIndexByte(path, ' '); at >= 0 {
		return path[:at], path[at+1:]
	}
	return "", path
}

// quote returns a text in single quotes for fish.
func quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
