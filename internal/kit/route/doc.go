// Package route has what limits say about routes: patterns, forms of spelling, and the route of a URI. A route is the path of a request, or the name that a caller gives it.
package route
