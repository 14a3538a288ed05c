// Package containers tests the container path: the Dockerfile, docker-compose.yml, and the servers that tests get from
// an engine. The package contains only tests. `make test-containers` runs them; elsewhere they are skipped.
//
// # Terms
//
// A base image is an image that a registry has and that the path uses: Go, a base without a shell, PostgreSQL, Redis. A
// stand-in is a base image that the test makes on the spot from files of this machine, so that no registry is needed.
// The clone is a copy of the repository, as a newcomer has it, with one file more: an override that names the stand-ins
// and free ports.
//
// # Invariants
//
//  1. The Dockerfile, docker-compose.yml and the lines of README.md are used as they are.
//  2. No name of an image, a container, a volume or a network of the test belongs to anybody else: an engine may have
//     other work.
//  3. After the tests, the engine has none of their containers, volumes and networks.
//
// # Clock, concurrency, failure
//
// The tests run one after the other, because they share one machine and one engine. Each wait has a time limit. If a
// test fails, its output contains what the containers have logged.
package containers
