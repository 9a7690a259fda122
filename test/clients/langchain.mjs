// LangChain for JavaScript with its OpenAI package.

import { HumanMessage } from '@langchain/core/messages';
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai';
import { city, lookup, pixel, prompt, serve } from './lib.mjs';

const configuration = (job) => ({ baseURL: job.origin + '/v1' });
const chat = (job) => new ChatOpenAI({ model: job.model, apiKey: job.key, configuration: configuration(job) });
const tools = [{ type: 'function', function: lookup }];

const answer = (m) => ({
  text: m.text,
  finish: m.response_metadata?.finish_reason,
  usage: m.usage_metadata,
  tool: m.tool_calls?.[0] && { name: m.tool_calls[0].name, args: m.tool_calls[0].args },
});

async function stream(model, job, signal, report) {
  const out = { text: '', chunks: 0, finish: '' };
  report(out);
  let whole;
  for await (const chunk of await model.stream(job.prompt ?? prompt, { signal })) {
    out.chunks++;
    out.text += chunk.text;
    out.finish = chunk.response_metadata?.finish_reason ?? out.finish;
    whole = whole ? whole.concat(chunk) : chunk;
  }
  return { ...out, tool: answer(whole).tool };
}

await serve({
  chat: async (job, signal) => answer(await chat(job).invoke(job.prompt ?? prompt, { signal })),
  stream: (job, signal, report) => stream(chat(job), job, signal, report),
  streamTools: (job, signal, report) => stream(chat(job).bindTools(tools), job, signal, report),
  tools: async (job) => answer(await chat(job).bindTools(tools).invoke(prompt)),
  schema: async (job) => ({ object: await chat(job).withStructuredOutput(city, { name: 'city', method: 'jsonSchema', strict: true }).invoke(prompt) }),
  vision: async (job) =>
    answer(await chat(job).invoke([new HumanMessage({ content: [{ type: 'text', text: prompt }, { type: 'image_url', image_url: { url: pixel } }] })])),
  embed: async (job) => {
    const e = new OpenAIEmbeddings({ model: job.model, apiKey: job.key, configuration: configuration(job) });
    return { vectors: await e.embedDocuments(['one', 'two']) };
  },
});
