//go:build conformance

package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// job is one call by a user through a client library.
type job struct {
	ID        int    `json:"id"`
	Scenario  string `json:"scenario"`
	Origin    string `json:"origin"` // scheme, host and port
	Key       string `json:"key"`
	Model     string `json:"model"`
	Prompt    string `json:"prompt,omitempty"`
	MaxTokens int    `json:"maxTokens,omitempty"`
	AbortMs   int    `json:"abortMs,omitempty"`
	Azure     bool   `json:"azure,omitempty"`
}

// result is what the library gave the user. A failed stream carries what had
// come before.
type result struct {
	ID        int         `json:"id"`
	MS        int64       `json:"ms"`
	AbortedAt int64       `json:"abortedAt"` // Unix milliseconds
	Text      string      `json:"text"`
	Finish    string      `json:"finish"`
	Chunks    int         `json:"chunks"`
	Bare      int         `json:"bare"`   // chunks without a choice
	Usages    int         `json:"usages"` // chunks with usage
	Tool      *toolCall   `json:"tool"`
	Object    *city       `json:"object"`
	Vectors   [][]float32 `json:"vectors"`
	Models    []string    `json:"models"`
	Error     *thrown     `json:"error"`
}

type toolCall struct {
	Name string            `json:"name"`
	Args map[string]string `json:"args"`
}

type city struct {
	City       string `json:"city"`
	Population int    `json:"population"`
}

// thrown is the error that the library raised.
type thrown struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	Status  int    `json:"status"`
	Code    string `json:"code"`
}

// client is one library, unmodified and with its defaults.
type client interface {
	name() string
	// run makes the call; it fails the test only if the library cannot be run.
	run(t *testing.T, j job) result
}

// clients are all libraries, with the scenarios that each offers beyond the
// common ones.
func clients() []client {
	return []client{
		&script{file: "openai.mjs", title: "openai"},
		&script{file: "openai.mjs", title: "openai-azure", azure: true},
		&script{file: "aisdk.mjs", title: "ai-sdk"},
		&script{file: "langchain.mjs", title: "langchain"},
		openaiGo{},
		azureGo{},
	}
}

// script is a client program of test/clients. Several may share one process.
type script struct {
	file, title string
	azure       bool
}

func (s *script) name() string { return s.title }

func (s *script) run(t *testing.T, j job) result {
	t.Helper()
	j.Azure = s.azure
	r, err := programs.get(s.file).do(j)
	if err != nil {
		t.Fatalf("%s: %v", s.title, err)
	}
	return r
}

// patience bounds one call through a library; the slowest known wait is three
// attempts with 59 s between them.
const patience = 150 * time.Second

// programs are the running client programs, one a file, started when first
// needed and ended by TestMain.
var programs programSet

type programSet struct {
	mu      sync.Mutex
	running map[string]*program
}

func (s *programSet) get(file string) *program {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		s.running = map[string]*program{}
	}
	if s.running[file] == nil {
		s.running[file] = startProgram(file)
	}
	return s.running[file]
}

func (s *programSet) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.running {
		p.stop()
	}
}

// program is a Node process that takes jobs. The reader goroutine hands each
// result to the caller that waits for its id; mu guards what both touch.
type program struct {
	err error // why it could not be started

	cmd    *exec.Cmd
	errors tail
	done   chan struct{} // closed when the reader has ended

	mu      sync.Mutex
	in      io.WriteCloser
	next    int
	waiting map[int]chan result
}

func startProgram(file string) *program {
	p := &program{waiting: map[int]chan result{}, done: make(chan struct{})}
	p.cmd = exec.Command("node", file)
	p.cmd.Dir = clientsDir
	p.cmd.Stderr = &p.errors
	in, err := p.cmd.StdinPipe()
	if err != nil {
		p.err = err
		return p
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.err = err
		return p
	}
	p.in, p.err = in, p.cmd.Start()
	if p.err == nil {
		go p.read(out)
	}
	return p
}

func (p *program) read(out io.Reader) {
	defer close(p.done)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			p.errors.add(fmt.Sprintf("not a result: %v: %.300s\n", err, lines.Text()))
			continue
		}
		p.mu.Lock()
		c := p.waiting[r.ID]
		delete(p.waiting, r.ID)
		p.mu.Unlock()
		if c != nil {
			c <- r
		}
	}
}

func (p *program) do(j job) (result, error) {
	if p.err != nil {
		return result{}, p.err
	}
	answer := make(chan result, 1)
	p.mu.Lock()
	p.next++
	j.ID = p.next
	p.waiting[j.ID] = answer
	line, _ := json.Marshal(j) // plain fields
	_, err := p.in.Write(append(line, '\n'))
	p.mu.Unlock()
	if err != nil {
		return result{}, fmt.Errorf("%w; it said: %s", err, p.errors.String())
	}
	select {
	case r := <-answer:
		return r, nil
	case <-p.done:
		return result{}, fmt.Errorf("the program ended; it said: %s", p.errors.String())
	case <-time.After(patience):
		return result{}, fmt.Errorf("no result within %s; it said: %s", patience, p.errors.String())
	}
}

func (p *program) stop() {
	if p.err != nil {
		return
	}
	p.in.Close()
	select {
	case <-p.done:
	case <-time.After(2 * time.Second):
		_ = p.cmd.Process.Kill() // it may have ended meanwhile
	}
	_ = p.cmd.Wait() // how a client program ends is not under test
}
