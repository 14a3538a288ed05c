// Command cmd is the program of `make drill`, which builds it as bin/quotasvc-drill. It starts a quotasvc binary
// several times, breaks it and its servers, and compares the answers that clients got with the journal.
package main
