// A real inference engine behind the smallest OpenAI surface: llama.cpp with
// real tokenizing, sampling and batching over a few parallel sequences.
//
//   node engine.mjs MODEL.gguf [MS_PER_TOKEN]
//
// Prints {"url": …} when it listens; ends with its standard input.

import http from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { getLlama } from 'node-llama-cpp';

const [modelPath, pace = '0'] = process.argv.slice(2);
const sequences = 8;
const perSequence = 256;

// One thread: with more, the threads of a tiny model wait for each other.
const llama = await getLlama({ build: 'never', gpu: false, maxThreads: 1, logLevel: 'error' });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({ contextSize: perSequence, sequences });
const free = Array.from({ length: sequences }, () => context.getSequence());

const json = (res, status, body) => {
  res.writeHead(status, { 'content-type': 'application/json' });
  res.end(JSON.stringify(body));
};
const refuse = (res, status, code, message) => json(res, status, { error: { message, type: 'server_error', code } });

/** Yields pieces of text until the limit, the model's end or the caller's. */
async function* generate(sequence, prompt, limit, signal) {
  const tokens = model.tokenize(prompt).slice(-(perSequence - limit - 1));
  let n = 0;
  for await (const token of sequence.evaluate(tokens, { temperature: 0.8 })) {
    if (signal.aborted) return;
    yield model.detokenize([token]);
    if (++n >= limit) return;
    if (+pace) await pause(+pace);
  }
}

async function complete(req, res, body, sequence) {
  const gone = new AbortController();
  res.on('close', () => gone.abort());
  const prompt = body.messages.map((m) => (typeof m.content === 'string' ? m.content : '')).join('\n');
  const limit = Math.min(body.max_tokens ?? body.max_completion_tokens ?? 32, perSequence / 2);
  const head = { id: 'chatcmpl-' + Date.now().toString(36), created: Math.floor(Date.now() / 1000), model: body.model };
  const frame = (choices, more = {}) =>
    res.write('data: ' + JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...more }) + '\n\n');
  if (body.stream) {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    frame([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]);
  }
  let text = '';
  let count = 0;
  for await (const piece of generate(sequence, prompt, limit, gone.signal)) {
    text += piece;
    count++;
    if (body.stream) frame([{ index: 0, delta: { content: piece }, finish_reason: null }]);
  }
  if (gone.signal.aborted) return;
  const finish = count >= limit ? 'length' : 'stop';
  const input = model.tokenize(prompt).length;
  const usage = { prompt_tokens: input, completion_tokens: count, total_tokens: input + count };
  if (!body.stream) {
    return json(res, 200, { ...head, object: 'chat.completion', usage, choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: finish }] });
  }
  frame([{ index: 0, delta: {}, finish_reason: finish }]);
  if (body.stream_options?.include_usage) frame([], { usage });
  res.end('data: [DONE]\n\n');
}

async function handle(req, res) {
  if (req.url === '/v1/models') return json(res, 200, { object: 'list', data: [{ id: 'tiny', object: 'model' }] });
  if (req.method !== 'POST' || req.url !== '/v1/chat/completions') return refuse(res, 404, 'not_found', 'no such path');
  const parts = [];
  for await (const p of req) parts.push(p);
  const body = JSON.parse(Buffer.concat(parts).toString());
  const sequence = free.pop();
  if (!sequence) return refuse(res, 503, 'busy', 'all sequences are in use');
  try {
    await complete(req, res, body, sequence);
  } finally {
    await sequence.clearHistory();
    free.push(sequence);
  }
}

const server = http.createServer((req, res) =>
  handle(req, res).catch((e) => (res.headersSent ? res.destroy() : refuse(res, 500, 'engine', String(e)))),
);
server.listen(0, '127.0.0.1', () => process.stdout.write(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}` }) + '\n'));
process.stdin.on('end', () => process.exit(0)).resume();
