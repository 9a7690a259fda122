package admit

const (
	// ledgerShare of the Go memory limit goes to the ledger; the rest is for
	// connections, the runtime and what the collector has not freed yet.
	ledgerShare = 0.6
	// heapShare of the container's limit is the Go memory limit when none is
	// set.
	heapShare = 0.9
	// unknownMemory is assumed when neither limit is known.
	unknownMemory = 1 << 30
	// noLimit: systems report "no limit" as numbers near the largest one.
	noLimit = 1 << 60
)

// MemoryLimit is the size of the ledger, in bytes, for `memory: {limit: auto}`:
// 0.6 x GOMEMLIMIT, which is taken to be 0.9 x the container's limit when it
// is not set or is above the container's.
//
// goMemLimit is debug.SetMemoryLimit(-1), containerLimit the cgroup's limit
// or, without one, the machine's memory. Of either, 0 or less, or 2^60 and
// more, means not known; with neither known a machine of 1 GiB is assumed.
func MemoryLimit(goMemLimit, containerLimit int64) int64 {
	if containerLimit <= 0 || containerLimit >= noLimit {
		containerLimit = 0
	}
	if goMemLimit > 0 && goMemLimit < noLimit && (containerLimit == 0 || goMemLimit <= containerLimit) {
		return int64(ledgerShare * float64(goMemLimit))
	}
	if containerLimit == 0 {
		containerLimit = unknownMemory
	}
	return int64(ledgerShare * heapShare * float64(containerLimit))
}
