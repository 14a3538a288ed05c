// Package chart draws the charts of the benchmark and drill programs as SVG files.
//
// # Terms
//
// A page is one file: a title, and panels from top to bottom with aligned axes. A panel contains curves over an axis,
// or bars. An ink is a color with one meaning, for example the service, a baseline, or a missed target. The meaning
// is the same on every page.
//
// # Invariants
//
//  1. No text of a page is cut off. Axes have ticks where values are, and names and numbers get the space that they
//     need.
//  2. Each page has a title and a description for readers who do not see it.
//  3. Each page can be read on a light and on a dark background.
//
// # Clock, concurrency, failure
//
// The package uses no clock. A page and its panels belong to one goroutine. Save fails if the file cannot be written.
package chart
