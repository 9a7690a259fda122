// Opens a page in headless Chromium, as each view asks, and reports what
// axe-core finds, what the browser complains of, what is asked of other
// hosts, whether the page is wider than the window, and what it shows. Takes
// {url, views: [{width, scheme}], pictures} as JSON on standard input; pictures is a folder.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { axeFinds, close, evaluate, listeners, send } from './browser.mjs';

const job = JSON.parse(readFileSync(0, 'utf8'));

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
  const found = await axeFinds(sessionId);
  listeners.delete(listen);
  await send('Target.closeTarget', { targetId });
  return { url, width, scheme, found, complaints, elsewhere, ...seen };
}

const out = [];
try {
  for (const v of job.views) out.push(await look(job.url, v.width, v.scheme));
} finally {
  await close();
}
console.log(JSON.stringify(out));
