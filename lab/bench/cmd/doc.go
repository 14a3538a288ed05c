// Command cmd is the benchmark program: `make bench` and the other benchmark targets build it as bin/quotasvc-bench.
// It measures a quotasvc binary, which it starts as a separate process. The product's binary does not contain this
// program.
package main
