package report

import (
	"os"
	"strings"
)

// ProcField returns the value of a line "name : value" in a file of /proc, or an empty string if there is none.
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
