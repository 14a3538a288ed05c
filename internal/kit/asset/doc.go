// Package asset serves scripts, styles and pictures that are embedded in this program.
//
// # Terms
//
//   - asset: a file. Its path contains a part of its hash, so a browser can cache the file without a time limit.
//
// # Invariants
//
// A path always has the same bytes. Assets that may contain scripts, such as SVG pictures, are sent with a policy
// that forbids scripts.
//
// # Clock, concurrency, failure
//
// A Set does not change after serving begins. An unknown path is answered with 404.
package asset
