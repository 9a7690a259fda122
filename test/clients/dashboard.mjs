// Looks at the dashboard in headless Chromium, as each view asks: what axe-core
// finds, what the browser complains of, what is asked of other hosts, whether the
// page is wider than the window, what it says. Then does what an operator does: waits
// for an update, drains a target with the keyboard alone, reads without scripts.
// Takes {url, paths, views: [{width, scheme}], pictures, live, drain, bare, buttons,
// rollout, key} as JSON on standard input; pictures is a folder, drain a target's name,
// bare a path, buttons {workload, model, target}, rollout what to do with one, key an
// operator's.

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
  if (job.key) await send('Network.setExtraHTTPHeaders', { headers: { Authorization: `Bearer ${job.key}` } }, s);
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

const at = (page, f, ...args) => evaluate(page.s, `(${f})(...${JSON.stringify(args)})`);

// press clicks a button, fills the dialog that it opens, sends it and returns what the
// page says to it.
async function press(page, selector, fields) {
  if (!(await until(page, `document.querySelector(${JSON.stringify(selector)})`))) throw new Error(`no button ${selector}`);
  await at(page, (s) => { document.getElementById('said').textContent = ''; const b = document.querySelector(s); b.focus(); b.click(); }, selector);
  const asks = await at(page, () => [...document.querySelectorAll('#order .field')].filter((f) => !f.hidden).map((f) => f.dataset.for));
  await at(page, (f) => { for (const [k, v] of Object.entries(f)) document.getElementById(`order-${k}`).value = v; document.querySelector('#order .main').click(); }, fields);
  await until(page, `document.getElementById('said').textContent || document.getElementById('order-wrong').textContent`);
  return { asks, ...(await at(page, () => ({ said: document.getElementById('said').textContent, wrong: document.getElementById('order-wrong').textContent, focus: document.activeElement !== document.body }))) };
}

const shows = (page, text) => until(page, `document.querySelector('main').innerText.includes(${JSON.stringify(text)})`);

// buttons presses those that an operator has for workloads and models, and takes back
// what they did; then reads a plot and pauses with the keyboard.
async function buttons({ workload, model, target }) {
  const out = {};
  const why = "the provider's notice";
  let page = await open('/workloads', { width: 1280, scheme: 'light' });
  const of = (kind, name) => `main button[data-${kind}][data-subject="${name}"]`;
  out.quarantine = await press(page, `main button[data-order="quarantine"][data-subject="${workload}"]`, { why, share: '7,5' });
  out.moved = await shows(page, 'keeps 7.5 %');
  await picture(page, 'quarantined-1280-light');
  out.release = await press(page, `main button[data-undo][data-text="quarantine of ${workload}"]`, { why: 'it is over' });
  out.back = await until(page, `document.querySelector('main button[data-order="quarantine"][data-subject="${workload}"]')`);
  out.tooMuch = await press(page, of('order="budget"', `workload:${workload}`), { why, factor: '11' });
  await at(page, () => document.getElementById('order-cancel').click());
  out.budget = await press(page, of('order="budget"', `workload:${workload}`), { why, factor: '0' });
  out.undo = await press(page, `main button[data-undo][data-text="budget of workload:${workload}"]`, { why: 'it is over' });
  const complaints = page.complaints;
  await shut(page);

  page = await open('/actions', { width: 1280, scheme: 'light' });
  await until(page, `document.documentElement.classList.contains('scripts')`);
  const fill = async (fields) => {
    await at(page, (f) => {
      document.getElementById('said').textContent = '';
      for (const [k, v] of Object.entries(f)) { const e = document.getElementById(`new-${k}`); e.value = v; e.dispatchEvent(new Event('change', { bubbles: true })); }
      document.querySelector('#new-order .main').click();
    }, fields);
    await until(page, `document.getElementById('said').textContent || document.getElementById('new-wrong').textContent`);
    return at(page, () => document.getElementById('said').textContent || document.getElementById('new-wrong').textContent);
  };
  out.shed = await fill({ kind: 'shed', subject: 'batch', for: '10m', why });
  out.pin = await fill({ kind: 'pin', subject: model, target, why });
  await picture(page, 'actions-made-1280-light');
  for (const name of ['shed of batch', `pin of ${model}`]) {
    out.over = await press(page, `main button[data-undo][data-text="${name}"]`, { why: 'it is over' });
    await until(page, `!document.querySelector('main button[data-undo][data-text="${name}"]')`);
  }
  out.left = await at(page, () => document.querySelectorAll('main button[data-undo]').length);
  complaints.push(...page.complaints);
  out.unknown = await fill({ kind: 'drain', subject: 'nobody/knows', why }); // the browser complains of the 404
  await shut(page);

  page = await open('/', { width: 1280, scheme: 'light' });
  await until(page, `document.querySelector('.canvas[tabindex]')`);
  await at(page, () => document.querySelector('.canvas').focus());
  for (let i = 0; i < 3; i++) await key(page, 'ArrowLeft');
  out.plot = await at(page, () => document.querySelector('figure.plot [role="status"]')?.textContent ?? '');
  await key(page, 'p', 'p');
  out.paused = await at(page, () => document.getElementById('pause').getAttribute('aria-pressed'));
  await key(page, '2', '2');
  out.there = await until(page, `location.pathname === '/targets' && document.readyState === 'complete'`);
  out.complaints = complaints.concat(page.complaints);
  await shut(page);
  return out;
}

// rollout gives an order to the one that is on its way.
async function rollout(what) {
  const page = await open('/rollout', { width: 1280, scheme: 'light' });
  await picture(page, `rollout-before-${what}-1280-light`);
  const did = await press(page, `main button[data-rollout="${what}"]`, { why: "the provider's notice" });
  const done = await until(page, what === 'promote' ? `document.querySelector('.stages .done')` : `!document.querySelector('main button[data-rollout="${what}"]')`);
  const text = await at(page, () => document.querySelector('main').innerText);
  await picture(page, `rollout-after-${what}-1280-light`);
  await shut(page);
  return { ...did, done, text, complaints: page.complaints };
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
  if (job.buttons) out.buttons = await buttons(job.buttons);
  if (job.rollout) out.rollout = await rollout(job.rollout);
  if (job.bare) out.bare = await bare(job.bare);
} finally {
  await close();
}
console.log(JSON.stringify(out));
