package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// The timeouts of a client. All of them are set, because the defaults of go-redis add up to many seconds. For a
// request, a wait of seconds would be worse than a decision without Redis.
const (
	ioTimeout   = 100 * time.Millisecond // a script takes well under 1 ms; after 100 ms the server has a problem
	dialTimeout = 250 * time.Millisecond // TCP, TLS and AUTH across one region
	poolTimeout = 50 * time.Millisecond  // if the pool stays busy for this time, waiting longer will not help

	// poolSize is the number of connections per node. Each lane uses one connection, and copies of balances use a
	// few. A connection carries pipelines of many requests. So the pool does not bound concurrency: it is a reserve
	// for slow replies.
	poolSize = 16
)

// NewClient creates a client for a URL:
//
//	redis://[user:password@]host[:port][/db]           one server; rediss:// with TLS
//	redis+sentinel://[user:password@]host[:port],host[:port]/master[/db]
//	redis+cluster://[user:password@]host[:port],host[:port]
//
// rediss+sentinel:// and rediss+cluster:// add TLS. The query parameters are pool_size=<connections per node>,
// sentinel_user and sentinel_password; there are no others. Every timeout is set, and contexts are respected. A
// command that may have run is not sent again. NewClient does not connect. Errors never contain the URL, because it
// may contain a password.
func NewClient(rawURL string) (redis.UniversalClient, error) { return newClient(rawURL, nil) }

func newClient(rawURL string, login *Login) (redis.UniversalClient, error) {
	opts, kind, err := parseURL(rawURL)
	if err != nil {
		return nil, fmt.Errorf("redis URL: %w", err)
	}
	if login != nil {
		opts.CredentialsProvider = login.of(opts.Username, opts.Password)
	}
	switch kind {
	case kindCluster:
		return redis.NewClusterClient(opts.Cluster()), nil
	case kindSentinel:
		return redis.NewFailoverClient(opts.Failover()), nil
	default:
		return redis.NewClient(opts.Simple()), nil
	}
}

type serverKind int

const (
	kindSingle serverKind = iota
	kindSentinel
	kindCluster
)

func parseURL(rawURL string) (*redis.UniversalOptions, serverKind, error) {
	rawURL, hosts := cutHosts(rawURL)
	u, err := url.Parse(rawURL)
	if err != nil {
		// The error of url.Parse would quote the URL or parts of the password.
		return nil, 0, errors.New("it cannot be read; special characters in user and password must be percent-encoded")
	}
	if u.Fragment != "" {
		return nil, 0, errors.New("it has a fragment; # must be percent-encoded as %23")
	}
	opts := baseOptions()
	scheme, secure := strings.CutPrefix(u.Scheme, "rediss")
	if !secure {
		scheme = strings.TrimPrefix(u.Scheme, "redis")
	}
	kind, port := kindSingle, "6379"
	switch {
	case u.Scheme == scheme:
		kind = -1
	case scheme == "+sentinel":
		kind, port = kindSentinel, "26379"
	case scheme == "+cluster":
		kind = kindCluster
	case scheme != "":
		kind = -1
	}
	if kind < 0 {
		return nil, 0, fmt.Errorf("scheme %q is not redis, rediss, redis+sentinel or redis+cluster", u.Scheme[:min(len(u.Scheme), 40)])
	}
	if u.User != nil {
		opts.Username = u.User.Username()
		opts.Password, _ = u.User.Password()
	}
	if opts.Addrs, err = addresses(hosts, port, kind); err != nil {
		return nil, 0, err
	}
	if secure {
		opts.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		if kind == kindSingle {
			opts.TLSConfig.ServerName, _, _ = net.SplitHostPort(opts.Addrs[0])
		}
	}
	if err := parsePath(u.Path, kind, opts); err != nil {
		return nil, 0, err
	}
	return opts, kind, parseQuery(u, kind, opts)
}

// cutHosts cuts the list of hosts out of a URL and puts one host in its place, because net/url does not parse lists.
func cutHosts(rawURL string) (rest, hosts string) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok {
		return rawURL, ""
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	begin := strings.LastIndexByte(rest[:end], '@') + 1
	return scheme + "://" + rest[:begin] + "host" + rest[end:], rest[begin:end]
}

func baseOptions() *redis.UniversalOptions {
	return &redis.UniversalOptions{
		MaxRetries:            -1,
		DialTimeout:           dialTimeout,
		DialerRetries:         1,
		ReadTimeout:           ioTimeout,
		WriteTimeout:          ioTimeout,
		ContextTimeoutEnabled: true,
		PoolSize:              poolSize,
		PoolTimeout:           poolTimeout,
		PipelinePoolSize:      -1, // nearly all requests are pipelines, so one pool is enough
		DisableIdentity:       true,
		// Only some hosted servers send maintenance notices. On other servers the handshake would cost a round trip.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

func addresses(host, port string, kind serverKind) ([]string, error) {
	if host == "" {
		return nil, errors.New("it has no host")
	}
	hosts := strings.Split(host, ",")
	if kind == kindSingle && len(hosts) > 1 {
		return nil, errors.New("several hosts need redis+sentinel:// or redis+cluster://")
	}
	addrs := make([]string, len(hosts))
	for i, h := range hosts {
		name, p, err := net.SplitHostPort(h)
		if err != nil {
			name, p = strings.TrimSuffix(strings.TrimPrefix(h, "["), "]"), port
		}
		if name == "" || strings.ContainsFunc(name, notInHost) {
			return nil, fmt.Errorf("host %d is not a name or an address", i+1)
		}
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("the port of host %d is not from 1 to 65535", i+1)
		}
		addrs[i] = net.JoinHostPort(name, p)
	}
	return addrs, nil
}

func notInHost(c rune) bool {
	alnum := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
	return !alnum && !strings.ContainsRune(".-_:%", c)
}

func parsePath(path string, kind serverKind, opts *redis.UniversalOptions) error {
	path = strings.TrimPrefix(path, "/")
	if kind == kindCluster {
		if path != "" {
			return errors.New("a cluster has no databases: the path must be empty")
		}
		return nil
	}
	db := path
	if kind == kindSentinel {
		opts.MasterName, db, _ = strings.Cut(path, "/")
		if opts.MasterName == "" {
			return errors.New("redis+sentinel:// needs the master's name as its path")
		}
	}
	if db == "" {
		return nil
	}
	n, err := strconv.ParseUint(db, 10, 16)
	if err != nil {
		return errors.New("the database is not a number from 0 to 65535")
	}
	opts.DB = int(n)
	return nil
}

func parseQuery(u *url.URL, kind serverKind, opts *redis.UniversalOptions) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("the query cannot be read")
	}
	for name, values := range query {
		value := values[len(values)-1]
		switch {
		case name == "pool_size":
			n, err := strconv.ParseUint(value, 10, 16)
			if err != nil || n == 0 {
				return errors.New("pool_size is not a positive integer")
			}
			opts.PoolSize = int(n)
		case name == "sentinel_user" && kind == kindSentinel:
			opts.SentinelUsername = value
		case name == "sentinel_password" && kind == kindSentinel:
			opts.SentinelPassword = value
		default:
			return errors.New("it has a parameter that is unknown for its scheme")
		}
	}
	return nil
}

// SetLogger sets the logger of go-redis, which has one logger for all clients of a process.
func SetLogger(logger interface {
	Printf(ctx context.Context, format string, v ...any)
},
) {
	redis.SetLogger(logger)
}
