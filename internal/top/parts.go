package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

func sections(p *Picture, width int) []section {
	list := []section{outages(p, width), targets(p, width), workloads(p, width)}
	if len(p.SLOs) > 0 {
		list = append(list, slos(p, width))
	}
	if p.Actions != nil {
		list = append(list, actions(p, width))
	}
	if p.Rollout != nil {
		list = append(list, rolling(p, width))
	}
	return list
}

func outages(p *Picture, width int) section {
	s := section{part: Outages, title: "OUTAGES"}
	for _, o := range p.open() {
		head := fmt.Sprintf("  %s  %s  since %s (%s)", o.ID, o.State, o.Onset.UTC().Format("15:04:05"), ago(p.State.At.Sub(o.Onset)))
		if o.Waves > 1 {
			head += fmt.Sprintf("  wave %d", o.Waves)
		}
		var names []string
		for _, c := range o.Scope {
			names = append(names, c.Kind+" "+c.Name)
		}
		s.rows = append(s.rows, row(clip(head+"  "+strings.Join(names, ", "), width), looks(o.State)))
		for _, x := range o.Suspects[:min(2, len(o.Suspects))] {
			s.rows = append(s.rows, row(clip(fmt.Sprintf("    %.2f  %s %s: %s", x.Score, x.Kind, x.Name, x.Text), width), plain))
		}
		if o.Words != "" && o.Words != o.State {
			s.rows = append(s.rows, row(clip("    "+o.Words, width), plain))
		}
		for _, x := range o.Changes[:min(1, len(o.Changes))] {
			s.rows = append(s.rows, row(clip(fmt.Sprintf("    %.2f  change %s: %s", x.Score, x.Name, x.Text), width), plain))
		}
	}
	if len(s.rows) == 0 {
		s.title += "  none open"
	}
	return s
}

// narrow is the width below which columns are left out.
const narrow = 60

// wide is what is left of a width for a name behind columns of a width.
func wide(width, columns, most int) int { return min(max(8, width-columns), most) }

func targets(p *Picture, width int) section {
	columns := 13 + 6 + 17 + 10 + 8
	if width < narrow {
		columns = 13 + 8
	}
	names := wide(width, columns, 60)
	s := section{part: Targets, title: "TARGETS", head: fit("", names) + fit(" breaker", 13)}
	if width >= narrow {
		s.head += right("ramp", 6) + fit("  cool-down", 17) + right("flight", 10)
	}
	s.head = clip(s.head+right("success", 8), width)
	list := slices.Clone(p.State.Targets)
	worst := map[string]int{}
	for _, t := range list {
		worst[t.Domain] = max(worst[t.Domain], trouble(t, p.State.At))
	}
	slices.SortStableFunc(list, func(a, b Target) int {
		return cmp.Or(
			cmp.Compare(worst[b.Domain], worst[a.Domain]), cmp.Compare(a.Domain, b.Domain),
			cmp.Compare(trouble(b, p.State.At), trouble(a, p.State.At)), cmp.Compare(a.Name, b.Name),
		)
	})
	domain := ""
	for i, t := range list {
		if t.Domain != domain || i == 0 {
			domain = t.Domain
			s.rows = append(s.rows, line{text: clip(cmp.Or(domain, "(no domain)"), width), look: faint, group: true})
		}
		ramp := "-"
		if t.Window.Share > 0 && t.Window.Share < 1 {
			ramp = fmt.Sprintf("%.0f %%", 100*t.Window.Share)
		}
		flight := strconv.Itoa(t.InFlight)
		if t.Limit > 0 {
			flight += "/" + strconv.Itoa(t.Limit)
		}
		word, look := breakerOf(t)
		text := fit("  "+t.Name, names) + fit(" "+word, 13)
		if width >= narrow {
			text += right(ramp, 6) + fit("  "+coolOf(t, p.State.At), 17) + right(flight, 10)
		}
		s.rows = append(s.rows, row(clip(text+right(successOf(t), 8), width), look))
	}
	return s
}

// successOf is the share of the last minute, nothing for a target without calls.
func successOf(t Target) string {
	if t.Success == 1 && t.Window.OK+t.Window.Failed+t.Window.Slow == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*t.Success)
}

// trouble orders targets: what keeps one from its full share comes first.
func trouble(t Target, now time.Time) int {
	switch {
	case t.Breaker == "open":
		return 4
	case t.Breaker != "closed":
		return 3
	case t.Drained, t.Window.Forced != "":
		return 2
	case t.Cool != nil && t.Cool.After(now):
		return 1
	}
	return 0
}

func breakerOf(t Target) (string, style) {
	word := t.Breaker
	if t.Window.Forced != "" {
		word = "held " + t.Window.Forced
	}
	if t.Drained {
		word = "drained"
	}
	switch {
	case t.Drained, t.Window.Forced != "":
		return word, warn
	case t.Breaker == "open":
		return word, bad
	case t.Breaker != "closed":
		return word, warn
	}
	return word, plain
}

// coolOf is what keeps a target from getting requests, and for how long yet.
func coolOf(t Target, now time.Time) string {
	if t.Cool != nil && t.Cool.After(now) {
		return ago(t.Cool.Sub(now)) + " " + t.CoolKind
	}
	if t.Window.OpenUntil != nil && t.Window.OpenUntil.After(now) {
		return ago(t.Window.OpenUntil.Sub(now)) + " open"
	}
	return "-"
}

func workloads(p *Picture, width int) section {
	columns := 9 + 8 + 8 + 8 + 13 + 13
	if width < narrow {
		columns = 9 + 8 + 13
	}
	names := wide(width, columns, 60)
	s := section{part: Workloads, title: "WORKLOADS", head: fit("", names) + right("rate", 9) + right("in", 8)}
	if width >= narrow {
		s.head += right("out", 8) + right("flight", 8)
	}
	s.head += fit("  lane", 13)
	if width >= narrow {
		s.head += fit(" priority", 13)
	}
	s.head = clip(s.head, width)
	list := slices.Clone(p.State.Workloads)
	slices.SortStableFunc(list, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(p.Rates[b.Name].Inbound, p.Rates[a.Name].Inbound), cmp.Compare(a.Name, b.Name))
	})
	for _, w := range list {
		rate := "-"
		if r, ok := p.Rates[w.Name]; ok {
			rate = perSecond(r.Inbound) + "/s"
		}
		look, lane := plain, cmp.Or(w.Lane.Name, "normal")
		if lane != "normal" {
			look = warn
		}
		text := fit("  "+w.Name, names) + right(rate, 9) + right(times(w.In), 8)
		if width >= narrow {
			text += right(times(w.Out), 8) + right(strconv.FormatInt(w.InFlight, 10), 8)
		}
		text += fit("  "+lane, 13)
		if width >= narrow {
			text += fit(" "+w.Priority, 13)
		}
		s.rows = append(s.rows, row(clip(text, width), look))
	}
	return s
}

func slos(p *Picture, width int) section {
	columns := 10 + 10 + 10 + 8 + 9
	if width < narrow {
		columns = 10 + 9
	}
	names := wide(width, columns, 60)
	s := section{part: SLOs, title: "SLOS", head: fit("", names)}
	if width >= narrow {
		s.head += right("is to be", 10) + right("is", 10) + right("left", 10) + right("burn", 8)
	} else {
		s.head += right("left", 10)
	}
	s.head = clip(s.head+right("alarm", 9), width)
	for _, o := range p.SLOs {
		is, burn, look := "-", "-", plain
		if n := o.Good + o.Bad; n > 0 {
			is = share2(float64(o.Good) / float64(n))
		}
		if len(o.Burns) > 0 {
			burn = strconv.FormatFloat(o.Burns[0].Rate, 'f', 1, 64)
		}
		if o.Burning != "" || o.Left <= 0 {
			look = bad
		}
		text := fit("  "+o.Name, names)
		if width >= narrow {
			text += right(share2(o.Objective), 10) + right(is, 10) + right(share2(o.Left), 10) + right(burn, 8)
		} else {
			text += right(share2(o.Left), 10)
		}
		s.rows = append(s.rows, row(clip(text+right(cmp.Or(o.Burning, "-"), 9), width), look))
	}
	return s
}

// share2 is a share with as many digits as objectives have.
func share2(f float64) string {
	text := strconv.FormatFloat(100*f, 'f', 3, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + " %"
}

func actions(p *Picture, width int) section {
	s := section{part: Actions, title: "ACTIONS IN FORCE"}
	for _, a := range *p.Actions {
		if a.Ended != nil {
			continue
		}
		text := fmt.Sprintf("  %s  %s %s", a.ID, a.Kind, a.Subject)
		if a.Target != "" {
			text += " to " + a.Target
		}
		text += fmt.Sprintf("  %s left  by %s: %s", ago(a.Until.Sub(p.State.At)), a.By, a.Why)
		s.rows = append(s.rows, row(clip(text, width), warn))
	}
	if len(s.rows) == 0 {
		s.title += "  none"
	}
	return s
}

func rolling(p *Picture, width int) section {
	r := p.Rollout
	s := section{part: Rollout, title: "ROLLOUT"}
	head := fmt.Sprintf("  %s  %s  stage %d of %d  %.1f %% of requests", r.Version, r.State, r.Stage+1, len(r.Stages), 100*r.Exposure)
	look := plain
	switch r.State {
	case "halted", "reverted":
		look = bad
	case "promoted":
		look = good
	}
	s.rows = append(s.rows, row(clip(head, width), look))
	if r.Verdict != "" || r.Why != "" {
		s.rows = append(s.rows, row(clip("    "+string(r.Verdict)+": "+r.Why, width), plain))
	}
	for _, m := range r.Measures {
		if m.Verdict != "pass" {
			s.rows = append(s.rows, row(clip(fmt.Sprintf("    %s: %s  %s", m.Name, m.Verdict, m.Text), width), plain))
		}
	}
	return s
}

func looks(state string) style {
	switch state {
	case "degraded":
		return bad
	case "verified":
		return good
	}
	return warn
}
