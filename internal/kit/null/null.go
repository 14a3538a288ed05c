package null

// IfZero returns a pointer to v. It returns nil, which SQL and JSON write as null, if v is the zero value of its type.
func IfZero[V comparable](v V) *V {
	var zero V
	if v == zero {
		return nil
	}
	return &v
}
