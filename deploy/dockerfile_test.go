package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dockerfile is the part of the Dockerfile that the tests use.
type dockerfile struct {
	stages     []string          // names, in order
	bases      map[string]string // stage -> image
	copies     []copyStep
	user       string // of the last stage
	entrypoint string
}

type copyStep struct {
	stage   string
	from    string // a stage, or empty for the context
	sources []string
	target  string
}

var fromPattern = regexp.MustCompile(`^FROM (\S+) AS (\S+)$`)

func readDockerfile(t *testing.T) dockerfile {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	d := dockerfile{bases: map[string]string{}}
	stage := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		keyword, rest, _ := strings.Cut(line, " ")
		switch keyword {
		case "FROM":
			m := fromPattern.FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("a stage without a name: %s", line)
			}
			stage = m[2]
			d.stages, d.bases[stage], d.user = append(d.stages, stage), m[1], ""
		case "USER":
			d.user = rest
		case "ENTRYPOINT":
			d.entrypoint = rest
		case "COPY":
			words := strings.Fields(rest)
			step := copyStep{stage: stage, target: words[len(words)-1]}
			if from, ok := strings.CutPrefix(words[0], "--from="); ok {
				step.from, words = from, words[1:]
			}
			step.sources = words[:len(words)-1]
			d.copies = append(d.copies, step)
		}
	}
	return d
}

func TestCompose_Build_StageAndContextExist(t *testing.T) {
	t.Parallel()
	d := readDockerfile(t)
	for name, s := range ours(t, project(t)) {
		if !slices.Contains(d.stages, s.Build.Target) {
			t.Errorf("%s builds the stage %q; there are %q", name, s.Build.Target, d.stages)
		}
		if s.Build.Target != d.stages[len(d.stages)-1] {
			t.Errorf("%s builds %q, docker build without a target %q", name, s.Build.Target, d.stages[len(d.stages)-1])
		}
		if _, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.Entrypoint != nil {
			t.Errorf("%s replaces the entry point", name)
		}
	}
}

func TestDockerfile_Entrypoint_BinaryInImage(t *testing.T) {
	t.Parallel()
	d := readDockerfile(t)
	if len(d.stages) < 2 {
		t.Fatalf("stages %q: the image would hold the compiler", d.stages)
	}
	last := d.stages[len(d.stages)-1]
	var holds []string
	for _, c := range d.copies {
		if c.from != "" && !slices.Contains(d.stages, c.from) {
			t.Errorf("COPY --from=%s: no such stage", c.from)
		}
		if c.from == "" && c.stage == last {
			t.Errorf("the image gets %q from the context", c.sources)
		}
		for _, source := range c.sources {
			if _, err := os.Stat(filepath.Join(root, source)); c.from == "" && err != nil {
				t.Errorf("COPY %s: %v", source, err)
			}
		}
		if c.stage == last {
			holds = append(holds, `["`+c.target+`"]`)
		}
	}
	if !slices.Contains(holds, d.entrypoint) {
		t.Errorf("the entry point is %s, the image holds %q", d.entrypoint, holds)
	}
}

func TestDockerfile_GoVersion_SameAsModule(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(text))
	if m == nil {
		t.Fatal("go.mod names no version")
	}
	if base := readDockerfile(t).bases["build"]; !strings.HasPrefix(base, "golang:"+m[1]+"-") {
		t.Errorf("the image is built by %s, go.mod has %s", base, m[1])
	}
}
