package route

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The index finds the same patterns as Match, applied to every pattern.
func TestIndex_FindsWhatMatchFinds(t *testing.T) {
	t.Parallel()
	text := rapid.StringOfN(rapid.SampledFrom([]rune("ab//**")), 1, 10, -1)
	route := rapid.StringOfN(rapid.SampledFrom([]rune("ab/")), 0, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		var x Index[Pattern]
		var all []Pattern
		if rapid.Bool().Draw(t, "any") {
			all = append(all, Pattern{})
		}
		for _, text := range rapid.SliceOfN(text, 0, 30).Draw(t, "patterns") {
			if p, err := Parse(text); err == nil {
				all = append(all, p)
			}
		}
		for _, p := range all {
			x.Add(p, p)
		}
		same := func(x *Index[Pattern], all []Pattern, r string) {
			want := slices.DeleteFunc(slices.Clone(all), func(p Pattern) bool { return !p.Match(r) })
			got := x.Append(nil, r)
			order := func(a, b Pattern) int {
				if by := a.Compare(b); by != 0 {
					return by
				}
				return strings.Compare(a.String(), b.String())
			}
			slices.SortFunc(want, order)
			slices.SortFunc(got, order)
			require.True(t, slices.Equal(got, want), "%q is matched by: %v, want %v", r, got, want)
		}
		// This fork removes some patterns and adds others. The first index does not change.
		fork, left := x.Fork(), slices.Clone(all)
		for i := range rapid.IntRange(0, 10).Draw(t, "changes") {
			p, err := Parse(text.Draw(t, fmt.Sprint("added ", i)))
			switch {
			case len(left) > 0 && rapid.Bool().Draw(t, fmt.Sprint("removed ", i)):
				gone := rapid.SampledFrom(left).Draw(t, fmt.Sprint("gone ", i))
				fork.Remove(gone, gone)
				left = slices.DeleteFunc(left, func(p Pattern) bool { return p == gone })
			case err == nil:
				fork.Add(p, p)
				left = append(left, p)
			}
		}
		for i := range 20 {
			r := route.Draw(t, fmt.Sprint("route ", i))
			same(&x, all, r)
			same(&fork, left, r)
		}
	})
}

func TestIndex_Append_AllocatesNothing(t *testing.T) {
	var x Index[int]
	for i := range 1000 {
		for _, text := range []string{"/v1/*/w%d", "/v1/w%d/**", "/v1/*/w%d/x*y/**", "/v1/w%d"} {
			p, err := Parse(fmt.Sprintf(text, i))
			require.NoError(t, err)
			x.Add(p, i)
		}
	}
	list := make([]int, 0, 8)
	require.Zero(t, testing.AllocsPerRun(100, func() { list = x.Append(list[:0], "/v1/w7/w500/xay/z") }))
	require.ElementsMatch(t, []int{7, 500}, list)
}

// BenchmarkIndex searches an index of many patterns that differ only after their first star.
func BenchmarkIndex(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10_000} {
		b.Run(fmt.Sprint("patterns=", n), func(b *testing.B) {
			var x Index[int]
			for i := range n {
				p, err := Parse(fmt.Sprintf("/v1/*/w%d", i))
				require.NoError(b, err)
				x.Add(p, i)
			}
			list := make([]int, 0, 4)
			b.ReportAllocs()
			for b.Loop() {
				if list = x.Append(list[:0], "/v1/shop/w7"); len(list) != 1 {
					b.Fatal(list)
				}
			}
		})
	}
}
