// Package asset serves scripts, styles and pictures that are in this program.
//
// # Terms
//
//   - asset: a file. Its path has a part of its hash, so a browser keeps it until it changes.
//
// # Invariants
//
// A path has always the same bytes. Assets that could run by themselves, such as an SVG picture, do so in a sandbox without scripts.
//
// # Clock, concurrency, failure
//
// A Set does not change once it is served. An unknown path is 404.
package asset
