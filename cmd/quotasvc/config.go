package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/httpapi/limitheaders"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/clock"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/ratelimit/replica"
	"github.com/quotasvc/quotasvc/internal/report/testclock"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

const (
	// devOnly is the prefix of the API keys that this repository publishes for trials.
	devOnly = "dev-only"

	// consoleOff is the value of the setting console-listen that turns the console off.
	consoleOff = "off"

	defaultListen    = "127.0.0.1:8080"
	defaultOpsListen = "127.0.0.1:9090"
)

// databaseConfig has the settings with which a command finds PostgreSQL. Every command that uses the database
// includes them.
type databaseConfig struct {
	DatabaseURLFile string `name:"database-url-file" env:"QUOTASVC_DATABASE_URL_FILE" placeholder:"FILE" group:"Backends" help:"File with the URL of PostgreSQL, instead of --database-url."`
	DatabaseURL     secret `name:"database-url" env:"QUOTASVC_DATABASE_URL" placeholder:"URL" group:"Backends" help:"PostgreSQL, postgres://user:password@host/db. Several hosts and target_session_attrs=read-write are allowed."`
}

// redisConfig has the settings with which a command finds Redis.
type redisConfig struct {
	RedisURLFile string `name:"redis-url-file" env:"QUOTASVC_REDIS_URL_FILE" placeholder:"FILE" group:"Backends" help:"File with the URL of Redis, instead of --redis-url."`
	RedisURL     secret `name:"redis-url" env:"QUOTASVC_REDIS_URL" placeholder:"URL" group:"Backends" help:"Redis, as redis://, rediss://, redis+sentinel:// or redis+cluster://. Without it the service runs in local mode, for a single instance only."`
}

// clockConfig has the maximum difference between PostgreSQL's clock and this machine's clock. If the difference is
// not larger, the clocks count as equal.
type clockConfig struct {
	ClockSkewMax time.Duration `name:"clock-skew-max" env:"QUOTASVC_CLOCK_SKEW_MAX" default:"${clock_skew_max}" group:"Tuning" help:"Largest accepted difference between PostgreSQL's clock and this machine's clock. If the difference is larger, decisions use the earlier clock. With a very large value, they always use PostgreSQL's clock."`
}

func (c *clockConfig) check(check *checker) {
	check.require(c.ClockSkewMax > 0, settingName("clock-skew-max"), "is %s; must be greater than 0s", c.ClockSkewMax)
}

// clock returns a clock with this maximum difference.
func (c *clockConfig) clock(log *slog.Logger) *clock.Clock { return pg.NewClock(c.ClockSkewMax, log) }

// clockOf returns the clock of a database. If `quotasvc dev` has moved the time of the database forward, the clock is
// ahead by the same time.
func (c *clockConfig) clockOf(ctx context.Context, databaseURL string, log *slog.Logger) (*clock.Clock, error) {
	ahead, err := testclock.Ahead(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	agreed := c.clock(log)
	agreed.Advance(ahead)
	return agreed, nil
}

// serviceConfig is the configuration of `serve`. `dev` sets the fields itself.
type serviceConfig struct {
	databaseConfig
	redisConfig
	clockConfig
	pagesConfig
	oidcConfig

	ReportDatabaseURLFile string `name:"report-database-url-file" env:"QUOTASVC_REPORT_DATABASE_URL_FILE" placeholder:"FILE" group:"Backends" help:"File with the URL of the replica for reports, instead of --report-database-url."`
	ReportDatabaseURL     secret `name:"report-database-url" env:"QUOTASVC_REPORT_DATABASE_URL" placeholder:"URL" group:"Backends" help:"A replica of PostgreSQL for reports: entries, statements, use, balances of the past. Reports are as old as the data of the replica. Default: the database itself."`

	Listen    string `env:"QUOTASVC_LISTEN" default:"${listen}" placeholder:"ADDR" group:"Listeners" help:"Address of the API. Port 0 picks a free port and prints it."`
	OpsListen string `env:"QUOTASVC_OPS_LISTEN" default:"${ops_listen}" placeholder:"ADDR" group:"Listeners" help:"Address of /livez, /readyz, /metrics, /log-level and pprof. Keep it private."`

	EnvoyRLSListen string `env:"QUOTASVC_ENVOY_RLS_LISTEN" placeholder:"ADDR" group:"Listeners" help:"Address of Envoy's rate limit service (gRPC, envoy.service.ratelimit.v3), with the API's keys and certificate. Default: none, the service is off."`

	ConsoleListen string `env:"QUOTASVC_CONSOLE_LISTEN" placeholder:"ADDR" group:"Listeners" help:"Address of the console, with the API's certificate: pages for people, at /console/. off: no console. Default: the API's address."`

	AdminKeyFile string `env:"QUOTASVC_ADMIN_KEY_FILE" placeholder:"FILE" group:"Listeners" help:"File with the bootstrap key, instead of --admin-key. serve reads this file, and those of the URLs, again at SIGHUP."`
	AdminKey     secret `env:"QUOTASVC_ADMIN_KEY" placeholder:"KEY" group:"Listeners" help:"Bootstrap key with every scope, at least 32 characters."`

	TLSCertFile     string `env:"QUOTASVC_TLS_CERT_FILE" placeholder:"FILE" group:"Listeners" help:"Certificate of the API in PEM form, with intermediate certificates after it. With it the API uses HTTPS. The files are read again when they change."`
	TLSKeyFile      string `env:"QUOTASVC_TLS_KEY_FILE" placeholder:"FILE" group:"Listeners" help:"Private key of the certificate, in PEM form."`
	TLSClientCAFile string `env:"QUOTASVC_TLS_CLIENT_CA_FILE" placeholder:"FILE" group:"Listeners" help:"Certificates of authorities, in PEM form. Clients then need a certificate signed by one of them, besides their key."`
	ConnectionsMax  int    `env:"QUOTASVC_CONNECTIONS_MAX" default:"0" group:"Listeners" help:"Maximum number of client connections. Further ones are closed at once. 0: as many as the limit of open files allows, with a reserve for operators, PostgreSQL and Redis."`

	LegacyHeaders  []string `env:"QUOTASVC_LEGACY_HEADERS" placeholder:"SET,..." group:"Listeners" help:"Rate-limit headers for older clients, in addition to RateLimit. x-ratelimit-epoch and x-ratelimit-delta send X-RateLimit-Limit, -Remaining and -Reset, with Reset as a Unix time or as seconds from now. ratelimit sends RateLimit-Limit, -Remaining and -Reset (seconds)."`
	TrustedProxies []string `env:"QUOTASVC_TRUSTED_PROXIES" placeholder:"CIDR,..." group:"Listeners" help:"Proxies (addresses or CIDR blocks) whose X-Forwarded-For and X-Real-IP headers are trusted. Default: none."`

	Pprof bool `env:"QUOTASVC_PPROF" group:"Listeners" help:"Serve /debug/pprof/ at the ops address. Profiles cost CPU while they are taken, and stacks can show names of tenants."`

	StartTimeout time.Duration `env:"QUOTASVC_START_TIMEOUT" default:"60s" group:"Starting and stopping" help:"How long to wait for PostgreSQL at start. Meanwhile /livez returns 200, /readyz 503, and the API does not listen. 0s waits for ever."`

	DrainDelay  time.Duration `env:"QUOTASVC_DRAIN_DELAY" default:"3s" group:"Starting and stopping" help:"How long to keep serving after /readyz returns 503. Set it above the time in which the load balancer notices."`
	StopTimeout time.Duration `env:"QUOTASVC_STOP_TIMEOUT" default:"6s" group:"Starting and stopping" help:"Time limit of the stop after the drain delay. Container runtimes kill after 10 s by default; keep the sum of both below their limit."`

	Replicas            int           `env:"QUOTASVC_REPLICAS" default:"1" group:"Tuning" help:"Minimum number of instances to assume while Redis is unavailable, 1 to 256. Limits are then divided by this number or by the last known number of live instances, whichever is larger."`
	LedgerLanes         int           `env:"QUOTASVC_LEDGER_LANES" default:"0" group:"Tuning" help:"Number of ledger writers, 1 to 64. Each one uses a PostgreSQL connection. 0: 2, or 1 while other instances run; on Citus one for each shard group, at most 32."`
	CoordinatorOnly     bool          `env:"QUOTASVC_COORDINATOR_ONLY" group:"Tuning" help:"On Citus, send every statement through the coordinator. Otherwise writers connect to the node that holds their tenants, at the address that pg_dist_node has, if it answers."`
	CheckReads          int           `env:"QUOTASVC_CHECK_READS" default:"8" group:"Tuning" help:"Maximum number of concurrent PostgreSQL reads for checks."`
	Readers             int           `env:"QUOTASVC_READERS" default:"8" group:"Tuning" help:"PostgreSQL connections for reads of balances, checks and look-ups, 1 to 1024. Reports have three connections of their own."`
	TenantsInMemory     int           `env:"QUOTASVC_TENANTS_IN_MEMORY" default:"50000" group:"Tuning" help:"Number of active tenants whose facts, copies of balances and levels of limits stay in memory, 1000 to 5000000. Checks of further tenants read Redis or PostgreSQL. A tenant takes about 1 kB."`
	CacheFresh          time.Duration `env:"QUOTASVC_CACHE_FRESH" default:"30s" group:"Tuning" help:"Age at which a cached balance is read from PostgreSQL again, unless a check sets max_stale_ms."`
	WebhookAllowPrivate bool          `env:"QUOTASVC_WEBHOOK_ALLOW_PRIVATE" group:"Tuning" help:"Allow webhooks to addresses in private, loopback and link-local networks. Anyone who may create a webhook can then call internal addresses through this service."`
	RejectionsHigh      int64         `env:"QUOTASVC_REJECTIONS_HIGH" default:"100" group:"Tuning" help:"Emit the event limit.rejections_high when a limit refuses this many requests of a tenant in a minute, at most once an hour for each tenant and limit. Up to 1000000000. 0: never."`
	VerifyEvery         time.Duration `env:"QUOTASVC_VERIFY_EVERY" default:"1h" group:"Tuning" help:"Pause between two background verifications of journal and balances. 0s turns them off."`

	DefaultPlan     string `env:"QUOTASVC_DEFAULT_PLAN" placeholder:"PLAN" group:"Tenants" help:"Plan on which a tenant is created by its first debit, consume, hold or request at a gateway. A request that the plan refuses creates no tenant. Default: none, tenants must exist."`
	DefaultPlanRate int    `env:"QUOTASVC_DEFAULT_PLAN_RATE" default:"50" group:"Tenants" help:"Maximum number of tenants that an instance creates per second, 1 to 10000. Further first uses get 503 queue_full, with Retry-After."`

	level   *slog.LevelVar   // level of the log
	lines   *flood           // handler of the log
	hangups <-chan os.Signal // receives each SIGHUP

	testClock bool // the ledger's time can be moved, in dev
}

// configError lists all problems of a configuration.
type configError struct{ problems []string }

// Error returns one line per problem.
func (e *configError) Error() string {
	return "the configuration is not valid:\n  " + strings.Join(e.problems, "\n  ")
}

// checker collects the problems of a configuration.
type checker struct{ problems []string }

func (c *checker) require(ok bool, setting, format string, args ...any) {
	if !ok {
		c.problems = append(c.problems, setting+": "+fmt.Sprintf(format, args...))
	}
}

func (c *checker) err() error {
	if len(c.problems) == 0 {
		return nil
	}
	return &configError{c.problems}
}

// settingName returns the name of a setting for messages. The name is its flag, with its environment variable in
// parentheses.
func settingName(flag string) string {
	return "--" + flag + " (QUOTASVC_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) + ")"
}

// validate returns a *configError with all problems, or nil.
func (c *serviceConfig) validate() error {
	var check checker
	c.databaseConfig.check(&check)
	c.redisConfig.check(&check)
	c.clockConfig.check(&check)
	c.pagesConfig.check(&check)
	c.oidcConfig.check(&check)
	checkListen(&check, "listen", c.Listen)
	checkListen(&check, "ops-listen", c.OpsListen)
	samePort := c.Listen == c.OpsListen && !strings.HasSuffix(c.Listen, ":0")
	check.require(!samePort, settingName("ops-listen"), "is the same as --listen: %s", c.Listen)
	if at := c.EnvoyRLSListen; at != "" {
		checkListen(&check, "envoy-rls-listen", at)
		samePort = (at == c.Listen || at == c.OpsListen) && !strings.HasSuffix(at, ":0")
		check.require(!samePort, settingName("envoy-rls-listen"), "is the address of another listener: %s", at)
	}
	if at := c.ConsoleListen; at != "" && at != consoleOff {
		checkListen(&check, "console-listen", at)
		samePort = (at == c.Listen || at == c.OpsListen || at == c.EnvoyRLSListen) && !strings.HasSuffix(at, ":0")
		check.require(!samePort, settingName("console-listen"), "is the address of another listener: %s. Leave it empty for the API's address", at)
	}
	readSecret(&check, "admin-key", &c.AdminKey, c.AdminKeyFile)
	readSecret(&check, "report-database-url", &c.ReportDatabaseURL, c.ReportDatabaseURLFile)
	if c.AdminKey != "" || c.AdminKeyFile == "" { // otherwise the error about the file is already recorded
		checkAdminKey(&check, string(c.AdminKey))
	}
	check.require((c.TLSCertFile == "") == (c.TLSKeyFile == ""), settingName("tls-cert-file"), "and %s must be set together", settingName("tls-key-file"))
	check.require(c.TLSClientCAFile == "" || c.TLSCertFile != "", settingName("tls-client-ca-file"), "needs %s", settingName("tls-cert-file"))
	check.require(c.ConnectionsMax >= 0 && c.ConnectionsMax <= 1_000_000, settingName("connections-max"), "is %d; must be between 0 and 1000000", c.ConnectionsMax)
	legacy := limitheaders.Check(c.legacyHeaders())
	check.require(legacy == nil, settingName("legacy-headers"), "%v", legacy)
	_, err := parseProxies(c.TrustedProxies)
	check.require(err == nil, settingName("trusted-proxies"), "%v", err)
	check.require(c.DrainDelay >= 0 && c.DrainDelay <= time.Minute, settingName("drain-delay"), "is %s; must be between 0s and 1m", c.DrainDelay)
	check.require(c.StartTimeout >= 0 && c.StartTimeout <= 24*time.Hour, settingName("start-timeout"), "is %s; must be between 0s and 24h", c.StartTimeout)
	check.require(c.StopTimeout >= time.Second && c.StopTimeout <= 10*time.Minute, settingName("stop-timeout"),
		"is %s; must be between 1s and 10m", c.StopTimeout)
	check.require(c.Replicas >= 1 && c.Replicas <= replica.Max, settingName("replicas"), "is %d; must be between 1 and %d", c.Replicas, replica.Max)
	check.require(c.DefaultPlan == "" || bound.ID(c.DefaultPlan), settingName("default-plan"), "%.128q is no plan: %s", c.DefaultPlan, bound.MustBeID)
	check.require(c.DefaultPlanRate >= 1 && c.DefaultPlanRate <= 10_000, settingName("default-plan-rate"), "is %d; must be between 1 and 10000", c.DefaultPlanRate)
	check.require(c.LedgerLanes >= 0 && c.LedgerLanes <= 64, settingName("ledger-lanes"), "is %d; must be between 0 and 64", c.LedgerLanes)
	check.require(c.CheckReads >= 1 && c.CheckReads <= 1024, settingName("check-reads"), "is %d; must be between 1 and 1024", c.CheckReads)
	check.require(c.Readers >= 1 && c.Readers <= 1024, settingName("readers"), "is %d; must be between 1 and 1024", c.Readers)
	if c.ReportDatabaseURL != "" {
		_, err := pgx.ParseConfig(string(c.ReportDatabaseURL))
		check.require(err == nil, settingName("report-database-url"), "%v", redactedParse(err))
	}
	check.require(c.TenantsInMemory >= 1000 && c.TenantsInMemory <= 5_000_000, settingName("tenants-in-memory"), "is %d; must be between 1000 and 5000000", c.TenantsInMemory)
	check.require(c.CacheFresh >= 10*time.Millisecond && c.CacheFresh <= 24*time.Hour, settingName("cache-fresh"),
		"is %s; must be between 10ms and 24h", c.CacheFresh)
	check.require(c.RejectionsHigh >= 0 && c.RejectionsHigh <= 1e9, settingName("rejections-high"), "is %d; must be between 0 and 1000000000", c.RejectionsHigh)
	check.require(c.VerifyEvery == 0 || c.VerifyEvery >= time.Second && c.VerifyEvery <= 30*24*time.Hour, settingName("verify-every"),
		"is %s; must be 0s or between 1s and 720h", c.VerifyEvery)
	return check.err()
}

func (c *serviceConfig) legacyHeaders() []limitheaders.Legacy {
	var sets []limitheaders.Legacy
	for _, name := range c.LegacyHeaders {
		sets = append(sets, limitheaders.Legacy(strings.TrimSpace(name)))
	}
	return sets
}

func (c *databaseConfig) check(check *checker) {
	readSecret(check, "database-url", &c.DatabaseURL, c.DatabaseURLFile)
	setting := settingName("database-url")
	if c.DatabaseURL == "" {
		if c.DatabaseURLFile != "" {
			return // the error about the file is already recorded
		}
		check.require(false, setting, "is required. Example: postgres://quotasvc:password@127.0.0.1:5432/quotasvc")
		return
	}
	_, err := pgx.ParseConfig(string(c.DatabaseURL))
	check.require(err == nil, setting, "%v", redactedParse(err))
}

// validate checks the configuration of a command that needs only PostgreSQL.
func (c *databaseConfig) validate() error {
	var check checker
	c.check(&check)
	return check.err()
}

// redactedParse returns the cause of an error about a URL that cannot be parsed. It removes the rest of the error,
// because that quotes the URL with its password.
func redactedParse(err error) error {
	if err == nil {
		return nil
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	if parse, ok := errors.AsType[*url.Error](err); ok {
		return parse.Err
	}
	return err
}

func (c *redisConfig) check(check *checker) {
	readSecret(check, "redis-url", &c.RedisURL, c.RedisURLFile)
	if c.RedisURL == "" {
		return
	}
	client, err := redisstore.NewClient(string(c.RedisURL))
	check.require(err == nil, settingName("redis-url"), "%v", err)
	if err == nil {
		_ = client.Close() // the client has never connected
	}
}

func checkListen(check *checker, flag, address string) {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	check.require(err == nil, settingName(flag), "%q is not host:port", address)
}

func checkAdminKey(check *checker, key string) {
	setting := settingName("admin-key")
	if key == "" {
		check.require(false, setting, "is required. Generate a key with: openssl rand -hex 32")
		return
	}
	check.require(bound.AdminKey(key), setting, bound.MustBeAdminKey)
	check.require(!strings.HasPrefix(key, devOnly), setting, "begins with %s: that key is public. Generate one with: openssl rand -hex 32", devOnly)
}

// parseProxies parses the addresses and CIDR blocks of trusted proxies.
func parseProxies(list []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range list {
		text = strings.TrimSpace(text)
		prefix, err := netip.ParsePrefix(text)
		if address, bare := netip.ParseAddr(text); bare == nil && address.Zone() == "" {
			prefix, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("%q must be an IP address or a CIDR block such as 10.0.0.0/8", text)
		case prefix.Addr().Is4In6():
			return nil, fmt.Errorf("%q must be written as an IPv4 address", text)
		case prefix.Bits() == 0:
			return nil, fmt.Errorf("%q covers every address; name the trusted proxies", text)
		}
		out = append(out, prefix)
	}
	return out, nil
}
