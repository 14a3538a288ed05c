package body

// Similar returns a text that suggests the correct word for a misspelled name, to be appended to a sentence. It
// returns "" if no word is similar.
func Similar(name string, words []string) string {
	best, closest := "", max(len(name)/3, 1)+1
	for _, w := range words {
		if n := distance(name, w); n < closest {
			best, closest = w, n
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// maxCompared bounds the length of names that are compared. All names of fields are shorter.
const maxCompared = 32

// distance returns the smallest number of changes that turn the name a into the name b. A change inserts, deletes or
// replaces a letter, or swaps it with the next letter.
func distance(a, b string) int {
	if len(a) > maxCompared || len(b) > maxCompared {
		return maxCompared
	}
	var rows [maxCompared + 1][maxCompared + 1]int
	for i := range len(a) + 1 {
		rows[i][0] = i
	}
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
