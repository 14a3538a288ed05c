// Package localstack runs a private PostgreSQL and a private Redis from the binaries installed on this machine.
// `quotasvc dev` and the test harness use it; `quotasvc serve` never does.
//
// # Terms
//
// A server is one child process with its own directory. A directory belongs to one server at a time: the server that
// holds the lock (flock) on the directory's lock file. The run user is the user that runs PostgreSQL. It is the
// caller, or an unprivileged user if the caller is root, because PostgreSQL does not run as root.
//
// # Invariants
//
//  1. A server listens on 127.0.0.1 only and requires a password, so another user of the machine cannot use it.
//  2. A server ends when the process that started it ends. On Linux the kernel ends the server even when that process
//     is killed (parent-death signal). On other systems the server may remain after a kill. Then the next start finds
//     it by its pid file and stops it.
//  3. Ctrl-C at a terminal does not reach a server: each server has its own process group, and its owner stops it in
//     order.
//  4. A server is ready when its child process has answered a query. If another server answers on the same port, the
//     package detects it.
//  5. Each wait has a deadline.
//
// # Where the data lies
//
// The data is in Dir if the run user can enter Dir. If only root can enter a parent of Dir, for example /root or a
// directory of mktemp -d, the run user cannot enter Dir. Then the data is in a stand-in, a directory in StandInRoot.
// Its name is derived from Dir's absolute path, so the next start finds it. The file Dir + ".path" contains the
// stand-in's path.
//
// # Clock, concurrency, failure
//
// Wall time is used for deadlines only. The methods of one server may be called from any goroutine; only one method
// runs at a time. Each running server has one goroutine, which is locked to an operating-system thread and ends when
// the child exits. A failed start leaves no child process behind. Its error contains the end of the server's log.
//
// The package works on Linux and other Unix systems.
package localstack
