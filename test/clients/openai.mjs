// The official OpenAI SDK for JavaScript, plain and in its Azure form.

import OpenAI, { AzureOpenAI } from 'openai';
import { city, lookup, pixel, prompt, serve } from './lib.mjs';

function client(job) {
  if (job.azure) {
    return new AzureOpenAI({ endpoint: job.origin, apiKey: job.key, apiVersion: '2024-10-21', deployment: job.model });
  }
  return new OpenAI({ baseURL: job.origin + '/v1', apiKey: job.key });
}

const user = (content) => [{ role: 'user', content }];

function answer(r) {
  const m = r.choices[0].message;
  const call = m.tool_calls?.[0]?.function;
  return { text: m.content ?? '', finish: r.choices[0].finish_reason, usage: r.usage, tool: call && { name: call.name, args: JSON.parse(call.arguments) } };
}

async function stream(job, signal, report, extra = {}) {
  const out = { text: '', chunks: 0, bare: 0, finish: '', usages: 0 };
  report(out);
  const s = await client(job).chat.completions.create({ model: job.model, max_tokens: job.maxTokens, messages: user(job.prompt ?? prompt), stream: true, ...extra }, { signal });
  let args = '';
  for await (const chunk of s) {
    out.chunks++;
    if (chunk.choices.length === 0) out.bare++;
    if (chunk.usage) out.usages++;
    const c = chunk.choices[0];
    out.text += c?.delta?.content ?? '';
    out.finish = c?.finish_reason ?? out.finish;
    const f = c?.delta?.tool_calls?.[0]?.function;
    if (f?.name) out.tool = { name: f.name };
    args += f?.arguments ?? '';
  }
  if (out.tool) out.tool.args = JSON.parse(args);
  // The SDK ends its loop without a word when the caller has aborted.
  if (signal.aborted) throw new Error('aborted by the caller');
  return out;
}

const tools = [{ type: 'function', function: lookup }];

await serve({
  chat: async (job, signal) =>
    answer(await client(job).chat.completions.create({ model: job.model, messages: user(job.prompt ?? prompt) }, { signal })),
  stream,
  streamUsage: (job, signal, report) => stream(job, signal, report, { stream_options: { include_usage: true } }),
  streamNoUsage: (job, signal, report) => stream(job, signal, report, { stream_options: { include_usage: false } }),
  streamTools: (job, signal, report) => stream(job, signal, report, { tools }),
  tools: async (job) => answer(await client(job).chat.completions.create({ model: job.model, messages: user(prompt), tools })),
  schema: async (job) => {
    const r = await client(job).chat.completions.parse({
      model: job.model,
      messages: user(prompt),
      response_format: { type: 'json_schema', json_schema: { name: 'city', strict: true, schema: city } },
    });
    return { object: JSON.parse(r.choices[0].message.content) };
  },
  vision: async (job) =>
    answer(
      await client(job).chat.completions.create({
        model: job.model,
        messages: user([{ type: 'text', text: prompt }, { type: 'image_url', image_url: { url: pixel } }]),
      }),
    ),
  embed: async (job) => {
    const r = await client(job).embeddings.create({ model: job.model, input: ['one', 'two'] });
    return { vectors: r.data.map((d) => Array.from(d.embedding)) };
  },
  completion: async (job) => ({ text: (await client(job).completions.create({ model: job.model, prompt })).choices[0].text }),
  models: async (job) => ({ models: (await client(job).models.list()).data.map((m) => m.id) }),
  responses: async (job) => ({ text: (await client(job).responses.create({ model: job.model, input: job.prompt })).output_text }),
  responsesStream: async (job) => {
    const out = { text: '', finish: '' };
    for await (const e of await client(job).responses.create({ model: job.model, input: job.prompt, stream: true })) {
      if (e.type === 'response.output_text.delta') out.text += e.delta;
      if (e.type === 'response.completed') out.finish = 'completed';
    }
    return out;
  },
});
