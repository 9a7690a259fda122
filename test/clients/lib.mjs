// A client program reads one job a line (JSON) on standard input, runs each
// with an unmodified SDK, and prints one result a line. Jobs run side by side.
// A failed call is a result too: what the SDK threw is under `error`.

import readline from 'node:readline';

export const prompt = 'Which city is this about?';

export const city = {
  type: 'object',
  properties: { city: { type: 'string' }, population: { type: 'integer' } },
  required: ['city', 'population'],
  additionalProperties: false,
};

export const lookup = {
  name: 'lookup_city',
  description: 'Look a city up by its name.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false },
};

/** One transparent PNG pixel. */
export const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Aborts after job.abortMs and notes when. */
export function aborter(job) {
  const c = new AbortController();
  const note = { signal: c.signal, abortedAt: 0 };
  if (job.abortMs) {
    setTimeout(() => {
      note.abortedAt = Date.now();
      c.abort();
    }, job.abortMs);
  }
  return note;
}

function describe(e) {
  // The error that names a status may be wrapped by retry errors.
  const inner = e?.lastError ?? e;
  return {
    name: e?.name ?? typeof e,
    message: String(e?.message ?? e),
    status: inner?.status ?? inner?.statusCode ?? inner?.cause?.status ?? 0,
    code: String(inner?.code ?? inner?.data?.error?.code ?? inner?.error?.code ?? ''),
  };
}

/** Serves jobs until standard input ends. */
export async function serve(scenarios) {
  const running = [];
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const job = JSON.parse(line);
    running.push(
      (async () => {
        const started = Date.now();
        const note = aborter(job);
        let result = {};
        try {
          const run = scenarios[job.scenario];
          if (!run) throw new Error(`no scenario ${job.scenario}`);
          result = await run(job, note.signal, (partial) => (result = partial));
        } catch (e) {
          result = { ...result, error: describe(e) };
        }
        const out = { id: job.id, ms: Date.now() - started, abortedAt: note.abortedAt, ...result };
        process.stdout.write(JSON.stringify(out) + '\n');
      })(),
    );
  }
  await Promise.all(running);
  process.exit(0);
}
