package queue

import "strconv"

// Callers that nobody named share Shards flows, and each may use the Hand of
// them that its hash deals. A caller with too much fills its own hand; that all
// six of another one's are among them has a chance of 1.8e-10 for one such
// caller, and of 2.2 % for sixteen.
const (
	Shards = 128
	Hand   = 6
)

var shards = func() (names [Shards]string) {
	for i := range names {
		names[i] = "shard " + strconv.Itoa(i)
	}
	return names
}()

// Deal fills hand with distinct numbers below of, each set as likely as another
// when hash is even. len(hand) may not exceed of, and the number of hands should
// be far below 2^64.
func Deal(hash uint64, hand []int, of int) {
	for i := range hand {
		left := uint64(of - i)
		hand[i] = int(hash % left)
		hash /= left
	}
	// hand[i] counts among the cards that are left; turn that into the card.
	for i := len(hand) - 1; i >= 0; i-- {
		for j := i - 1; j >= 0; j-- {
			if hand[i] >= hand[j] {
				hand[i]++
			}
		}
	}
}

// Shard is the flow of a caller that nobody named: of its hand the one in which
// fewest of the class wait.
func (q *Queue) Shard(p Priority, hash uint64) string {
	var hand [Hand]int
	Deal(hash, hand[:], Shards)
	best, least := "", 0
	for _, card := range hand {
		n := 0
		if f := q.classes[p].flows[shards[card]]; f != nil {
			n = f.n
		}
		if best == "" || n < least {
			best, least = shards[card], n
		}
	}
	return best
}
