// Package look has the operator's settings for the look of pages: colours, logo, name, and the sites that may show
// the pages in a frame.
//
// # Terms
//
//   - theme: colours by name. Names with -dark are for browsers in dark mode.
//   - ancestor: an origin whose pages may show our pages in a frame.
//
// # Invariants
//
//  1. No text of a setting is copied into a style, a header or a page. Colours are parsed and formatted again.
//     Origins have a form without blanks, semicolons and quotes. A logo is sent as a separate file, in a sandbox.
//  2. Texts and links in the colours of a theme have a contrast of at least 4.5 to 1 with their background, as WCAG 2
//     (AA) requires. Other themes are refused.
//
// # Clock, concurrency, failure
//
// The functions are pure, except that New reads the file of the logo. A Look does not change.
package look
