package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseURL_EveryKind(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"redis://localhost":                             "single [localhost:6379] db 0",
		"redis://10.0.0.1:7000/3":                       "single [10.0.0.1:7000] db 3",
		"redis://[::1]":                                 "single [[::1]:6379] db 0",
		"redis://[::1]:7000/0":                          "single [[::1]:7000] db 0",
		"rediss://u:p%40ss@cache.example.org:6380/1":    "single [cache.example.org:6380] db 1 tls cache.example.org user u password p@ss",
		"redis://:secret@h":                             "single [h:6379] db 0 password secret",
		"redis+sentinel://a,b:1,c/mymaster":             "sentinel [a:26379 b:1 c:26379] db 0 master mymaster",
		"redis+sentinel://u:p@a/mymaster/2":             "sentinel [a:26379] db 2 master mymaster user u password p",
		"rediss+sentinel://a/m?sentinel_password=s":     "sentinel [a:26379] db 0 master m tls  sentinel s",
		"redis+cluster://a,b:7001":                      "cluster [a:6379 b:7001] db 0",
		"rediss+cluster://u:p@a:7000/":                  "cluster [a:7000] db 0 tls  user u password p",
		"redis+cluster://a:7000,[::1]:7001?pool_size=5": "cluster [a:7000 [::1]:7001] db 0 pool 5",
	} {
		opts, kind, err := parseURL(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		got := describe(opts, kind)
		assert.True(t, got == want, "%s is\n%s, want\n%s", in, got, want)
	}
}

func describe(o *redis.UniversalOptions, kind serverKind) string {
	s := fmt.Sprintf("%s %v db %d", []string{"single", "sentinel", "cluster"}[kind], o.Addrs, o.DB)
	if o.MasterName != "" {
		s += " master " + o.MasterName
	}
	if o.TLSConfig != nil {
		s += " tls " + o.TLSConfig.ServerName
	}
	if o.Username != "" {
		s += " user " + o.Username
	}
	if o.Password != "" {
		s += " password " + o.Password
	}
	if o.SentinelPassword != "" {
		s += " sentinel " + o.SentinelPassword
	}
	if o.PoolSize != poolSize {
		s += fmt.Sprint(" pool ", o.PoolSize)
	}
	return s
}

func TestNewClient_BadURL_ErrorHidesThePassword(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for in, reason := range map[string]string{
		"":                                             "scheme",
		"localhost:6379":                               "scheme",
		"http://:hunter2@h":                            "scheme",
		"redis+foo://:hunter2@h":                       "scheme",
		"redissentinel://h":                            "scheme",
		"redis://":                                     "no host",
		"redis://:hunter2@":                            "no host",
		"redis://:hunter2@a,b":                         "several hosts",
		"redis://:hunter2@h/x":                         "is not a number",
		"redis://:hunter2@h/-1":                        "is not a number",
		"redis://:hunter2@h:0":                         "1 to 65535",
		"redis://:hunter2@h:65536":                     "1 to 65535",
		"redis://user:hun%ter2@h":                      "percent-encoded",
		"redis://h:hunter2":                            "1 to 65535",
		"redis://:hunter2@h\x7f":                       "host 1",
		"redis://user/hunter2@h":                       "not a number",
		"redis://user?hunter2@h":                       "unknown",
		"redis://user#hunter2@h":                       "percent-encoded",
		"redis+sentinel://:hunter2@h":                  "master's name",
		"redis+sentinel://h,,i/m":                      "host 2 is not",
		"redis+cluster://:hunter2@h/1":                 "no databases",
		"redis://:hunter2@h?pool_size=0":               "pool_size",
		"redis://:hunter2@h?pool_size=x":               "pool_size",
		"redis://:hunter2@h?max_retries=3":             "unknown",
		"redis://:hunter2@h?sentinel_password=hunter2": "unknown",
	} {
		_, err := NewClient(in)
		assert.True(t, err != nil && strings.Contains(err.Error(), reason),
			"%q: %v; want an error about %q", in, err, reason)
		assert.False(t, err != nil && strings.Contains(err.Error(), secret),
			"%q: the error shows the password: %v", in, err)
	}
}

func TestNewClient_SetsEveryTimeout(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"redis://h", "redis+sentinel://h/m", "redis+cluster://h"} {
		c, err := NewClient(in)
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		var dial, read, write, pool time.Duration
		var retries, dials int
		var contexts bool
		switch c := c.(type) {
		case *redis.Client:
			o := c.Options()
			dial, read, write, pool, retries, dials, contexts = o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout, o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled
		case *redis.ClusterClient:
			o := c.Options()
			dial, read, write, pool, retries, dials, contexts = o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout, 0, o.DialerRetries, o.ContextTimeoutEnabled
		}
		assert.True(t, dial == dialTimeout && read == ioTimeout && write == ioTimeout && pool == poolTimeout && retries <= 0 && dials == 1 && contexts,
			"%s: dial %s, read %s, write %s, pool %s, %d retries, %d dials, contexts %v", in, dial, read, write, pool, retries, dials, contexts)
	}
}
