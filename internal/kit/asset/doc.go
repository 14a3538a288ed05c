// Package asset serves scripts, styles and images that are embedded in this program.
//
// # Terms
//
//   - asset: an embedded file. Its path contains a part of its hash, so browsers may cache it for an unlimited time.
//
// # Invariants
//
// The bytes under a path never change. Assets that may contain scripts, such as SVG images, are sent with a policy
// that forbids scripts.
//
// # Clock, concurrency, failure
//
// A Set must not be changed after serving begins. The answer for an unknown path is 404.
package asset
