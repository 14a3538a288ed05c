package deploy_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// unit returns the lines of a systemd unit.
func unit(t *testing.T, name string) []string {
	t.Helper()
	return strings.Split(file(t, "deploy", "systemd", name), "\n")
}

// `make lint-deploy` also checks the units with systemd.
func TestSystemd_Units_CommandsSettingsExist_NothingMoreIsAllowed(t *testing.T) {
	t.Parallel()
	for name, wanted := range map[string]string{
		"quotasvc": "serve", "quotasvc-roll": "roll", "quotasvc-verify": "verify", "quotasvc-partitions": "migrate partitions", "quotasvc-seal": "seal", "quotasvc-archive": "archive",
	} {
		lines := unit(t, name+".service")
		text := help(t, strings.Fields(wanted)...)
		owner := !slices.Contains([]string{"serve", "roll", "verify"}, wanted)
		for _, line := range []string{
			"DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet=", "PrivateDevices=yes", "SystemCallFilter=@system-service",
			map[bool]string{true: "LoadCredential=database-url:/etc/quotasvc/owner-database-url", false: "LoadCredential=database-url:/etc/quotasvc/database-url"}[owner],
		} {
			assert.True(t, slices.Contains(lines, line), "%s.service lacks %s", name, line)
		}
		all := strings.Join(lines, "\n")
		assert.True(t, regexp.MustCompile(`(?m)^ExecStart=.*/usr/local/bin/quotasvc `+wanted+`\b`).MatchString(all),
			"%s.service does not run quotasvc %s", name, wanted)
		for _, setting := range regexp.MustCompile(`QUOTASVC_\w+`).FindAllString(all, -1) {
			assert.Contains(t, text, setting, "%s.service: quotasvc %s has no setting %s", name, wanted, setting)
		}
		if name != "quotasvc" && !slices.ContainsFunc(unit(t, name+".timer"), func(line string) bool { return strings.HasPrefix(line, "OnCalendar=") }) {
			t.Errorf("%s.timer has no calendar", name)
		}
	}
}
