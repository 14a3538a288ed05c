package report

import (
	"os"
	"strings"
)

// ProcField returns the value of the line "name : value" in a file of /proc. If there is no such line, it returns an
// empty string.
func ProcField(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
