// Looks at the dashboard in headless Chromium, as each view asks: what axe-core
// finds, what the browser complains of, what is asked of other hosts, whether the
// page is wider than the window, what it says. Then does what an operator does: waits
// for an update, drains a target with the keyboard alone, reads without scripts.
// Takes {url, paths, views: [{width, scheme}], pictures, live, drain, bare} as JSON on
// standard input; pictures is a folder, drain a target's name, bare a path.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { axeFinds, close, evaluate, listeners, send } from './browser.mjs';

const job = JSON.parse(readFileSync(0, 'utf8'));
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// open opens a page and notes what it complains of and asks for.
async function open(path, { width, scheme, scripts = true, quiet = true }) {
  const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
  const { sessionId: s } = await send('Target.attachToTarget', { targetId, flatten: true });
  const page = { s, targetId, complaints: [], elsewhere: [], loads: 0 };
  let loaded;
  const load = new Promise((resolve) => { loaded = resolve; });
  page.listen = (m) => {
    if (m.sessionId !== s) return;
    if (m.method === 'Page.loadEventFired') { page.loads++; loaded(); }
    if (m.method === 'Log.entryAdded') page.complaints.push(m.params.entry.text);
    if (m.method === 'Runtime.exceptionThrown') page.complaints.push(m.params.exceptionDetails.exception?.description ?? m.params.exceptionDetails.text);
    if (m.method === 'Runtime.consoleAPICalled' && quiet) page.complaints.push(m.params.args.map((a) => a.value).join(' '));
    if (m.method === 'Network.requestWillBeSent' && !m.params.request.url.startsWith('data:') && new URL(m.params.request.url).host !== new URL(job.url).host) page.elsewhere.push(m.params.request.url);
  };
  listeners.add(page.listen);
  for (const d of ['Page', 'Log', 'Runtime', 'Network']) await send(`${d}.enable`, {}, s);
  await send('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: width < 600 }, s);
  await send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] }, s);
  if (!scripts) await send('Emulation.setScriptExecutionDisabled', { value: true }, s);
  await send('Page.navigate', { url: job.url + path }, s);
  await load;
  return page;
}

async function shut(page) {
  listeners.delete(page.listen);
  await send('Target.closeTarget', { targetId: page.targetId });
}

async function picture(page, name) {
  if (!job.pictures) return;
  const { data } = await send('Page.captureScreenshot', { captureBeyondViewport: true, format: 'png' }, page.s);
  writeFileSync(join(job.pictures, `${name}.png`), Buffer.from(data, 'base64'));
}

// until waits for an expression of the page to be true.
async function until(page, expression, ms = 15000) {
  for (const end = Date.now() + ms; Date.now() < end; await wait(100)) {
    if (await evaluate(page.s, `Boolean(${expression})`)) return true;
  }
  return false;
}

async function look(path, view) {
  const page = await open(path, view);
  await wait(job.settle ?? 700); // for the plots
  const seen = await evaluate(page.s, `({ text: document.body.innerText, wide: document.documentElement.scrollWidth > innerWidth, plots: document.querySelectorAll('.uplot').length, figures: document.querySelectorAll('main figure.plot').length })`);
  await picture(page, `${job.name ?? ''}${path.replaceAll(/[^a-zA-Z0-9]+/g, '_') || '_'}-${view.width}-${view.scheme}`);
  const found = await axeFinds(page.s);
  await shut(page);
  return { path, ...view, found, complaints: page.complaints, elsewhere: page.elsewhere, ...seen };
}

const key = async (page, name, text, modifiers = 0) => {
  const codes = { Tab: 9, Enter: 13, Escape: 27, ArrowLeft: 37, ArrowRight: 39, ' ': 32 };
  const k = { key: name, code: name, windowsVirtualKeyCode: codes[name] ?? name.toUpperCase().charCodeAt(0), text, modifiers };
  await send('Input.dispatchKeyEvent', { type: text ? 'keyDown' : 'rawKeyDown', ...k }, page.s);
  await send('Input.dispatchKeyEvent', { type: 'keyUp', ...k, text: undefined }, page.s);
};

// live sees a value change in an open page that is not loaded again, and that what the
// reader has in hand stays.
async function live() {
  const page = await open('/targets', { width: 1280, scheme: 'light' });
  await evaluate(page.s, `document.getElementById('q').focus(), document.getElementById('q').value = 'half a wo', window.mine = document.querySelector('main table'), scrollTo(0, 40), 0`);
  const before = await evaluate(page.s, `document.querySelector('main').innerText`);
  const changed = await until(page, `document.querySelector('main').innerText !== ${JSON.stringify(before)}`, 30000);
  const kept = await evaluate(page.s, `({ focus: document.activeElement.id, typed: document.getElementById('q').value, same: window.mine.isConnected, scroll: scrollY })`);
  await evaluate(page.s, `document.getElementById('pause').click()`);
  const asked = [];
  const count = (m) => { if (m.sessionId === page.s && m.method === 'Network.requestWillBeSent') asked.push(m.params.request.url); };
  await wait(500);
  listeners.add(count);
  await wait(4500);
  listeners.delete(count);
  const paused = await evaluate(page.s, `document.getElementById('age').textContent`);
  await shut(page);
  return { changed, loads: page.loads, ...kept, paused, asked: asked.length, complaints: page.complaints };
}

// drain gives an order with the keyboard alone: the filter, the row's button, the
// dialog, and back.
async function drain(name) {
  const page = await open('/targets', { width: 1280, scheme: 'light' });
  await until(page, `document.documentElement.classList.contains('scripts')`);
  await key(page, '?', '?');
  const help = await evaluate(page.s, `document.getElementById('help').open`);
  await key(page, 'Escape');
  let steps = 0;
  const at = `document.activeElement?.dataset?.order === 'drain' && document.activeElement.dataset.subject === ${JSON.stringify(name)}`;
  while (steps < 200 && !(await evaluate(page.s, at))) { await key(page, 'Tab'); steps++; }
  await key(page, 'Enter', '\r');
  const open_ = await until(page, `document.getElementById('order').open && document.activeElement.id === 'order-why'`);
  await picture(page, 'dialog-1280-light');
  const found = await axeFinds(page.s);
  await key(page, 'Enter', '\r');
  const refused = await evaluate(page.s, `document.getElementById('order-wrong').textContent`);
  await send('Input.insertText', { text: "the provider's notice" }, page.s);
  await key(page, 'Enter', '\r');
  const done = await until(page, `document.getElementById('said').textContent`);
  const said = await evaluate(page.s, `document.getElementById('said').textContent`) || await evaluate(page.s, `document.getElementById('order-wrong').textContent`);
  const shown = await until(page, `[...document.querySelectorAll('main [data-undo]')].some((b) => b.dataset.text.includes(${JSON.stringify(name)}))`);
  await picture(page, 'drained-1280-light');
  await shut(page);
  return { help, steps, open: open_, refused, done, said, shown, found, complaints: page.complaints };
}

// bare reads a page without scripts.
async function bare(path) {
  const page = await open(path, { width: 390, scheme: 'light', scripts: false });
  await send('Emulation.setScriptExecutionDisabled', { value: false }, page.s);
  const text = await evaluate(page.s, 'document.body.innerText');
  const buttons = await evaluate(page.s, `[...document.querySelectorAll('main button')].filter((b) => b.offsetParent && b.type === 'button').length`);
  await picture(page, `noscript${path.replaceAll('/', '_')}-390-light`);
  await shut(page);
  return { text, buttons };
}

const out = { pages: [] };
try {
  for (const path of job.paths ?? []) for (const view of job.views) out.pages.push(await look(path, view));
  if (job.live) out.live = await live();
  if (job.drain) out.drain = await drain(job.drain);
  if (job.bare) out.bare = await bare(job.bare);
} finally {
  await close();
}
console.log(JSON.stringify(out));
