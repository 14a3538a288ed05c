package testenv

import (
	"context"
	"errors"
)

// Servers finds the servers for several test processes, in the order of the package's documentation, and returns the
// environment variables for these processes. Processes with these variables share the servers. stop ends the servers
// that Servers has started. A Citus cluster is not shared: each process starts its own cluster.
func Servers(ctx context.Context) (environment []string, stop func(context.Context) error, err error) {
	e := newEnv(systemSource())
	if e.source.getenv(EnvCitus) != "" {
		return nil, e.stop, nil
	}
	p, err := e.startPostgres(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, e.stop(ctx))
	}
	if _, err := p.template.get(); err != nil { // create it here, so that the processes need not wait for it
		return nil, nil, errors.Join(err, e.stop(ctx))
	}
	r, err := e.startRedis(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, e.stop(ctx))
	}
	return []string{EnvPostgres + "=" + p.base.String(), EnvRedis + "=" + redisURL(r.base)}, e.stop, nil
}
