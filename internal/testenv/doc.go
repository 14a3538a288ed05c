// Package testenv gives tests a real PostgreSQL and a real Redis. Only _test.go
// files import it.
//
// # Where the servers come from
//
// In this order, decided per server:
//
//  1. TEST_DATABASE_URL, TEST_REDIS_URL: servers that run already. The role of the
//     URL must be allowed to create databases (and is the one tests connect as).
//     Redis databases that hold somebody else's keys are left alone.
//  2. Local binaries: one private server per test process, started when the first
//     test asks and stopped by Main (package localstack).
//  3. Containers, through Docker: postgres:17 and redis:7.
//
// If none can be had the test fails and says what to install. Nothing is skipped.
// Private servers, which a test kills and freezes, always are local binaries.
//
// # Isolation
//
// Postgres gives each test a database of its own, cloned from a template that has
// all migrations applied. The template is named by a hash of the migrations and
// the month (they make the current month's partitions), and is made under an
// advisory lock, so test binaries that run at once can share one server.
//
// Redis gives each test a logical database of its own, empty at first. It is
// leased in database 0, so test binaries can share one server here too; a test
// waits when all are taken. What Redis keeps per server and not per database is
// shared all the same: scripts, functions, configuration, channels. A test of
// those, or of failures, takes RedisPrivate; RedisClusterPrivate is a cluster of
// three masters with a replica each, RedisSentinelsPrivate a master and a replica
// that three sentinels watch.
//
// # Clock, concurrency, failure
//
// Everything may be called from parallel tests. Wall time is used for deadlines
// and for the age of leftovers. Databases are dropped when their test ends, also
// when it failed; those of killed runs are dropped by a run two hours later.
package testenv
