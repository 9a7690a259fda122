package topology

import (
	"strconv"
	"strings"

	"github.com/hourthree/hourthree/internal/layers"
)

// RetryClasses are the classes of failure that a list of retry conditions
// repeats after, each once, in the order of layers.Classes. Conditions are
// Envoy's words, HTTP status codes, or ranges of them.
func RetryClasses(words []string) []layers.Class {
	has := map[layers.Class]bool{}
	for _, w := range words {
		for _, c := range classesOf(strings.ToLower(w)) {
			has[c] = true
		}
	}
	var list []layers.Class
	for _, c := range layers.Classes() {
		if has[c] {
			list = append(list, c)
		}
	}
	return list
}

func classesOf(word string) []layers.Class {
	switch word {
	case "5xx":
		return []layers.Class{layers.Connect, layers.Reset, layers.Server}
	case "gateway-error", "internal":
		return []layers.Class{layers.Server}
	case "connect-failure", "connect", "error":
		return []layers.Class{layers.Connect}
	case "reset", "reset-before-request", "refused-stream", "timeout", "cancelled", "deadline-exceeded":
		return []layers.Class{layers.Reset}
	case "resource-exhausted", "envoy-ratelimited", "429":
		return []layers.Class{layers.Capacity}
	}
	from, to, isRange := strings.Cut(strings.TrimPrefix(word, "http_"), "-")
	low, err := strconv.Atoi(from)
	high := low
	if err == nil && isRange {
		high, err = strconv.Atoi(to)
	}
	var list []layers.Class
	if err == nil && low <= 429 && high >= 429 {
		list = append(list, layers.Capacity)
	}
	if err == nil && low <= 599 && high >= 500 {
		list = append(list, layers.Server)
	}
	return list
}
