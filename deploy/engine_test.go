package deploy_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// enginePrograms are stand-ins for docker and dockerd. The engine has one helper, as containerd has for a container,
// and the helper has one child.
var enginePrograms = map[string]string{
	"docker": "#!/bin/sh\n[ \"$1\" != version ] || [ -e \"${DOCKER_HOST#unix://}\" ]\n",
	"dockerd": `#!/bin/bash
dir=${2#unix://} dir=${dir%/socket}
setsid bash -c 'sleep 4242 & echo $$ $! >"$1/helper"; wait' helper "$dir" &
until [ -s "$dir/helper" ]; do sleep 0.05; done
echo $$ $(cat "$dir/helper") >"$ENGINE_PROCESSES"
touch "$dir/socket"
trap 'kill $(cat "$dir/helper")' TERM
wait
`,
}

// TestContainerEngine_Ended_NothingIsLeft: the engine ends with its command, however that one ends, and also if dockerd
// has died before.
func TestContainerEngine_Ended_NothingIsLeft(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("only root on Linux gets an engine")
	}
	for _, c := range []struct {
		name   string
		send   []syscall.Signal
		dies   bool // dockerd
		status int
	}{
		{"the command succeeds", nil, false, 0},
		{"dockerd dies", nil, true, 0},
		{"Ctrl-C", []syscall.Signal{syscall.SIGINT}, false, 130},
		{"Ctrl-C twice", []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, false, 130},
		{"the terminal is closed", []syscall.Signal{syscall.SIGHUP}, false, 129},
		{"kill", []syscall.Signal{syscall.SIGTERM}, false, 143},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			temp, release := filepath.Join(dir, "temp"), filepath.Join(dir, "release")
			processes := filepath.Join(dir, "processes")
			require.NoError(t, os.Mkdir(temp, 0o700))
			for name, text := range enginePrograms {
				path := filepath.Join(dir, name)
				require.NoError(t, os.WriteFile(path, []byte(text), 0o700)) //nolint:gosec // a program
			}
			script := filepath.Join(root, "scripts", "container-engine.sh")
			const command = `echo started; until [ -e "$1" ]; do sleep 0.05; done`
			cmd := exec.CommandContext(context.WithoutCancel(t.Context()), script, "sh", "-c", command, "sh", release)
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TMPDIR="+temp, "DOCKER_HOST=",
				"ENGINE_PROCESSES="+processes)
			var said bytes.Buffer
			out := testenv.Must(t).Get(cmd.StdoutPipe())
			cmd.Stderr = &said
			require.NoError(t, cmd.Start())
			started := make([]byte, len("started"))
			_, err := out.Read(started)
			require.NoError(t, err, "%s", said.String())
			var ids []int
			for id := range strings.FieldsSeq(string(testenv.Must(t).Get(os.ReadFile(processes)))) {
				ids = append(ids, testenv.Must(t).Get(strconv.Atoi(id)))
			}
			require.Len(t, ids, 3)
			if c.dies {
				require.NoError(t, syscall.Kill(ids[0], syscall.SIGKILL))
			}
			for _, signal := range c.send {
				require.NoError(t, cmd.Process.Signal(signal))
			}
			if c.send == nil {
				require.NoError(t, os.WriteFile(release, nil, 0o600))
			}
			_ = cmd.Wait()
			assert.Equal(t, c.status, cmd.ProcessState.ExitCode(), "%s", said.String())
			for _, id := range ids {
				testenv.Eventually(t, func() bool { return syscall.Kill(id, 0) != nil }, "process ", id)
			}
			assert.Empty(t, testenv.Must(t).Get(os.ReadDir(temp)), "files are left")
			require.NoError(t, os.WriteFile(release, nil, 0o600)) // also a command that was not ended ends
		})
	}
}
