package redisstore

import (
	"fmt"
	"net"
	"slices"
	"sync/atomic"
)

// Login is the user and the password of new connections. It can be changed while a store is in use. Open connections
// keep the user and the password with which they were opened. All methods are safe for concurrent use.
type Login struct{ current atomic.Pointer[pair] }

type pair struct{ user, password string }

// Follow makes new connections use the user and the password of the new URL. It also reports whether the new URL
// differs from the old URL in another setting; then a new client is needed. If a URL is not valid, Follow returns an
// error and changes nothing.
func (l *Login) Follow(before, now string) (more bool, err error) {
	from, kind, err := parseURL(before)
	if err != nil {
		return false, fmt.Errorf("redis URL: %w", err)
	}
	to, kindNow, err := parseURL(now)
	if err != nil {
		return false, fmt.Errorf("redis URL: %w", err)
	}
	l.current.Store(&pair{to.Username, to.Password})
	return kind != kindNow || !slices.Equal(from.Addrs, to.Addrs) || from.DB != to.DB || from.MasterName != to.MasterName ||
		(from.TLSConfig == nil) != (to.TLSConfig == nil) || from.PoolSize != to.PoolSize || from.SentinelPassword != to.SentinelPassword, nil
}

// of returns a function that returns the user and the password for new connections. Before the first Follow it
// returns its arguments, which come from the client's URL.
func (l *Login) of(user, password string) func() (string, string) {
	return func() (string, string) {
		if p := l.current.Load(); p != nil {
			return p.user, p.password
		}
		return user, password
	}
}

// Unencrypted returns the hosts of a URL if passwords and data are sent to these hosts unencrypted.
func Unencrypted(rawURL string) []string {
	opts, _, err := parseURL(rawURL)
	if err != nil || opts.TLSConfig != nil {
		return nil
	}
	var hosts []string
	for _, address := range opts.Addrs {
		if host, _, err := net.SplitHostPort(address); err == nil {
			hosts = append(hosts, host)
		}
	}
	return hosts
}
