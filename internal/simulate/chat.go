package simulate

// completion is a whole chat or text completion.
func (a *answer) completion() object {
	list := make([]object, a.N)
	for i := range list {
		list[i] = object{"index": i, "finish_reason": a.finish(), "logprobs": nil}
		switch {
		case a.kind == completions:
			list[i]["text"] = a.said()
		case a.call != "":
			list[i]["message"] = object{"role": "assistant", "content": nil, "refusal": nil, "tool_calls": []object{a.toolCall(a.said())}}
		default:
			list[i]["message"] = object{"role": "assistant", "content": a.said(), "refusal": nil}
		}
	}
	return a.envelope(list, a.usage())
}

func (a *answer) toolCall(arguments string) object {
	return object{"id": "call_" + a.id, "type": "function", "function": object{"name": a.call, "arguments": arguments}}
}

func (a *answer) usage() object {
	said := a.N * a.tokens
	return object{"prompt_tokens": a.prompt, "completion_tokens": said, "total_tokens": a.prompt + said}
}

// envelope is what every object of a completion has around its choices.
func (a *answer) envelope(choices []object, usage object) object {
	name := "text_completion"
	switch {
	case a.kind == chat && a.Stream:
		name = "chat.completion.chunk"
	case a.kind == chat:
		name = "chat.completion"
	}
	o := object{"id": a.id, "object": name, "created": a.created, "model": a.Model, "choices": choices}
	if usage != nil {
		o["usage"] = usage
	} else if a.StreamOptions.IncludeUsage {
		o["usage"] = nil
	}
	return o
}

// chunks is a chat or text completion as a stream. The choices take turns.
func (a *answer) chunks() *frames {
	f := &frames{tokens: a.N * a.tokens, token: func(i int) string {
		text := a.token(i / a.N)
		delta := object{"content": text}
		if a.call != "" {
			delta = object{"tool_calls": []object{{"index": 0, "function": object{"arguments": text}}}}
		}
		return a.chunk(i%a.N, delta, text, nil)
	}}
	for n := range a.N {
		if a.kind == chat {
			f.head = append(f.head, a.chunk(n, a.opening(), "", nil))
		}
		f.tail = append(f.tail, a.chunk(n, object{}, "", a.finish()))
	}
	if a.StreamOptions.IncludeUsage {
		f.tail = append(f.tail, data(a.envelope([]object{}, a.usage())))
	}
	f.tail = append(f.tail, "data: [DONE]\n\n")
	return f
}

// opening is the first delta of a choice. A function's name comes with it.
func (a *answer) opening() object {
	if a.call == "" {
		return object{"role": "assistant", "content": "", "refusal": nil}
	}
	call := a.toolCall("")
	call["index"] = 0
	return object{"role": "assistant", "content": nil, "tool_calls": []object{call}}
}

func (a *answer) chunk(index int, delta object, text string, finish any) string {
	c := object{"index": index, "finish_reason": finish, "logprobs": nil}
	if a.kind == chat {
		c["delta"] = delta
	} else {
		c["text"] = text
	}
	return data(a.envelope([]object{c}, nil))
}

func data(o object) string { return "data: " + marshal(o) + "\n\n" }
