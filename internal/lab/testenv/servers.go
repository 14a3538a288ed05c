package testenv

import (
	"context"
	"errors"
)

// Servers finds the servers of several test processes, in the order of the package's documentation, and returns what their
// environment has to hold. A process that gets these variables shares the servers. stop ends what was started. A Citus
// cluster is not shared: then each process starts its own.
func Servers(ctx context.Context) (environment []string, stop func(context.Context) error, err error) {
	e := newEnv(systemSource())
	if e.source.getenv(EnvCitus) != "" {
		return nil, e.stop, nil
	}
	p, err := e.startPostgres(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, e.stop(ctx))
	}
	if _, err := p.template.get(); err != nil { // once, not by whoever comes first while the others wait
		return nil, nil, errors.Join(err, e.stop(ctx))
	}
	r, err := e.startRedis(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, e.stop(ctx))
	}
	return []string{EnvPostgres + "=" + p.base.String(), EnvRedis + "=" + redisURL(r.base)}, e.stop, nil
}
