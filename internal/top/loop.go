package top

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
)

// patience is how long the answers of one picture may take together.
const patience = 10 * time.Second

// Options are what the loop needs.
type Options struct {
	Router string // its address, to be shown
	Get    Get
	Every  time.Duration // between pictures
	Colour bool
	Input  io.Reader
	Output io.Writer
	// Env is the environment as os.Environ has it, for what the terminal can do.
	Env []string
	// Width and Height are those of the terminal where it does not tell, for tests; 0
	// for not.
	Width, Height int
}

// model is the state of the loop, of bubbletea's goroutine alone.
type model struct {
	ctx     context.Context
	opt     Options
	picture *Picture
	view    View
}

type (
	read   struct{ *Picture }
	second time.Time
	due    struct{}
)

// Run shows pictures until the user leaves or ctx ends.
func Run(ctx context.Context, o Options) error {
	m := model{ctx: ctx, opt: o, picture: &Picture{Router: o.Router}, view: View{Width: 80, Height: 24, Colour: o.Colour, Now: time.Now()}}
	opts := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(o.Input), tea.WithOutput(o.Output), tea.WithEnvironment(o.Env)}
	if o.Width > 0 {
		opts = append(opts, tea.WithWindowSize(o.Width, o.Height))
	}
	_, err := tea.NewProgram(m, opts...).Run()
	if errors.Is(err, tea.ErrInterrupted) || ctx.Err() != nil {
		return nil
	}
	return err
}

// Init begins to read.
func (m model) Init() tea.Cmd { return tea.Batch(m.poll(), tick()) }

func tick() tea.Cmd { return tea.Tick(time.Second, func(t time.Time) tea.Msg { return second(t) }) }

func (m model) poll() tea.Cmd {
	before := m.picture
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, patience)
		defer cancel()
		return read{Read(ctx, m.opt.Get, before, time.Now())}
	}
}

// Update takes what has happened.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.view.Width, m.view.Height = msg.Width, msg.Height
	case second:
		m.view.Now = time.Time(msg)
		return m, tick()
	case due:
		return m, m.poll()
	case read:
		m.picture, m.view.Now = msg.Picture, time.Now()
		return m, tea.Tick(m.opt.Every, func(time.Time) tea.Msg { return due{} })
	case tea.KeyPressMsg:
		return m.key(msg.String())
	}
	return m, nil
}

// key does what a key asks for.
func (m model) key(k string) (tea.Model, tea.Cmd) {
	page := max(1, m.view.Height/2)
	switch k {
	case "q", "esc", "ctrl+c":
		return m, tea.Quit
	case "?":
		m.view.Help = !m.view.Help
	case "tab", "right", "l":
		m.choose(1)
	case "shift+tab", "left", "h":
		m.choose(-1)
	case "down", "j":
		m.scroll(1)
	case "up", "k":
		m.scroll(-1)
	case "pgdown", "space":
		m.scroll(page)
	case "pgup":
		m.scroll(-page)
	case "home":
		m.view.Skip = 0
	}
	return m, nil
}

// choose goes to another part of those that are shown.
func (m *model) choose(step Part) {
	for range parts {
		m.view.Part = (m.view.Part + step + parts) % parts
		if m.picture.shows(m.view.Part) {
			break
		}
	}
	m.view.Skip = 0
}

func (m *model) scroll(rows int) {
	m.view.Skip = min(max(0, m.view.Skip+rows), m.picture.rows(m.view.Part))
}

// View draws.
func (m model) View() tea.View {
	v := tea.NewView(Draw(m.picture, m.view))
	v.AltScreen = true
	return v
}

// shows reports whether a picture has a part.
func (p *Picture) shows(part Part) bool {
	return !(part == SLOs && len(p.SLOs) == 0 || part == Actions && p.Actions == nil || part == Rollout && p.Rollout == nil)
}

// rows is how many a part has.
func (p *Picture) rows(part Part) int {
	if p.State == nil {
		return 0
	}
	for _, s := range sections(p, leastWidth) {
		if s.part == part {
			return len(s.rows)
		}
	}
	return 0
}
