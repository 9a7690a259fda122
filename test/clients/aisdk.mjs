// Vercel's AI SDK with its OpenAI provider.

import { createOpenAI } from '@ai-sdk/openai';
import { embedMany, generateText, jsonSchema, Output, streamText, tool } from 'ai';
import { city, lookup, pixel, prompt, serve } from './lib.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;

const provider = (job) => createOpenAI({ baseURL: job.origin + '/v1', apiKey: job.key });
const chat = (job) => provider(job).chat(job.model);
const tools = { [lookup.name]: tool({ description: lookup.description, inputSchema: jsonSchema(lookup.parameters) }) };

const call = (calls) => calls?.[0] && { name: calls[0].toolName, args: calls[0].input };

async function stream(job, signal, report, extra = {}) {
  const out = { text: '', chunks: 0, finish: '' };
  report(out);
  const s = streamText({ model: chat(job), prompt: job.prompt ?? prompt, abortSignal: signal, onError: () => {}, ...extra });
  let failed;
  for await (const part of s.fullStream) {
    if (part.type === 'text-delta') {
      out.text += part.text;
      out.chunks++;
    } else if (part.type === 'tool-call') out.tool = { name: part.toolName, args: part.input };
    else if (part.type === 'finish') out.finish = part.finishReason;
    else if (part.type === 'error') failed = part.error;
    else if (part.type === 'abort') failed = new Error('aborted by the caller');
  }
  if (failed) throw failed;
  return out;
}

await serve({
  chat: async (job, signal) => {
    const r = await generateText({ model: chat(job), prompt: job.prompt ?? prompt, abortSignal: signal });
    return { text: r.text, finish: r.finishReason, usage: r.usage };
  },
  stream,
  streamTools: (job, signal, report) => stream(job, signal, report, { tools }),
  tools: async (job) => {
    const r = await generateText({ model: chat(job), prompt, tools });
    return { text: r.text, tool: call(r.toolCalls) };
  },
  schema: async (job) => {
    const r = await generateText({ model: chat(job), prompt, output: Output.object({ schema: jsonSchema(city) }) });
    return { object: r.output };
  },
  vision: async (job) => {
    const content = [{ type: 'text', text: prompt }, { type: 'file', mediaType: 'image/png', data: pixel.split(',')[1] }];
    return { text: (await generateText({ model: chat(job), messages: [{ role: 'user', content }] })).text };
  },
  embed: async (job) => ({ vectors: (await embedMany({ model: provider(job).embedding(job.model), values: ['one', 'two'] })).embeddings }),
  responses: async (job) => ({ text: (await generateText({ model: provider(job).responses(job.model), prompt: job.prompt })).text }),
});
