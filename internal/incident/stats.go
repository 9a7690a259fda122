package incident

import (
	"maps"
	"slices"
)

// Stats is what the library holds, in numbers.
type Stats struct {
	Records    int               `json:"records"`
	Claims     int               `json:"claims"`
	Sources    int               `json:"sources"`
	Publishers int               `json:"publishers"` // different ones
	Words      map[Facet][]Count `json:"words"`      // every word that a record has, the most frequent first
	Kinds      map[Kind]int      `json:"kinds"`      // claims of each kind
	Years      []Year            `json:"years"`      // oldest first
	Undated    int               `json:"undated"`    // records whose day the sources do not give
	WithDrills int               `json:"with_drills"`
	Detect     Median            `json:"detect"`
	Resolve    Median            `json:"resolve"`
}

// Year is how many records are of a year.
type Year struct {
	Year    string `json:"year"`
	Records int    `json:"records"`
}

// Median is that of the records whose sources give the time. Those are not a
// sample of anything: who writes a report decides what is in it.
type Median struct {
	Minutes float64 `json:"minutes"`
	Records int     `json:"records"` // that it rests on; 0 for none, and then it means nothing
}

// Stats counts.
func (l *Library) Stats() Stats {
	s := Stats{Records: len(l.records), Words: map[Facet][]Count{}, Kinds: map[Kind]int{}}
	publishers, years := map[string]bool{}, map[string]int{}
	var detect, resolve []int
	for _, r := range l.records {
		s.Claims, s.Sources = s.Claims+len(r.Claims), s.Sources+len(r.Sources)
		for _, c := range r.Claims {
			s.Kinds[c.Kind]++
		}
		for _, src := range r.Sources {
			publishers[publisher(src)] = true
		}
		if len(r.Date) >= 4 {
			years[r.Date[:4]]++
		} else {
			s.Undated++
		}
		if len(r.Drills) > 0 {
			s.WithDrills++
		}
		if r.TimeToDetect != nil {
			detect = append(detect, *r.TimeToDetect)
		}
		if r.TimeToResolve != nil {
			resolve = append(resolve, *r.TimeToResolve)
		}
	}
	for _, c := range count(l.records) {
		s.Words[c.Facet] = append(s.Words[c.Facet], c)
	}
	for _, y := range slices.Sorted(maps.Keys(years)) {
		s.Years = append(s.Years, Year{y, years[y]})
	}
	s.Publishers, s.Detect, s.Resolve = len(publishers), median(detect), median(resolve)
	return s
}

// median is the middle one, or between the two.
func median(list []int) Median {
	m := Median{Records: len(list)}
	if n := len(list); n > 0 {
		slices.Sort(list)
		m.Minutes = float64(list[(n-1)/2]+list[n/2]) / 2
	}
	return m
}
