package otlp

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

// Names is a generation of the GenAI conventions.
type Names uint8

// The generations: Current is v0.1 of the conventions' own repository, Old is
// v1.41 of the general one. Both sends each measurement under either name.
const (
	Current Names = iota
	Old
	Both
)

// Buckets of the conventions.
var (
	durations = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	firsts    = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}
	perToken  = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5}
	counts    = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

// instruments are the metrics of the conventions. A nil instrument is one of
// the generation that is not sent.
type instruments struct {
	names Names

	operation                  metric.Float64Histogram // of an attempt: old name, and the current ones
	inference, embeddings      metric.Float64Histogram
	firstChunk, inferenceFirst metric.Float64Histogram
	tokens                     metric.Int64Histogram // old
	input, output              metric.Int64Counter   // current, as the rest of tokens
	cached, reasoning          metric.Int64Counter
	inputEach, outputEach      metric.Int64Histogram
	embedded                   metric.Int64Histogram
	firstToken, eachToken      metric.Float64Histogram // of a request
}

func newInstruments(m metric.Meter, names Names) (*instruments, error) {
	i := &instruments{names: names}
	var errs []error
	times := func(name, about string, buckets []float64) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(about), metric.WithExplicitBucketBoundaries(buckets...))
		errs = append(errs, err)
		return h
	}
	sizes := func(name, about string) metric.Int64Histogram {
		h, err := m.Int64Histogram(name, metric.WithUnit("{token}"), metric.WithDescription(about), metric.WithExplicitBucketBoundaries(counts...))
		errs = append(errs, err)
		return h
	}
	sum := func(name, about string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit("{token}"), metric.WithDescription(about))
		errs = append(errs, err)
		return c
	}
	if names != Current {
		i.operation = times("gen_ai.client.operation.duration", "Duration of an upstream call.", durations)
		i.firstChunk = times("gen_ai.client.operation.time_to_first_chunk", "Start of an upstream call to its first content.", durations)
		i.tokens = sizes("gen_ai.client.token.usage", "Tokens of an upstream call, as reported.")
	}
	if names != Old {
		i.inference = times("gen_ai.client.inference.duration", "Duration of an upstream call.", durations)
		i.embeddings = times("gen_ai.client.embeddings.duration", "Duration of an upstream call for embeddings.", durations)
		i.embedded = sizes("gen_ai.client.embeddings.operation.input_tokens", "Tokens of the input of an upstream call for embeddings.")
		i.inferenceFirst = times("gen_ai.client.inference.time_to_first_chunk", "Start of an upstream call to its first content.", durations)
		i.input = sum("gen_ai.client.inference.usage.input_tokens", "Tokens of prompts, as reported.")
		i.output = sum("gen_ai.client.inference.usage.output_tokens", "Tokens of answers, as reported.")
		i.cached = sum("gen_ai.client.inference.usage.cache_read.input_tokens", "Tokens of prompts that the provider had cached.")
		i.reasoning = sum("gen_ai.client.inference.usage.reasoning.output_tokens", "Tokens of answers that were reasoning.")
		i.inputEach = sizes("gen_ai.client.inference.operation.input_tokens", "Tokens of the prompt of an upstream call.")
		i.outputEach = sizes("gen_ai.client.inference.operation.output_tokens", "Tokens of the answer of an upstream call.")
	}
	i.firstToken = times("gen_ai.server.time_to_first_token", "Arrival of a request to its first content, of whole streams.", firsts)
	i.eachToken = times("gen_ai.server.time_per_output_token", "Time of each token behind the first, of whole streams.", perToken)
	return i, errors.Join(errs...)
}

// provider adds who the upstream is. Those who read old names may look for the
// attribute's first name.
func (i *instruments) provider(a *attributes, name string) {
	a.text("gen_ai.provider.name", name)
	if i.names != Current {
		a.text("gen_ai.system", name)
	}
}

// attempt measures an upstream call.
func (i *instruments) attempt(f *event.Attempt, t Target) {
	if f.Operation == "" { // passed through: none of the conventions' operations
		return
	}
	var a attributes
	a.text("gen_ai.operation.name", f.Operation)
	i.provider(&a, t.Provider)
	a.text("gen_ai.request.model", t.Model)
	a.text("server.address", t.Address)
	a.number("server.port", int64(t.Port))
	usual := set(a)
	if f.Class != fault.OK {
		a.text("error.type", f.Class.String())
	}
	ctx, with, inference := context.Background(), set(a), infers(f)
	if i.operation != nil {
		i.operation.Record(ctx, seconds(f.Total), with)
	}
	switch {
	case inference && i.inference != nil:
		i.inference.Record(ctx, seconds(f.Total), with)
	case !inference && i.embeddings != nil:
		i.embeddings.Record(ctx, seconds(f.Total), with)
	}
	if f.Stream && f.Content > 0 && i.firstChunk != nil {
		i.firstChunk.Record(ctx, seconds(f.Content), usual)
	}
	if f.Stream && f.Content > 0 && inference && i.inferenceFirst != nil {
		i.inferenceFirst.Record(ctx, seconds(f.Content), usual)
	}
	i.used(f, a)
}

// infers tells the conventions' inference from what they name otherwise.
func infers(f *event.Attempt) bool { return f.Operation != "embeddings" }

// used measures tokens. What an answer did not report is not guessed; by the
// current rule a failure counts as none.
func (i *instruments) used(f *event.Attempt, a attributes) {
	ctx, u := context.Background(), f.Usage
	if i.tokens != nil && u.Reported {
		i.tokens.Record(ctx, u.Input, set(a, attribute.String("gen_ai.token.type", "input")))
	}
	if i.tokens != nil && u.Reported && infers(f) { // embeddings have no output
		i.tokens.Record(ctx, u.Output, set(a, attribute.String("gen_ai.token.type", "output")))
	}
	if i.embedded != nil && u.Reported && !infers(f) {
		i.embedded.Record(ctx, u.Input, set(a))
	}
	if i.input == nil || !infers(f) || !u.Reported && f.Class == fault.OK {
		return
	}
	with := set(a, attribute.String("gen_ai.token.modality", "unknown"))
	i.input.Add(ctx, u.Input, with)
	i.output.Add(ctx, u.Output, with)
	if u.Cached > 0 {
		i.cached.Add(ctx, u.Cached, with)
	}
	if u.Reasoning > 0 {
		i.reasoning.Add(ctx, u.Reasoning, with)
	}
	if u.Reported {
		i.inputEach.Record(ctx, u.Input, set(a))
		i.outputEach.Record(ctx, u.Output, set(a))
	}
}

// request measures what the caller got. These are of whole answers alone.
func (i *instruments) request(f *event.Request, t Target) {
	if f.Operation == "" || f.Class != fault.OK || !f.Stream || f.Content <= 0 {
		return
	}
	var a attributes
	a.text("gen_ai.operation.name", f.Operation)
	i.provider(&a, t.Provider)
	a.text("gen_ai.request.model", publicModel(f.Model))
	ctx, with := context.Background(), set(a)
	i.firstToken.Record(ctx, seconds(f.Content), with)
	if f.OutputTokens > 1 && !f.Partial {
		i.eachToken.Record(ctx, seconds(f.Total-f.Content)/float64(f.OutputTokens-1), with)
	}
}

func set(a attributes, more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(a[:len(a):len(a)], more...)...))
}
