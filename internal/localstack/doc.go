// Package localstack runs a private PostgreSQL and a private Redis from the
// binaries installed on this machine. `quotasvc dev` and the test harness use
// it; `quotasvc serve` never does.
//
// # Terms
//
// A server is one child process with a directory of its own. A directory
// belongs to one server at a time: whoever holds the flock on its lock file.
// The run user is the user PostgreSQL runs as: the caller, or, because
// PostgreSQL refuses root, an unprivileged user when the caller is root.
//
// # Invariants
//
//  1. A server listens on 127.0.0.1 only and asks for a password, so another
//     user of the machine cannot reach it.
//  2. A server never outlives the process that started it. On Linux the kernel
//     sees to it even when that process is killed (parent-death signal);
//     elsewhere the next start finds the leftover by its pid file and stops it.
//  3. A terminal's Ctrl-C does not reach a server: each one has a process group
//     of its own and is stopped in order by its owner.
//  4. "Ready" means that the child we started answered a query: a foreign
//     server on the same port is never mistaken for ours.
//  5. Nothing waits without a deadline.
//
// # Where the data lies
//
// In Dir, if the run user can get there. A checkout below a directory that
// only root may enter (/root, a mktemp -d) is out of reach for the run user;
// then the data goes to StandInRoot, under a name derived from Dir's absolute
// path so that the next start finds it again, and a note in Dir + ".path" says
// where it is.
//
// # Clock, concurrency, failure
//
// Wall time is used for deadlines only. The methods of one server may be called
// from any goroutine; they exclude one another. Each running server has one
// goroutine, locked to its operating-system thread, that ends when the child
// has exited. A failed start leaves no child behind, and its error quotes the
// end of the server's own log.
//
// The package works on Linux and other Unix systems.
package localstack
