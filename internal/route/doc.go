// Package route has what limits say about routes: patterns. A route is the path of a request, or the name that a caller gives it.
package route
