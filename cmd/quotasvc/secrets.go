package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/store/pgpool"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// secretFlags lists flags whose values should not be on a command line, because every user of the machine can read
// command lines.
var secretFlags = []string{"admin-key", "database-url", "redis-url", "report-database-url"}

// warnCommandLine logs a warning for each flag of secretFlags that has a secret value on the command line. A URL
// without a password is not secret.
func warnCommandLine(command *kong.Context, log *slog.Logger) {
	for _, part := range command.Path {
		if part.Flag == nil || !slices.Contains(secretFlags, part.Flag.Name) {
			continue
		}
		value := secret(part.Flag.Target.String())
		if part.Flag.Name == "admin-key" || value.String() != string(value) {
			log.Warn("a secret is on the command line, which every user of this machine can read: use the environment, or a file",
				"flag", "--"+part.Flag.Name, "instead", settingName(part.Flag.Name+"-file"))
		}
	}
}

// readSecret sets *value to the content of a file, without the line end. It records a problem if the file cannot be
// used, or if *value is already set to another text.
func readSecret(check *checker, flag string, value *secret, file string) {
	if file == "" {
		return
	}
	setting := settingName(flag + "-file")
	text, err := secretIn(file)
	check.require(err == nil, setting, "%v", err)
	check.require(*value == "" || *value == text, setting, "and %s are both set: set one of them", settingName(flag))
	if err == nil {
		*value = text
	}
}

// secretIn returns the content of a file without the line end.
func secretIn(file string) (secret, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			err = path.Err
		}
		return "", fmt.Errorf("%s cannot be read: %w", file, err)
	}
	line := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if line == "" {
		return "", fmt.Errorf("%s is empty", file)
	}
	return secret(line), nil
}

// rotation reads the files with secrets again while the service runs, and applies secrets that have changed.
type rotation struct {
	cfg           *serviceConfig
	log           *slog.Logger
	database      pgpool.Login
	report        pgpool.Login
	redis         redisstore.Login
	adminKey      func(string) error // changes the admin key of the server
	inForce       map[string]secret  // the secrets in use, by flag
	needsNewStart []string
}

func newRotation(cfg *serviceConfig, log *slog.Logger) *rotation {
	return &rotation{cfg: cfg, log: log, inForce: map[string]secret{
		"admin-key": cfg.AdminKey, "database-url": cfg.DatabaseURL, "redis-url": cfg.RedisURL, "report-database-url": cfg.ReportDatabaseURL,
	}}
}

// reload reads the files with secrets again. It logs which secrets have changed. If a file cannot be used, it logs
// the fault and keeps the secret in use.
func (r *rotation) reload() {
	r.needsNewStart = nil
	var changed, failed []string
	for _, s := range []struct {
		flag, file string
		use        func(before, now string) error
	}{
		{"admin-key", r.cfg.AdminKeyFile, func(_, now string) error { return r.setAdminKey(now) }},
		{"database-url", r.cfg.DatabaseURLFile, func(before, now string) error { return r.followDatabase(&r.database, "database-url", before, now) }},
		{"report-database-url", r.cfg.ReportDatabaseURLFile, func(before, now string) error {
			return r.followDatabase(&r.report, "report-database-url", before, now)
		}},
		{"redis-url", r.cfg.RedisURLFile, r.followRedis},
	} {
		if s.file == "" {
			continue
		}
		now, err := secretIn(s.file)
		if err == nil && now != r.inForce[s.flag] {
			if err = s.use(string(r.inForce[s.flag]), string(now)); err == nil {
				r.inForce[s.flag] = now
				changed = append(changed, s.flag)
			}
		}
		if err != nil {
			failed = append(failed, settingName(s.flag+"-file")+": "+err.Error())
		}
	}
	r.log.Info("SIGHUP: secrets and certificates are read again; all other settings need a restart", "changed", changed)
	if len(failed) > 0 {
		r.log.Error("new secrets cannot be used; the old ones stay", "faults", failed)
	}
	if len(r.needsNewStart) > 0 {
		r.log.Warn("of these URLs only user and password have changed; hosts, names and parameters need a restart", "settings", r.needsNewStart)
	}
}

func (r *rotation) setAdminKey(key string) error {
	var check checker
	checkAdminKey(&check, key)
	if err := check.err(); err != nil {
		return errors.New(bound.MustBeAdminKey)
	}
	return r.adminKey(key)
}

func (r *rotation) followDatabase(login *pgpool.Login, flag, before, now string) error {
	to, err := pgx.ParseConfig(now)
	if err != nil {
		return redactedParse(err)
	}
	login.Set(to.User, to.Password)
	from, err := pgx.ParseConfig(before)
	if err != nil || from.Host != to.Host || from.Port != to.Port || from.Database != to.Database || len(from.Fallbacks) != len(to.Fallbacks) ||
		(from.TLSConfig == nil) != (to.TLSConfig == nil) {
		r.needsNewStart = append(r.needsNewStart, settingName(flag))
	}
	return nil
}

func (r *rotation) followRedis(before, now string) error {
	more, err := r.redis.Follow(before, now)
	if more {
		r.needsNewStart = append(r.needsNewStart, settingName("redis-url"))
	}
	return err
}

// warn logs a warning for each setting that is allowed and unsafe.
func (c *serviceConfig) warn(log *slog.Logger) {
	c.warnPlainText(log)
	if host, _, _ := net.SplitHostPort(c.Listen); c.PortalURL == "" && !isLoopback(host) {
		log.Warn("links to a tenant's page begin with the Host header of the request that creates the link: "+
			"if a proxy passes on a forged Host header, the link and its secret lead to a host of the forger",
			"remedy", "set "+settingName("portal-url"))
	}
}

// warnPlainText logs a warning for each backend that is on another host and is used without TLS. Passwords and balances
// then cross the network unencrypted.
func (c *serviceConfig) warnPlainText(log *slog.Logger) {
	warn := func(what, remedy string, hosts []string) {
		hosts = slices.DeleteFunc(hosts, isLocal)
		if len(hosts) > 0 {
			log.Warn("PLAIN TEXT: passwords and balances cross the network unencrypted", "to", what, "hosts", hosts, "remedy", remedy)
		}
	}
	warn("PostgreSQL", "add sslmode=verify-full to the URL", plainHosts(string(c.DatabaseURL)))
	warn("the replica of PostgreSQL", "add sslmode=verify-full to the URL", plainHosts(string(c.ReportDatabaseURL)))
	warn("Redis", "use rediss://", redisstore.Unencrypted(string(c.RedisURL)))
}

// plainHosts returns the hosts of a PostgreSQL URL to which the service may connect without TLS. For example, the
// default sslmode=prefer allows such connections.
func plainHosts(url string) []string {
	if url == "" {
		return nil
	}
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil
	}
	var hosts []string
	if cfg.TLSConfig == nil {
		hosts = append(hosts, cfg.Host)
	}
	for _, f := range cfg.Fallbacks {
		if f.TLSConfig == nil && !slices.Contains(hosts, f.Host) {
			hosts = append(hosts, f.Host)
		}
	}
	return hosts
}

// isLocal reports whether a host is this machine, that is, a loopback address or a Unix socket.
func isLocal(host string) bool {
	return isLoopback(host) || strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@")
}
