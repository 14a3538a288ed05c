package localstack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// Config configures a Stack.
type Config struct {
	Dir                 string       // contains the data of both servers; required; kept between runs
	PostgresPort        int          // 0: any free port
	PostgresPortSetting string       // name of the setting that changes the port, for messages
	RedisPort           int          // 0: any free port
	RedisPortSetting    string       // name of the setting that changes the port, for messages
	Log                 *slog.Logger // progress messages; nil: none

	cache string // PostgresConfig.Cache, for tests
}

// Stack is a PostgreSQL and a Redis that keep their data, for `quotasvc dev`.
type Stack struct {
	Postgres *Postgres
	Redis    *Redis
	lock     *dirLock
}

// Start starts PostgreSQL and Redis and returns when both answer. If one of them fails, Start stops the other server.
// The errors of Start include *MissingError, *InUseError and *PortTakenError.
func Start(ctx context.Context, cfg Config) (_ *Stack, err error) {
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	if os.Geteuid() == 0 {
		// The run user must be able to enter Dir, with any umask. Each server's directory in Dir is private.
		if err := os.Chmod(cfg.Dir, 0o755); err != nil {
			return nil, fmt.Errorf("open data directory: %w", err)
		}
	}
	s := &Stack{}
	if s.lock, err = lockDir(cfg.Dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
		}
	}()
	// One message names all missing programs.
	if err := missingPrograms(ctx, SystemSearch()); err != nil {
		return nil, err
	}
	s.Redis, err = StartRedis(ctx, RedisConfig{
		Dir: filepath.Join(cfg.Dir, "redis"), Port: cfg.RedisPort, PortSetting: cfg.RedisPortSetting,
		Persist: true, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	s.Postgres, err = StartPostgres(ctx, PostgresConfig{
		Dir: filepath.Join(cfg.Dir, "postgres"), Port: cfg.PostgresPort, PortSetting: cfg.PostgresPortSetting,
		Durable: true, Log: cfg.Log, Cache: cfg.cache,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func missingPrograms(ctx context.Context, search Search) error {
	_, errPostgres := search.Postgres(ctx, 0)
	_, errRedis := search.Redis()
	return errors.Join(errPostgres, errRedis)
}

// Stop stops both servers as Server.Stop does. If ctx has no deadline, the time limit is 30 s for each server. Stop may
// be called again.
func (s *Stack) Stop(ctx context.Context) error {
	var errs error
	if s.Postgres != nil {
		errs = errors.Join(errs, s.Postgres.Stop(ctx))
	}
	if s.Redis != nil {
		errs = errors.Join(errs, s.Redis.Stop(ctx))
	}
	if s.lock != nil {
		errs = errors.Join(errs, s.lock.release())
		s.lock = nil
	}
	return errs
}

// Wait waits until ctx ends, and then returns nil. If a server ends without Stop, Wait returns an error.
func (s *Stack) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.Postgres.Exited():
		return fmt.Errorf("PostgreSQL has ended unexpectedly; its log is %s", filepath.Join(s.Postgres.Dir(), "postgres.log"))
	case <-s.Redis.Exited():
		return fmt.Errorf("Redis has ended unexpectedly; its log is %s", filepath.Join(s.Redis.Dir(), "redis.log"))
	}
}
