// Package deploy_test checks that the stages, commands, flags, variables and services that a deployment names exist.
// No compiler checks this.
package deploy_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	root = ".."

	// buildLimit bounds one build of the binary, so that a build that hangs ends. With a cold cache a build takes
	// minutes.
	buildLimit = 20 * time.Minute
)

// binary is the path of the service's binary, which run builds.
var binary string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "quotasvc-deploy-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "quotasvc")
	// This build does not use the flags of the Dockerfile, so that it can use packages that other tests have
	// compiled.
	out, err := golang(context.Background(), "build", "-buildvcs=false", "-o", binary, "./cmd/quotasvc")
	if err != nil {
		fmt.Fprintln(os.Stderr, "build the service:", err, out)
		return 1
	}
	return m.Run()
}

// golang runs the go command in the root directory of the repository.
func golang(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Docker sends only files that .dockerignore does not exclude. The build in the image needs every file that the
// compiler reads or embeds.
func TestDockerignore_FilesOfBuild_InContext(t *testing.T) {
	t.Parallel()
	list, err := os.Open(filepath.Join(root, ".dockerignore"))
	require.NoError(t, err)
	defer list.Close()
	patterns, err := ignorefile.ReadAll(list)
	require.NoError(t, err)
	matcher, err := patternmatcher.New(patterns)
	require.NoError(t, err)
	const files = `{{if and .Module .Module.Main}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}`
	out, err := golang(t.Context(), "list", "-deps", "-f", files, "./cmd/quotasvc")
	require.NoError(t, err, "%v, %v", err, out)
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	needed := append(strings.Fields(out), filepath.Join(top, "go.mod"), filepath.Join(top, "go.sum"))
	assert.True(t, len(needed) >= 300, "the build reads only %d files?", len(needed))
	for _, name := range needed {
		rel, err := filepath.Rel(top, name)
		require.NoError(t, err)
		ignored, err := matcher.MatchesOrParentMatches(rel)
		assert.True(t, err == nil && !ignored, ".dockerignore keeps %s out of the image's build: %v", rel, err)
	}
	ignored, err := matcher.MatchesOrParentMatches(".git/config")
	assert.True(t, err == nil && ignored, ".dockerignore lets .git through: %v", err)
}

// file returns the content of a file of the repository.
func file(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	require.NoError(t, err)
	return string(text)
}

// secrets are the environment variables with secrets that docker-compose.yml requires.
var secrets = []string{"POSTGRES_PASSWORD=pgsecret", "REDIS_PASSWORD=redissecret", "QUOTASVC_ADMIN_KEY=" + strings.Repeat("k", 32)}

// project returns docker-compose.yml with all its profiles. Its variables have the values of secrets.
func project(t *testing.T) *types.Project {
	t.Helper()
	p, err := load(t, secrets)
	require.NoError(t, err)
	return p
}

func load(t *testing.T, env []string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yml")},
		cli.WithInterpolation(true), cli.WithEnv(env), cli.WithoutEnvironmentResolution, cli.WithProfiles([]string{"*"}))
	require.NoError(t, err)
	return options.LoadProject(t.Context())
}

// If a secret is missing, the deployment does not start. There are no default values, because everybody would know
// them.
func TestCompose_Secrets_NoDefaults(t *testing.T) {
	t.Parallel()
	for i, secret := range secrets {
		name, _, _ := strings.Cut(secret, "=")
		for _, env := range [][]string{slices.Delete(slices.Clone(secrets), i, i+1), append(slices.Delete(slices.Clone(secrets), i, i+1), name+"=")} {
			_, err := load(t, env)
			assert.True(t, err != nil && strings.Contains(err.Error(), name), "without %s: %v", name, err)
		}
	}
	m := regexp.MustCompile(`\$\{\w*(?:PASSWORD|KEY|SECRET|TOKEN)\w*:?-[^}]+\}|dev-only`).FindString(file(t, "docker-compose.yml"))
	assert.True(t, m == "", "a secret has a default: %s", m)
}

// The commands in the README work with the services that compose starts. They use three variables, the key from .env,
// and the tenant demo.
func TestCompose_ReadmePath_HasSecretsAndDemoData(t *testing.T) {
	t.Parallel()
	readme := file(t, "README.md")
	for _, part := range []string{"for name in QUOTASVC_ADMIN_KEY POSTGRES_PASSWORD REDIS_PASSWORD", ">.env", "docker compose up --build", `KEY=$(sed -n 's/^QUOTASVC_ADMIN_KEY=//p' .env)`} {
		assert.Contains(t, readme, part, "the README lacks %s", part)
	}
	demo := project(t).Services["demo"]
	assert.True(t, len(demo.Profiles) <= 0 && strings.Join(demo.Command, " ") == "apply -f /demo.yaml" && len(demo.Volumes) == 1 && demo.Volumes[0].Target == "/demo.yaml" &&
		demo.Volumes[0].ReadOnly, "the demo data: %q %+v", demo.Command, demo.Volumes)
	text, err := os.ReadFile(demo.Volumes[0].Source)
	assert.True(t, err == nil && strings.Contains(string(text), "tenant: demo"),
		"the demo data have no tenant demo: %v", err)
}

func TestCompose_Monitoring_FilesExistNobodyLogsIn(t *testing.T) {
	t.Parallel()
	p := project(t)
	for _, name := range []string{"prometheus", "grafana"} {
		s := p.Services[name]
		assert.True(t, slices.Equal(s.Profiles, []string{"monitoring"}) && strings.Contains(s.Image, ":") &&
			!strings.HasSuffix(s.Image, ":latest"), "%s: profiles %q, image %q", name, s.Profiles, s.Image)
		for _, v := range s.Volumes {
			if _, err := os.Stat(v.Source); v.Type == types.VolumeTypeBind && (err != nil || !v.ReadOnly) {
				t.Errorf("%s mounts %+v: %v", name, v, err)
			}
		}
		for _, port := range s.Ports {
			assert.EqualValues(t, "127.0.0.1", port.HostIP, "%s is open to the network", name)
		}
	}
	e := p.Services["grafana"].Environment["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"]
	assert.True(t, e != nil && *e == "true", "Grafana has an administrator with a password that everybody knows")
	text, err := os.ReadFile(filepath.Join(root, "deploy", "prometheus", "prometheus.yml"))
	assert.True(t, err == nil && strings.Contains(string(text), "targets: [quotasvc:9090]") &&
		strings.Contains(string(text), "alerts.yml"), "prometheus.yml: %v", err)
	for _, name := range []string{"postgres", "redis"} {
		if s := p.Services[name]; len(s.Networks) != 1 || !p.Networks["backend"].Internal {
			t.Errorf("%s is in %d networks", name, len(s.Networks))
		}
	}
}

// ours returns the services that run the image of quotasvc.
func ours(t *testing.T, p *types.Project) map[string]types.ServiceConfig {
	t.Helper()
	services := map[string]types.ServiceConfig{}
	for name, s := range p.Services {
		if s.Build != nil {
			services[name] = s
		}
	}
	require.True(t, len(services) >= 3,
		"only %d services run our image; expected the service, the migration and the roll", len(services))
	return services
}

// help returns the help text of a command. It fails the test if the command is unknown.
func help(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), buildLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, append(args, "--help")...).CombinedOutput()
	assert.NoError(t, err, "quotasvc %s --help: %v\n%s", strings.Join(args, " "), err, out)
	return string(out)
}

// command divides a command line into its subcommands and its flags.
func command(line []string) (subcommands, flags []string) {
	for i, word := range line {
		if strings.HasPrefix(word, "-") {
			for _, w := range line[i:] {
				if strings.HasPrefix(w, "-") {
					name, _, _ := strings.Cut(w, "=")
					flags = append(flags, name)
				}
			}
			return line[:i], flags
		}
	}
	return line, nil
}

func TestCompose_Services_ServersServiceMigrateRoll(t *testing.T) {
	t.Parallel()
	p := project(t)
	postgres, _, _ := strings.Cut(p.Services["postgres"].Image, "@")
	redis, _, _ := strings.Cut(p.Services["redis"].Image, "@")
	assert.True(t, postgres == "postgres:17" && redis == "redis:7", "images %q and %q", postgres, redis)
	// Tests that start containers use the same versions.
	harness := file(t, "internal", "lab", "testenv", "container.go")
	for _, image := range []string{postgres, redis} {
		assert.True(t, strings.Contains(harness, `"`+image+`"`), "the test harness does not use %s", image)
	}
	for name, want := range map[string]string{"quotasvc": "serve", "migrate": "migrate up", "roll": "roll --every 1h", "demo": "apply -f /demo.yaml"} {
		got := strings.Join(p.Services[name].Command, " ")
		assert.True(t, got == want, "%s runs %q, want %q", name, got, want)
	}
}

func TestCompose_CommandsFlagsVariables_Exist(t *testing.T) {
	t.Parallel()
	p := project(t)
	for name, s := range ours(t, p) {
		subcommands, flags := command(s.Command)
		text := help(t, subcommands...)
		for _, flag := range flags {
			assert.True(t, regexp.MustCompile(`(^|[ ,])`+flag+`\b`).MatchString(text),
				"%s: quotasvc %s has no flag %s", name, strings.Join(subcommands, " "), flag)
		}
		for variable := range s.Environment {
			assert.Contains(t, text, variable,
				"%s: quotasvc %s has no variable %s", name, strings.Join(subcommands, " "), variable)
		}
	}
	check := []string(p.Services["quotasvc"].HealthCheck.Test)
	require.True(t, len(check) >= 3 && check[0] == "CMD" && check[1] == "/quotasvc",
		"the health check is %q; the image has no shell", check)
	help(t, check[2:]...)
}

// This tests the function help: --help must fail for an unknown command.
func TestHelp_UnknownCommand_Fails(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), buildLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "no-such-command", "--help").CombinedOutput()
	assert.Error(t, err, "an unknown command has help: %s", out)
	assert.NotContains(t, help(t, "serve"), "QUOTASVC_NO_SUCH_SETTING",
		"the help contains a variable that does not exist")
}

func TestCompose_Configuration_AcceptedByService(t *testing.T) {
	t.Parallel()
	s := project(t).Services["quotasvc"]
	for variable, port := range map[string]string{"QUOTASVC_LISTEN": "8080", "QUOTASVC_OPS_LISTEN": "9090"} {
		address := s.Environment[variable]
		assert.True(t, address != nil && *address == ":"+port,
			"%s is %v: loopback would be unreachable from outside the container", variable, address)
		published := slices.IndexFunc(s.Ports, func(p types.ServicePortConfig) bool { return fmt.Sprint(p.Target) == port })
		if published < 0 {
			t.Errorf("port %s is not published", port)
		} else if s.Ports[published].HostIP != "127.0.0.1" {
			t.Errorf("port %s is open to the network", port)
		}
	}
}

func TestCompose_Secrets_FromEnvironment(t *testing.T) {
	t.Parallel()
	p := project(t)
	for name, s := range ours(t, p) {
		url := s.Environment["QUOTASVC_DATABASE_URL"]
		assert.True(t, url != nil && strings.Contains(*url, ":pgsecret@postgres:5432/"), "%s: database URL %v", name, url)
	}
	service, postgres, redis := p.Services["quotasvc"], p.Services["postgres"], p.Services["redis"]
	for what, value := range map[string]*string{
		"the service's Redis URL": service.Environment["QUOTASVC_REDIS_URL"], "PostgreSQL's password": postgres.Environment["POSTGRES_PASSWORD"],
		"the key": service.Environment["QUOTASVC_ADMIN_KEY"], "redis-cli's password": redis.Environment["REDISCLI_AUTH"],
	} {
		assert.True(t, value != nil && regexp.MustCompile(`pgsecret|redissecret|k{32}`).MatchString(*value),
			"%s does not come from the environment", what)
	}
	at := slices.Index(redis.Command, "--maxmemory-policy")
	assert.True(t, at >= 0 && redis.Command[at+1] == "noeviction", "Redis runs %q, which may evict keys", redis.Command)
	assert.True(t, slices.Contains(redis.Command, "redissecret"), "Redis runs %q, without its password", redis.Command)
	for _, name := range []string{"postgres", "redis"} {
		assert.Empty(t, p.Services[name].Ports, "%s is published", name)
	}
}

func TestCompose_Dependencies_ExistWithConditions(t *testing.T) {
	t.Parallel()
	p := project(t)
	for name, s := range p.Services {
		for other, dependency := range s.DependsOn {
			target, ok := p.Services[other]
			if !ok {
				t.Errorf("%s depends on %s, which does not exist", name, other)
				continue
			}
			switch dependency.Condition {
			case types.ServiceConditionHealthy:
				assert.True(t, target.HealthCheck != nil && !target.HealthCheck.Disable,
					"%s waits for %s to be healthy, which has no health check", name, other)
			case types.ServiceConditionCompletedSuccessfully:
				assert.EqualValues(t, "no", target.Restart,
					"%s waits for %s to complete, which is restarted (%q)", name, other, target.Restart)
			}
		}
	}
	for _, name := range []string{"quotasvc", "roll"} {
		assert.True(t, p.Services[name].DependsOn["migrate"].Condition == types.ServiceConditionCompletedSuccessfully,
			"%s may start before the migration has ended", name)
	}
	for _, name := range []string{"postgres", "redis", "quotasvc"} {
		if c := p.Services[name].HealthCheck; c == nil || c.Disable || len(c.Test) == 0 || c.Interval == nil || c.Timeout == nil {
			t.Errorf("%s has no bounded health check", name)
		}
	}
	for name, s := range p.Services {
		for _, v := range s.Volumes {
			if _, ok := p.Volumes[v.Source]; v.Type == types.VolumeTypeVolume && !ok {
				t.Errorf("%s mounts the volume %s, which does not exist", name, v.Source)
			}
		}
	}
}

func TestCompose_Service_NeverRoot(t *testing.T) {
	t.Parallel()
	d := readDockerfile(t)
	for name, s := range ours(t, project(t)) {
		assert.True(t, s.User == d.user, "%s runs as %q, the image as %q", name, s.User, d.user)
		assert.True(t, s.ReadOnly && slices.Contains(s.CapDrop, "ALL"),
			"%s may write its file system or has capabilities", name)
	}
	assert.True(t, regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(d.user),
		"the image's user is %q, not a number other than 0", d.user)
}
