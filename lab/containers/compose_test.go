package containers

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// A newcomer pastes the lines of README.md. The first denial comes, each server returns after a crash with all debits,
// and Ctrl-C stops everything. The image also runs in places that take rights or settings from it.
func TestCompose_ReadmeLines_ServeReturnAndStopClean(t *testing.T) {
	needStandIns(t)
	c := newClone(t)
	c.start()
	first := c.firstDenial(t)
	for _, service := range []string{"quotasvc", "redis", "postgres"} {
		c.crash(t, service)
		again := c.paste(first)
		assert.Contains(t, again, "Idempotent-Replayed: true", "after a crash of %s", service)
	}
	for i, p := range places {
		c.runAt(t, project+"-place-"+strconv.Itoa(i), p)
	}
	t.Log("stopping with Ctrl-C")
	testenv.Receive(t, c.interrupt())
	for _, service := range []string{"quotasvc", "roll", "postgres", "redis"} {
		assert.True(t, c.exited(service), "%s: %s", service, c.inspect(service, "{{json .State}}"))
	}
	c.compose("down", "--volumes")
	for _, listing := range [][]string{{"ps", "--all"}, {"volume", "ls"}, {"network", "ls"}} {
		assert.Empty(t, owned(t, projectLabel, listing...), "docker %s: something is left", strings.Join(listing, " "))
	}
}

// firstDenial pastes the calls of README.md, and returns the call that was charged.
func (c *clone) firstDenial(t *testing.T) string {
	t.Helper()
	for n := 0; ; n++ {
		// The allowance is for an hour. If the hour turned meanwhile, the calls are repeated with other keys.
		hour := time.Now().Hour()
		block := strings.ReplaceAll(c.page.calls, "order-", "order-"+strconv.Itoa(n))
		out := c.paste(block)
		if time.Now().Hour() != hour {
			continue
		}
		for _, want := range c.page.expect {
			assert.Contains(t, out, want, "README.md expects another answer")
		}
		function, _, found := strings.Cut(block, "\n\n")
		require.True(t, found, "the block of README.md has no empty line after the function debit")
		return function + "\ndebit order-" + strconv.Itoa(n) + "1 3\n"
	}
}

// crash kills the main process of a service, and waits until the service is back.
func (c *clone) crash(t *testing.T, service string) {
	t.Helper()
	const count, pid = "{{.RestartCount}}", "{{.State.Pid}}"
	before := c.inspect(service, count)
	// `docker kill` would count as a stop by hand, after which the engine starts nothing.
	docker(t, "run", "--rm", "--pid=host", "--network=none", "--user=0", "--entrypoint=/bin/sh",
		c.inspect("postgres", "{{.Config.Image}}"), "-c", "kill -9 "+c.inspect(service, pid))
	c.waitFor(service+" to return after a crash", func() bool {
		return c.inspect(service, count) != before && c.healthy(service) && c.healthy("quotasvc")
	})
}

// place is an environment that takes rights or settings from the image.
type place struct {
	name    string
	options []string // of docker run
}

var places = []place{
	{"a random user in the group of root, as OpenShift chooses", []string{"--user=1000660000:0"}},
	{"a file system that is read-only, and no capability", []string{"--read-only", "--cap-drop=ALL"}},
	{"no home directory", []string{"--env=HOME="}},
	{"no IPv6", []string{
		"--sysctl=net.ipv6.conf.all.disable_ipv6=1", "--sysctl=net.ipv6.conf.default.disable_ipv6=1",
	}},
	{"a proxy that does not answer", []string{
		"--env=HTTP_PROXY=http://127.0.0.1:9", "--env=HTTPS_PROXY=http://127.0.0.1:9",
		"--env=http_proxy=http://127.0.0.1:9", "--env=https_proxy=http://127.0.0.1:9",
	}},
}

// runAt starts a second instance in a place, and waits until the health check of the image succeeds.
func (c *clone) runAt(t *testing.T, name string, p place) {
	t.Helper()
	options := append([]string{
		"run", "--detach", "--label=" + projectLabel, "--name=" + name, "--network=" + project + "_backend",
	}, p.options...)
	for _, variable := range []string{"QUOTASVC_DATABASE_URL", "QUOTASVC_REDIS_URL", "QUOTASVC_ADMIN_KEY"} {
		options = append(options, "--env="+variable+"="+c.setting(variable))
	}
	docker(t, append(options, serviceImage)...)
	t.Cleanup(func() { _, _ = tryFor(context.Background(), ".", nil, "docker", "rm", "--force", name) })
	c.waitFor("an instance with "+p.name, func() bool {
		_, err := try(t, ".", nil, "docker", "exec", name, "/quotasvc", "health")
		if err != nil && docker(t, "inspect", "--format={{.State.Running}}", name) != "true" {
			t.Fatalf("the instance with %s has ended:\n%s", p.name, docker(t, "logs", name))
		}
		return err == nil
	})
	docker(t, "rm", "--force", name)
}

// setting returns a variable of the service's container.
func (c *clone) setting(variable string) string {
	c.t.Helper()
	for line := range strings.Lines(c.inspect("quotasvc", `{{range .Config.Env}}{{println .}}{{end}}`)) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), variable+"="); found {
			return value
		}
	}
	c.t.Fatalf("the service has no %s", variable)
	return ""
}
