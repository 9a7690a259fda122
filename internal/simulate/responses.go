package simulate

import "maps"

// response is the response object: whole, or as it stands at the start.
func (a *answer) response(whole bool) object {
	o := object{
		"id": "resp_" + a.id, "object": "response", "created_at": a.created, "model": a.Model, "status": "in_progress",
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": object{}, "output": []object{},
		"parallel_tool_calls": true, "temperature": 1, "top_p": 1, "tools": []object{}, "tool_choice": "auto", "usage": nil,
	}
	if !whole {
		return o
	}
	o["status"] = "completed"
	if a.cut {
		o["status"], o["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
	}
	o["output"] = []object{a.item(true)}
	o["usage"] = object{
		"input_tokens": a.prompt, "input_tokens_details": object{"cached_tokens": 0},
		"output_tokens": a.tokens, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": a.prompt + a.tokens,
	}
	return o
}

// item is the one thing a response puts out: a message or a function call.
func (a *answer) item(whole bool) object {
	status, text := "in_progress", ""
	if whole {
		status, text = "completed", a.said()
	}
	if a.call != "" {
		return object{"id": "fc_" + a.id, "type": "function_call", "status": status, "call_id": "call_" + a.id, "name": a.call, "arguments": text}
	}
	o := object{"id": "msg_" + a.id, "type": "message", "role": "assistant", "status": status, "content": []object{}}
	if whole {
		o["content"] = []object{part(text)}
	}
	return o
}

func part(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []object{}, "logprobs": []object{}}
}

// events is a response as a stream.
func (a *answer) events() *frames {
	f := &frames{tokens: a.tokens}
	event := func(n int, kind string, fields object) string {
		o := object{"type": kind, "sequence_number": n}
		maps.Copy(o, fields)
		return "event: " + kind + "\n" + data(o)
	}
	at := object{"output_index": 0, "item_id": a.item(false)["id"]}
	with := func(more object) object {
		o := maps.Clone(at)
		maps.Copy(o, more)
		return o
	}
	head := func(kind string, fields object) { f.head = append(f.head, event(len(f.head), kind, fields)) }
	tail := func(kind string, fields object) {
		f.tail = append(f.tail, event(f.len(), kind, fields))
	}
	head("response.created", object{"response": a.response(false)})
	head("response.in_progress", object{"response": a.response(false)})
	head("response.output_item.added", object{"output_index": 0, "item": a.item(false)})
	delta := "response.output_text.delta"
	if a.call != "" {
		delta = "response.function_call_arguments.delta"
	} else {
		at["content_index"] = 0
		head("response.content_part.added", with(object{"part": part("")}))
	}
	f.token = func(i int) string {
		fields := with(object{"delta": a.token(i)})
		if a.call == "" {
			fields["logprobs"] = []object{}
		}
		return event(len(f.head)+i, delta, fields)
	}
	if a.call != "" {
		tail("response.function_call_arguments.done", with(object{"arguments": a.said(), "name": a.call}))
	} else {
		tail("response.output_text.done", with(object{"text": a.said(), "logprobs": []object{}}))
		tail("response.content_part.done", with(object{"part": part(a.said())}))
	}
	tail("response.output_item.done", object{"output_index": 0, "item": a.item(true)})
	end := "response.completed"
	if a.cut {
		end = "response.incomplete"
	}
	tail(end, object{"response": a.response(true)})
	return f
}
