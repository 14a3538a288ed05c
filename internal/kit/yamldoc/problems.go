package yamldoc

import (
	"fmt"
	"slices"
	"strings"
)

// maxProblems bounds the problems that are listed. People do not read more.
const maxProblems = 50

// Problem is one problem of a file.
type Problem struct {
	Line    int
	Path    string // such as plans.starter.allowances[0].amount; empty: the file itself
	Message string
}

// Error is the error with all problems of a file.
type Error struct {
	Problems []Problem // in order of their lines
}

// Error returns one line for each problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		if p.Path == "" {
			lines[i] = fmt.Sprintf("line %d: %s", p.Line, p.Message)
		} else {
			lines[i] = fmt.Sprintf("line %d: %s %s", p.Line, p.Path, p.Message)
		}
	}
	return strings.Join(lines, "\n")
}

// Problems collects the problems of a file. The zero value has no problems.
type Problems struct{ list []Problem }

// Add adds a problem, unless there are maxProblems problems already.
func (p *Problems) Add(line int, path, message string) {
	if len(p.list) < maxProblems {
		p.list = append(p.list, Problem{line, path, message})
	}
}

// Err returns nil if there are no problems. Otherwise it returns an *Error with all problems.
func (p *Problems) Err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b Problem) int { return a.Line - b.Line })
	return &Error{Problems: p.list}
}
