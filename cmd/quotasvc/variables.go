package main

import (
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// variablePrefix begins the names of the environment variables of all commands.
const variablePrefix = "QUOTASVC_"

// ofKubernetes matches the variables that Kubernetes sets in each pod for a Service whose name is or begins with
// quotasvc.
var ofKubernetes = regexp.MustCompile(
	`^QUOTASVC_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// warnUnknown logs the names of environment variables that look like settings, and that no command reads. Such a
// variable is usually misspelt. Its value may be secret.
func warnUnknown(program *kong.Application, log *slog.Logger) {
	known := make(map[string]bool)
	_ = kong.Visit(program, func(node kong.Visitable, next kong.Next) error { // it cannot fail
		if flag, ok := node.(*kong.Flag); ok {
			for _, name := range flag.Envs {
				known[name] = true
			}
		}
		return next(nil)
	})
	var unknown []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, variablePrefix) && !known[name] && !ofKubernetes.MatchString(name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		log.Warn("no command has these settings, so they are ignored: check their names", "variables", unknown)
	}
}
