package incident

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// How many records a page has.
const (
	DefaultPage = 20
	MaxPage     = 100
)

// Page is the part of records, which are in the library's order, that follows
// a cursor: at most limit of them, 0 for DefaultPage. next is the cursor of
// the page after it, nothing at the end. A cursor names a place in the order
// and not a number of records, so it stays good while records come and go. The
// error is a BadValue.
func Page(records []*Record, cursor string, limit int) (page []*Record, next string, err error) {
	if limit < 0 || limit > MaxPage {
		return nil, "", &BadValue{"limit", strconv.Itoa(limit), "from 1 to " + strconv.Itoa(MaxPage)}
	}
	if limit == 0 {
		limit = DefaultPage
	}
	if cursor != "" {
		after, ok := afterwards(cursor)
		if !ok {
			return nil, "", &BadValue{"cursor", cursor, "use next of the page before, or none for the first page"}
		}
		i, _ := slices.BinarySearchFunc(records, after, func(r, a *Record) int {
			if order(r, a) <= 0 {
				return -1
			}
			return 1
		})
		records = records[i:]
	}
	if len(records) <= limit {
		return records, "", nil
	}
	last := records[limit-1]
	return records[:limit:limit], base64.RawURLEncoding.EncodeToString([]byte(last.Date + " " + last.ID)), nil
}

// afterwards is the record, as far as the order needs it, that a cursor comes after.
func afterwards(cursor string) (*Record, bool) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	day, id, ok := strings.Cut(string(text), " ")
	return &Record{Date: day, ID: id}, err == nil && ok && goodID.MatchString(id) && (day == "" || date(day))
}
