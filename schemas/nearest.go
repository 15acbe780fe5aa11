package schemas

import "slices"

// Nearest returns the known name that a mistyped word most likely means, or "" if no name is similar. Two
// letters may be wrong, missing, added or swapped, but only one in a word of fewer than six letters.
func Nearest(word string, known []string) string {
	best, least := "", 3
	if len(word) < 6 {
		least = 2
	}
	for _, name := range slices.Sorted(slices.Values(known)) {
		if d := distance(word, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance returns the number of edits that turn a into b. An edit adds, removes or replaces a byte, or
// swaps two neighbours.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
