package mcpserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/library"
	"github.com/hourthree/hourthree/internal/search"
)

// refusal is an error that is said to the client as it stands.
type refusal struct{ text string }

func (e *refusal) Error() string { return e.text }

func refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// told is what a client is told of an error of the library: one of the client's
// own with its remedy.
func told(err error) error {
	var (
		query   *search.BadQuery
		value   *incident.BadValue
		word    *incident.UnknownWord
		missing *library.NotFound
		noWord  *library.NoWord
	)
	switch {
	case errors.As(err, &query):
		return refuse("%s: %s", query.Field, query.Message)
	case errors.As(err, &word) && len(word.Near) == 0:
		return refuse("%s; call vocab for the words that there are", word.Error())
	case errors.As(err, &value), errors.As(err, &word):
		return &refusal{err.Error()}
	case errors.As(err, &missing):
		return refuse("there is no incident %q%s", cut(missing.ID, maxWord), didYouMean(missing.Near, "search_incidents and list_incidents give the ids"))
	case errors.As(err, &noWord):
		return refuse("%q is not in the vocabulary%s", cut(noWord.Word, maxWord), didYouMean(noWord.Near, "call vocab without a word for all that there are"))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return refuse("the question was taken back before its answer was found")
	}
	return err
}

func didYouMean(near []string, otherwise string) string {
	if len(near) == 0 {
		return "; " + otherwise
	}
	text := "; did you mean "
	for i, n := range near {
		if i > 0 {
			text += " or "
		}
		text += n
	}
	return text + "?"
}
