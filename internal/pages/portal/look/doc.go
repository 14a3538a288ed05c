// Package look has the operator's settings for the appearance of the pages: colours, logo, name, and the sites that
// may show the pages in a frame.
//
// # Terms
//
//   - theme: a list of colours with names. The names that end with -dark are for browsers in dark mode.
//   - ancestor: an origin whose pages may show our pages in a frame.
//
// # Invariants
//
//  1. The text of a setting is not copied into a style, a header or a page. Colours are parsed and formatted again.
//     Origins must have a form without spaces, semicolons and quotes. A logo is sent as a separate file, and its
//     Content-Security-Policy contains `sandbox`.
//  2. Texts and links have a contrast of at least 4.5 to 1 with their background, as WCAG 2 (AA) requires. A theme
//     whose colours have less contrast is refused.
//
// # Clock, concurrency, failure
//
// The functions are pure, except that New reads the file of the logo. A Look does not change.
package look
