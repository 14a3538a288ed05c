package redisstore

import (
	"fmt"
	"net"
	"slices"
	"sync/atomic"
)

// Login is the user and the password of new connections. It can be changed while a store is in use; open connections
// keep their user and password. All methods are safe for concurrent use.
type Login struct{ current atomic.Pointer[pair] }

type pair struct{ user, password string }

// Follow takes user and password from the URL now. more reports whether the rest of now differs from the URL before:
// then a new client is needed. An error means that a URL is not valid; then nothing has changed.
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

// of returns a function that returns the user and the password for new connections. Before the first Follow they are
// user and password of the client's URL.
func (l *Login) of(user, password string) func() (string, string) {
	return func() (string, string) {
		if p := l.current.Load(); p != nil {
			return p.user, p.password
		}
		return user, password
	}
}

// Unencrypted returns the hosts of a URL to which passwords and data are sent unencrypted.
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
