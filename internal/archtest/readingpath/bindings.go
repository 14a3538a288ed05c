package main

import "go/types"

// bindings are the types that a generic function's type parameters stand for in one call.
type bindings map[*types.TypeParam]types.Type

// bind returns the bindings of a call of f with these type arguments, which may be type parameters of the caller.
func bind(f *types.Func, arguments *types.TypeList, caller bindings) bindings {
	parameters := f.Signature().TypeParams()
	if parameters.Len() == 0 || arguments.Len() != parameters.Len() {
		return nil
	}
	b := bindings{}
	for i := range parameters.Len() {
		argument := arguments.At(i)
		if p, ok := argument.(*types.TypeParam); ok && caller[p] != nil {
			argument = caller[p]
		}
		b[parameters.At(i)] = argument
	}
	return b
}

// match reports whether t can be the type pattern. A type parameter of pattern that is not bound stands for any type.
func (b bindings) match(pattern, t types.Type) bool {
	switch p := pattern.(type) {
	case *types.TypeParam:
		return b[p] == nil || types.Identical(b[p], t)
	case *types.Pointer:
		u, ok := t.(*types.Pointer)
		return ok && b.match(p.Elem(), u.Elem())
	case *types.Slice:
		u, ok := t.(*types.Slice)
		return ok && b.match(p.Elem(), u.Elem())
	case *types.Named:
		u, ok := t.(*types.Named)
		if !ok || p.Origin() != u.Origin() {
			return false
		}
		for i := range p.TypeArgs().Len() {
			if !b.match(p.TypeArgs().At(i), u.TypeArgs().At(i)) {
				return false
			}
		}
		return true
	case *types.Signature:
		u, ok := t.(*types.Signature)
		return ok && b.matchAll(p.Params(), u.Params()) && b.matchAll(p.Results(), u.Results())
	}
	return types.Identical(pattern, t)
}

func (b bindings) matchAll(pattern, t *types.Tuple) bool {
	if pattern.Len() != t.Len() {
		return false
	}
	for i := range pattern.Len() {
		if !b.match(pattern.At(i).Type(), t.At(i).Type()) {
			return false
		}
	}
	return true
}
