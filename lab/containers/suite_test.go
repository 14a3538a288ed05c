package containers

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// On a machine without PostgreSQL and Redis, the tests get both from the engine.
func TestSuite_WithoutServers_TestsUseContainers(t *testing.T) {
	needStandIns(t)
	env := []string{"QUOTASVC_TEST_WITHOUT=servers,libfaketime", "TEST_DATABASE_URL=", "TEST_REDIS_URL="}
	if !pulls() {
		// The reaper is an image, too. Without it, the library removes the containers at the end of the tests.
		env = append(env, hubPrefix, "TESTCONTAINERS_RYUK_DISABLED=true")
	}
	begin := time.Now().Format(time.RFC3339)
	args := []string{"test", "-count=1", "-timeout=10m", "./internal/lab/testenv", "./internal/access"}
	t.Log("go", args)
	out, err := try(t, root, env, "go", args...)
	require.NoError(t, err, "%s", out)
	t.Log(out)
	end := time.Now().Add(time.Second).Format(time.RFC3339)
	made := docker(t, "events", "--since="+begin, "--until="+end, "--format={{.From}}",
		"--filter=event=create", "--filter=label=org.testcontainers=true")
	for _, image := range []string{"postgres:17", "redis:7"} {
		assert.GreaterOrEqual(t, strings.Count(made, image), 2, "containers of %s: %s", image, made)
	}
	assert.Empty(t, owned(t, "org.testcontainers=true", "ps", "--all"), "containers are left")
}
