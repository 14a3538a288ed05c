// Package look is what an operator decides about pages: their colours, logo and name, and who may show them in a frame.
//
// # Terms
//
//   - theme: colours by name. Those with -dark are for browsers in dark mode.
//   - ancestor: an origin whose pages may show ours in a frame.
//
// # Invariants
//
//  1. Nothing of a setting is copied into a style, a header or a page: colours are read and written again, origins have a form without blanks,
//     semicolons and quotes, and a logo is sent by itself, in a sandbox.
//  2. Texts and links in the colours of a theme have a contrast of at least 4.5 to 1 with what is behind them, as WCAG 2 (AA) asks. A theme that
//     has not is refused.
//
// # Clock, concurrency, failure
//
// Pure, but for the logo's file, which is read once. A Look does not change.
package look
