package manifest

import (
	"slices"
	"strconv"
)

// place is where a value and everything in it stand in a file. It takes the
// role of the parser's nodes, which weigh ten times as much.
type place struct {
	line, col uint32
	in        *inside // nil for a plain value
}

// inside are the places of the values in a mapping, a list or a long text.
type inside struct {
	keys []string // of a mapping; at has the place of each key, in with its value's
	at   []place
	text *textPlace
}

// textPlace is where the lines of a text value stand.
type textPlace struct {
	line, indent uint32 // of its first line: the characters before it are indent
	literal      bool   // each line of the text is a line of the file
}

// child is the place of what a step of a path names.
func (p place) child(step string) (place, bool) {
	if p.in == nil {
		return place{}, false
	}
	i := -1
	if p.in.keys != nil {
		i = slices.Index(p.in.keys, step)
	} else if n, err := strconv.Atoi(step); err == nil {
		i = n
	}
	if i < 0 || i >= len(p.in.at) {
		return place{}, false
	}
	return p.in.at[i], true
}

// add notes the place of a new key.
func (in *inside) add(key string, p place) {
	in.keys, in.at = append(in.keys, key), append(in.at, p)
}

// move notes that a known key counts where it stands again.
func (in *inside) move(key string, p place) {
	in.at[slices.Index(in.keys, key)] = p
}
