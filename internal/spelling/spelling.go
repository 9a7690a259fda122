// Package spelling finds the name that somebody meant by a wrong one. It decides
// how far apart two names are; which names are known, and what is said of a near
// one, is its callers' business: config, incident, audit, retrypath and cluster.
package spelling

// Longest is the length of a name, in bytes, for which a nearest one is looked for.
const Longest = 64

// Nearest is the known name closest to a wrong one, "" when none is close. Of
// equally close ones it is the first.
func Nearest(wrong string, known []string) string {
	best, least := "", Far(wrong)
	for _, k := range known {
		if d := Distance(wrong, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// Far is the distance from which on a name is another word.
func Far(wrong string) int { return 2 + len(wrong)/3 }

// Distance is the number of edits between two names, an exchange of neighbours
// counting as one; of names that are longer than Longest, the length of the longer
// one.
func Distance(a, b string) int {
	if max(len(a), len(b)) > Longest {
		return max(len(a), len(b))
	}
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
