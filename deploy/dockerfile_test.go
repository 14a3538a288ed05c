package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dockerfile has the parts of the Dockerfile that the tests use.
type dockerfile struct {
	text       string
	stages     []string          // names of the stages, in order
	bases      map[string]string // by stage: the image on which it is built
	copies     []copyStep
	user       string // user of the last stage
	entrypoint string
}

type copyStep struct {
	stage   string
	from    string // the stage from which files are copied; empty: the build context
	sources []string
	target  string
}

var (
	fromPattern = regexp.MustCompile(`^FROM (?:--platform=\S+ )?(\S+) AS (\S+)$`)
	argPattern  = regexp.MustCompile(`(?m)^ARG (\w+)=(\S*)$`)
)

func readDockerfile(t *testing.T) dockerfile {
	t.Helper()
	d := dockerfile{text: file(t, "Dockerfile"), bases: map[string]string{}}
	arguments := map[string]string{}
	for _, m := range argPattern.FindAllStringSubmatch(d.text, -1) {
		arguments[m[1]] = m[2]
	}
	stage := ""
	for line := range strings.Lines(d.text) {
		line = strings.TrimSpace(line)
		keyword, rest, _ := strings.Cut(line, " ")
		switch keyword {
		case "FROM":
			m := fromPattern.FindStringSubmatch(line)
			require.NotNil(t, m, "a stage without a name: %s", line)
			stage = m[2]
			image := os.Expand(m[1], func(name string) string { return arguments[name] })
			d.stages, d.bases[stage], d.user = append(d.stages, stage), image, ""
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
		assert.True(t, slices.Contains(d.stages, s.Build.Target),
			"%s builds the stage %q; there are %q", name, s.Build.Target, d.stages)
		assert.True(t, s.Build.Target == d.stages[len(d.stages)-1],
			"%s builds %q, docker build without a target %q", name, s.Build.Target, d.stages[len(d.stages)-1])
		_, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile))
		assert.NoError(t, err, "%s", name)
		assert.True(t, s.Entrypoint == nil, "%s replaces the entry point", name)
	}
}

func TestDockerfile_Entrypoint_BinaryInImage(t *testing.T) {
	t.Parallel()
	d := readDockerfile(t)
	require.True(t, len(d.stages) >= 2, "stages %q: the image would hold the compiler", d.stages)
	last := d.stages[len(d.stages)-1]
	var holds []string
	for _, c := range d.copies {
		assert.False(t, c.from != "" && !slices.Contains(d.stages, c.from), "COPY --from=%s: no such stage", c.from)
		assert.False(t, c.from == "" && c.stage == last, "the image gets %q from the context", c.sources)
		for _, source := range c.sources {
			_, err := os.Stat(filepath.Join(root, source))
			assert.False(t, c.from == "" && err != nil, "COPY %s: %v", source, err)
		}
		if c.stage == last {
			holds = append(holds, `["`+c.target+`"]`)
		}
	}
	assert.True(t, slices.Contains(holds, d.entrypoint),
		"the entry point is %s, the image holds %q", d.entrypoint, holds)
}

func TestDockerfile_GoVersion_SameAsModule(t *testing.T) {
	t.Parallel()
	m := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(file(t, "go.mod"))
	require.NotNil(t, m, "go.mod names no version")
	base := readDockerfile(t).bases["build"]
	assert.True(t, strings.HasPrefix(base, "golang:"+m[1]+"-"), "the image is built by %s, go.mod has %s", base, m[1])
}

// The image can be built for each kind of processor. The same source gives the same bytes, and labels name the
// source. This test checks only the text of the Dockerfile: `make test-containers` builds for one kind of processor.
func TestDockerfile_Build_AnyProcessorReproducibleLabelled(t *testing.T) {
	t.Parallel()
	d := readDockerfile(t)
	for _, part := range []string{
		"FROM --platform=$BUILDPLATFORM ", "GOARCH=${TARGETARCH}", "GOOS=${TARGETOS}", "-trimpath", "-buildvcs=false", "-buildid=",
		"-X main.version=${VERSION}", "-X main.commit=${COMMIT}", `org.opencontainers.image.version="${VERSION}"`,
		`org.opencontainers.image.revision="${COMMIT}"`, "org.opencontainers.image.source=", "org.opencontainers.image.licenses=",
	} {
		assert.Contains(t, d.text, part, "the Dockerfile lacks %s", part)
	}
	for stage, image := range d.bases {
		assert.True(t, !strings.HasSuffix(image, ":latest") && strings.Contains(image, ":"),
			"stage %s is built on %q, which names no version", stage, image)
	}
	// Each stage that passes the version to the linker must declare the argument VERSION: Docker forgets arguments at
	// FROM.
	n := strings.Count(d.text, "\nARG VERSION=")
	assert.True(t, n == 2, "ARG VERSION stands in %d stages, want 2", n)
	makefile := file(t, "Makefile")
	for _, part := range []string{"linux/amd64,linux/arm64", "--sbom=true", "--provenance=mode=max", "SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH)"} {
		assert.Contains(t, makefile, part, "make image-release lacks %s", part)
	}
}
