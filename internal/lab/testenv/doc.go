// Package testenv gives tests a real PostgreSQL and a real Redis. Only _test.go files import it.
//
// # Where the servers come from
//
// For each server separately, the package tries these sources in this order:
//
//  1. TEST_DATABASE_URL, TEST_REDIS_URL: servers that already run. The role in the URL must be a superuser, or
//     allowed to create databases and roles. A Redis database with keys of other programs is not used.
//  2. Local binaries: one private server per test process, started when a test first needs it and stopped by Main
//     (package localstack).
//  3. Containers, through Docker: postgres:17 and redis:7.
//
// If there is no server, the test fails and names the packages to install. No test is skipped. A private server,
// which a test may kill or freeze, is always started from local binaries. With QUOTASVC_TEST_WITHOUT=servers local
// binaries are not looked for, and tests with private servers are skipped.
//
// # Roles
//
// Every database has the roles of deploy/postgres/roles.sql. Postgres returns the URL of the server's superuser, with
// which tests write rows by hand. AsService returns the same URL with the service's role. With that URL the code
// under test has the same rights as in production.
//
// # Isolation
//
// Postgres gives each test its own database, cloned from a template with all migrations applied. The template's name
// is a hash of the migrations and the month, because migrations create the current month's partitions. The template
// is created under an advisory lock, so concurrent test binaries can share one server.
//
// Redis gives each test its own empty logical database. A key in database 0 (a lease) reserves each database in use,
// so concurrent test binaries can share one server. A test waits if all databases are in use. Scripts, functions,
// configuration and channels belong to the server, so tests share them. A test that changes one of them, or that
// makes the server fail, uses RedisPrivate. RedisClusterPrivate starts a cluster of three masters with one replica
// each. RedisSentinelsPrivate starts a master and a replica that three sentinels watch.
//
// # Clock, concurrency, failure
//
// All functions may be called from parallel tests. Wall time is used for deadlines and for the age of databases and
// directories that killed runs have left. A database is dropped when its test ends, even if the test failed. A run
// drops the databases of killed runs that are at least two hours old.
package testenv
