// Package localstack runs a private PostgreSQL and a private Redis from the binaries installed on this machine.
// `quotasvc dev` and the test harness use it; `quotasvc serve` never does.
//
// # Terms
//
// A server is one child process with its own directory. A directory belongs to one server at a time: the holder of
// the flock on its lock file. The run user is the user that PostgreSQL runs as: the caller, or an unprivileged user
// if the caller is root, because PostgreSQL refuses root.
//
// # Invariants
//
//  1. A server listens on 127.0.0.1 only and requires a password, so another user of the machine cannot use it.
//  2. A server never outlives the process that started it. On Linux the kernel ends the server even when that process
//     is killed (parent-death signal). On other systems the next start finds the server by its pid file and stops it.
//  3. Ctrl-C at a terminal does not reach a server: each server has its own process group, and its owner stops it in
//     order.
//  4. "Ready" means that the child process answered a query. If another server answers on the same port, the package
//     detects it.
//  5. Nothing waits without a deadline.
//
// # Where the data lies
//
// The data lies in Dir if the run user can enter Dir. The run user cannot enter a checkout below a directory that is
// open to root only (/root, a mktemp -d). Then the data goes to a stand-in: a directory in StandInRoot whose name is
// derived from Dir's absolute path, so that the next start finds it. The file Dir + ".path" contains the stand-in's
// path.
//
// # Clock, concurrency, failure
//
// Wall time is used for deadlines only. The methods of one server may be called from any goroutine; only one method
// runs at a time. Each running server has one goroutine, locked to its operating-system thread. The goroutine ends
// when the child exits. A failed start leaves no child behind. Its error quotes the end of the server's log.
//
// The package works on Linux and other Unix systems.
package localstack
