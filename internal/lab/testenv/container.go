package testenv

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
	"go.uber.org/goleak"
)

const (
	// These are the images of docker-compose.yml.
	postgresImage = "postgres:17"
	redisImage    = "redis:7"

	// readyTimeout is the time limit of a container's start after the download of its
	// image.
	readyTimeout = time.Minute
)

// dockerContainers starts servers in Docker.
type dockerContainers struct{}

func (dockerContainers) postgres(ctx context.Context) (backend, error) {
	const port = "5432/tcp"
	address := func(host, port string) string {
		u := url.URL{
			Scheme: "postgres", User: url.UserPassword("quotasvc", "quotasvc"),
			Host: host + ":" + port, Path: "/quotasvc", RawQuery: "sslmode=disable",
		}
		return u.String()
	}
	return runContainer(ctx, postgresImage, port, address,
		testcontainers.WithEnv(map[string]string{
			"POSTGRES_USER": "quotasvc", "POSTGRES_PASSWORD": "quotasvc", "POSTGRES_DB": "quotasvc",
			"POSTGRES_INITDB_ARGS": "--encoding=UTF8 --locale=C",
		}),
		testcontainers.WithCmd("postgres", "-c", "fsync=off", "-c", "full_page_writes=off",
			"-c", "timezone=UTC", "-c", "max_connections="+sharedConnections),
		// The image first starts a temporary server. That server has no TCP port, so this waits for the second
		// server.
		testcontainers.WithWaitStrategyAndDeadline(readyTimeout, wait.ForSQL(port, "pgx",
			func(host string, port network.Port) string { return address(host, port.Port()) })),
	)
}

func (dockerContainers) redis(ctx context.Context) (backend, error) {
	const port = "6379/tcp"
	address := func(host, port string) string { return "redis://" + host + ":" + port + "/0" }
	return runContainer(ctx, redisImage, port, address,
		testcontainers.WithCmd("redis-server", "--save", "", "--databases", strconv.Itoa(redisDatabases)),
		testcontainers.WithWaitStrategyAndDeadline(readyTimeout, wait.ForLog("Ready to accept connections")),
	)
}

// runContainer starts a container and returns its address on the host.
func runContainer(ctx context.Context, image, port string, address func(host, port string) string,
	options ...testcontainers.ContainerCustomizer,
) (_ backend, err error) {
	// If there is no container engine, the library panics in some cases.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("docker: %v", r)
		}
	}()
	options = append(options, testcontainers.WithExposedPorts(port))
	c, err := testcontainers.Run(ctx, image, options...)
	if err != nil {
		return backend{}, errors.Join(fmt.Errorf("docker: start %s: %w", image, err), testcontainers.TerminateContainer(c))
	}
	host, err := c.Host(ctx)
	if err != nil {
		return backend{}, errors.Join(fmt.Errorf("docker: host of %s: %w", image, err), testcontainers.TerminateContainer(c))
	}
	mapped, err := c.MappedPort(ctx, port)
	if err != nil {
		return backend{}, errors.Join(fmt.Errorf("docker: port of %s: %w", image, err), testcontainers.TerminateContainer(c))
	}
	return backend{
		url:    address(host, mapped.Port()),
		origin: fromContainer,
		stop:   func(ctx context.Context) error { return c.Terminate(ctx) },
	}, nil
}

// leakOptions makes goleak ignore the library's connection to its reaper, which stays open until the process ends.
// The reaper is a container that removes the containers of a killed process.
func (dockerContainers) leakOptions() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/testcontainers/testcontainers-go.(*Reaper).connect.func1"),
	}
}
