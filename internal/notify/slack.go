package notify

import (
	"fmt"
	"strings"

	"github.com/hourthree/hourthree/internal/detect"
)

// Slack's bounds of blocks (docs.slack.dev, reference of Block Kit), in characters;
// counted here in bytes, of which there are no fewer.
const (
	maxHeader  = 150
	maxSection = 3000
	maxField   = 2000
	// maxFallback is Slack's advice for the text beside the blocks.
	maxFallback = 4000
)

type slackMessage struct {
	Text   string       `json:"text"`
	Blocks []slackBlock `json:"blocks"`
}

type slackBlock struct {
	Type     string      `json:"type"`
	Text     *slackText  `json:"text,omitempty"`
	Fields   []slackText `json:"fields,omitempty"`
	Elements []slackText `json:"elements,omitempty"`
}

type slackText struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Emoji *bool  `json:"emoji,omitempty"`
}

// marks begin a message by what it is worth reading for.
var slackMarks = map[Severity]string{Critical: "🔴", Warning: "🟡", Info: "🟢"}

func slackOf(m *Message, a about) slackMessage {
	mark := slackMarks[m.Severity]
	detail := escapeSlack(m.Text)
	if also := alsoSlack(m); also != "" {
		detail = strings.TrimSpace(detail + "\n" + also)
	}
	about := escapeSlack(a.Router) + " · " + m.At.UTC().Format("2006-01-02 15:04:05 MST")
	if a.Dashboard != "" {
		about += " · <" + linkSlack(a.Dashboard) + "|dashboard>"
	}
	plain := false
	out := slackMessage{Blocks: []slackBlock{{Type: "header", Text: &slackText{"plain_text", cut(mark+" "+escapeSlack(m.headline()), maxHeader), &plain}}}}
	section := func(text string) {
		out.Blocks = append(out.Blocks, slackBlock{Type: "section", Text: mrkdwn(cutSlack(text, maxSection))})
	}
	section("*" + escapeSlack(m.Title) + "*")
	if detail != "" {
		section(detail)
	}
	if f := fieldsSlack(m); len(f) > 0 {
		out.Blocks = append(out.Blocks, slackBlock{Type: "section", Fields: f})
	}
	out.Blocks = append(out.Blocks, slackBlock{Type: "context", Elements: []slackText{*mrkdwn(cutSlack(about, maxField))}})
	out.Text = cutSlack(mark+" *"+escapeSlack(m.Title)+"*\n"+detail+"\n"+about, maxFallback)
	return out
}

// headline is the title without a name of somebody else's: headers show what is in
// them as it is.
func (n *Notice) headline() string {
	switch {
	case n.Outage != nil:
		return "Outage " + n.Outage.ID + ": " + n.Outage.State
	case n.Kind == OfTest:
		return "Test"
	}
	return capital(string(n.Kind)) + ": " + n.Event
}

func mrkdwn(text string) *slackText { return &slackText{Type: "mrkdwn", Text: text} }

func fieldsSlack(m *Message) (fields []slackText) {
	add := func(name, value string) {
		if value != "" {
			fields = append(fields, *mrkdwn(cutSlack("*"+name+"*\n"+escapeSlack(value), maxField)))
		}
	}
	if o := m.Outage; o != nil {
		add("State", o.State)
		add("Since", o.Onset.UTC().Format("2006-01-02 15:04:05 MST"))
		if o.Source != nil {
			add("Suspect", fmt.Sprintf("%s (score %.2f)", o.Source, o.Score))
		}
		concerns := detect.Names(o.Scope)
		if o.More > 0 {
			concerns += fmt.Sprintf(" and %d more", o.More)
		}
		add("Concerns", concerns)
	}
	add("Who", m.Who)
	return fields
}

// alsoSlack lists what a message covers.
func alsoSlack(m *Message) string {
	var b strings.Builder
	if m.Untold > 0 {
		fmt.Fprintf(&b, "• %d more before\n", m.Untold)
	}
	for _, n := range m.Also {
		b.WriteString("• " + n.At.UTC().Format("15:04:05") + " " + cutSlack(escapeSlack(n.Title), 200) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// slackEscapes take from a text of others what would be a mention, a link or code in
// it: Slack's three characters, and what Mattermost, which takes the same messages,
// reads. A word joiner shows as nothing.
var slackEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "@\u2060", "](", "]\u2060(", "`", "'")

func escapeSlack(s string) string { return slackEscapes.Replace(s) }

// cutSlack bounds an escaped text without cutting an escape in two.
func cutSlack(s string, most int) string {
	if len(s) <= most {
		return s
	}
	s = strings.TrimSuffix(cut(s, most), "…")
	if i := strings.LastIndexByte(s, '&'); i >= 0 && !strings.Contains(s[i:], ";") {
		s = s[:i]
	}
	return s + "…"
}

// linkSlack is an address as it may stand between Slack's angle brackets.
var linkSlack = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C").Replace
