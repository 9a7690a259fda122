// Headless Chromium, driven through a pipe: nothing listens.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
process.on('SIGTERM', () => { browser.kill(); process.exit(1); });
const profile = mkdtempSync(join(tmpdir(), 'pages-'));
const browser = spawn('chromium', ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update',
  '--disable-sync', '--no-first-run', '--hide-scrollbars', '--remote-debugging-pipe', `--user-data-dir=${profile}`], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });

let last = 0;
const waiting = new Map();
export const listeners = new Set();
let unread = '';
browser.stdio[4].setEncoding('utf8').on('data', (chunk) => {
  const parts = (unread + chunk).split('\0');
  unread = parts.pop();
  for (const part of parts) {
    const m = JSON.parse(part);
    if (m.id) {
      const { resolve, reject } = waiting.get(m.id);
      waiting.delete(m.id);
      m.error ? reject(new Error(m.error.message)) : resolve(m.result);
    } else {
      for (const l of listeners) l(m);
    }
  }
});
browser.on('exit', (code) => waiting.forEach(({ reject }) => reject(new Error(`chromium ended: ${code}`))));

export function send(method, params = {}, sessionId) {
  const id = ++last;
  browser.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + '\0');
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

export const evaluate = async (session, expression) => {
  const r = await send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true }, session);
  if (r.exceptionDetails) throw new Error(JSON.stringify(r.exceptionDetails));
  return r.result.value;
};

// axeFinds runs axe-core in the page.
export async function axeFinds(session) {
  await evaluate(session, axe + ';0');
  return evaluate(session, 'axe.run().then((r) => r.violations.map((v) => ({ rule: v.id, impact: v.impact, where: v.nodes.slice(0, 3).map((n) => n.target.join(" ")) })))');
}

// close ends the browser and waits until it is gone.
export async function close() {
  const gone = new Promise((resolve) => browser.on('exit', resolve));
  send('Browser.close').catch(() => browser.kill());
  await gone;
  rmSync(profile, { recursive: true, force: true, maxRetries: 30, retryDelay: 100 }); // its children may still write
}
