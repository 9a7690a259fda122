package config

// longestTypo is the length of a name for which a nearest one is looked for.
const longestTypo = 64

// nearest is the known name closest to a wrong one, "" when none is close. Of
// equally close ones it is the first.
func nearest(wrong string, known []string) string {
	if len(wrong) > longestTypo {
		return ""
	}
	best, least := "", 2+len(wrong)/3 // more edits than this is another word
	for _, k := range known {
		if len(k) > longestTypo {
			continue
		}
		if d := distance(wrong, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is the number of edits between two names, an exchange of
// neighbours counting as one.
func distance(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
