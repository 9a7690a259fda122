// Opens a page in headless Chromium, as each view asks, and reports what
// axe-core finds, what the browser complains of, what is asked of other
// hosts, whether the page is wider than the window, and what it shows. Takes
// {url, views: [{width, scheme}], pictures} as JSON on standard input; pictures is a folder.
// The browser is driven through a pipe: nothing listens.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const job = JSON.parse(readFileSync(0, 'utf8'));
process.on('SIGTERM', () => { browser.kill(); process.exit(1); });
const profile = mkdtempSync(join(tmpdir(), 'pages-'));
const browser = spawn('chromium', ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update',
  '--disable-sync', '--no-first-run', '--hide-scrollbars', '--remote-debugging-pipe', `--user-data-dir=${profile}`], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });

let last = 0;
const waiting = new Map();
const listeners = new Set();
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

function send(method, params = {}, sessionId) {
  const id = ++last;
  browser.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + '\0');
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

const evaluate = async (session, expression) => {
  const r = await send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true }, session);
  if (r.exceptionDetails) throw new Error(JSON.stringify(r.exceptionDetails));
  return r.result.value;
};

async function look(url, width, scheme) {
  const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
  const complaints = [];
  const elsewhere = [];
  let loaded;
  const load = new Promise((resolve) => { loaded = resolve; });
  const listen = (m) => {
    if (m.sessionId !== sessionId) return;
    if (m.method === 'Page.loadEventFired') loaded();
    if (m.method === 'Log.entryAdded' && !m.params.entry.url?.endsWith('/favicon.ico')) complaints.push(m.params.entry.text);
    if (m.method === 'Runtime.exceptionThrown') complaints.push(m.params.exceptionDetails.text);
    if (m.method === 'Network.requestWillBeSent' && new URL(m.params.request.url).host !== new URL(url).host) elsewhere.push(m.params.request.url);
  };
  listeners.add(listen);
  for (const d of ['Page', 'Log', 'Runtime', 'Network']) await send(`${d}.enable`, {}, sessionId);
  await send('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: width < 600 }, sessionId);
  await send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] }, sessionId);
  await send('Page.navigate', { url }, sessionId);
  await load;
  const seen = await evaluate(sessionId, `({ text: document.body.innerText, wide: document.documentElement.scrollWidth > innerWidth,
    overlaps: (() => { const b = [...document.querySelectorAll('svg.timeline text')].map((t) => t.getBoundingClientRect());
      return b.flatMap((p, i) => b.slice(i + 1).filter((q) => p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 2 && q.top < p.bottom - 2)).length; })() })`);
  if (job.pictures) {
    const { data } = await send('Page.captureScreenshot', { captureBeyondViewport: true, format: 'png' }, sessionId);
    const name = new URL(url).pathname.replaceAll('/', '_').slice(1) + `-${width}-${scheme}.png`;
    writeFileSync(join(job.pictures, name), Buffer.from(data, 'base64'));
  }
  await evaluate(sessionId, axe + ';0');
  const found = await evaluate(sessionId, 'axe.run().then((r) => r.violations.map((v) => ({ rule: v.id, impact: v.impact, where: v.nodes.slice(0, 3).map((n) => n.target.join(" ")) })))');
  listeners.delete(listen);
  await send('Target.closeTarget', { targetId });
  return { url, width, scheme, found, complaints, elsewhere, ...seen };
}

const out = [];
try {
  for (const v of job.views) out.push(await look(job.url, v.width, v.scheme));
} finally {
  const gone = new Promise((resolve) => browser.on('exit', resolve));
  send('Browser.close').catch(() => browser.kill());
  await gone;
  rmSync(profile, { recursive: true, force: true, maxRetries: 30, retryDelay: 100 }); // its children may still write
}
console.log(JSON.stringify(out));
