// Keeps an open page current: asks for its own part of the page every two seconds
// while somebody can see it, and changes only what differs. What the reader has in
// hand (focus, scroll, an open table, a half-written form) stays.

import { morph } from './morph.js';
import { orders } from './orders.js';
import { plots } from './plots.js';
import { keys } from './keys.js';

const every = 2000;
const patience = 8000;
const old = 6000; // from when the data's age is said

const main = document.getElementById('main');
const age = document.getElementById('age');
const stale = document.getElementById('stale');
const pause = document.getElementById('pause');

let tag = '';
let good = Date.now(); // when the router last answered
let failed = null; // since when it does not
let paused = false;
let asking = false;

document.documentElement.classList.add('scripts');

export async function refresh() {
  if (asking) return;
  asking = true;
  try {
    const headers = { 'X-Hourthree-Part': 'main' };
    if (tag) headers['If-None-Match'] = tag;
    const r = await fetch(location.href, { headers, cache: 'no-store', redirect: 'manual', signal: AbortSignal.timeout(patience) });
    if (r.status === 401 || r.status === 403 || r.type === 'opaqueredirect') return away('You are signed out. Load the page again to sign in.');
    if (r.status !== 304) {
      if (!r.ok && r.status !== 404) throw new Error(`status ${r.status}`);
      const page = new DOMParser().parseFromString(await r.text(), 'text/html');
      morph(main, page.getElementById('main'));
      morph(document.getElementById('nav'), page.getElementById('nav'));
      document.title = page.title;
      tag = r.headers.get('ETag') ?? '';
    }
    good = Date.now();
    failed = null;
    away('');
    plot.look();
  } catch {
    failed ??= good;
    if (Date.now() - failed > old) away(`The router has not answered since ${new Date(failed).toISOString().slice(11, 19)}. What is shown is from then.`);
  } finally {
    asking = false;
    tell();
  }
}

// away says once what is wrong with the updates; screen readers hear it once.
function away(text) {
  if (stale.textContent !== text) stale.textContent = text;
}

function tell() {
  const late = Date.now() - good;
  const words = late < old ? 'updates every 2 s' : `data is ${Math.round(late / 1000)} s old`;
  age.textContent = paused ? `paused, data is ${Math.round(late / 1000)} s old` : words;
  age.classList.toggle('late', !paused && late >= old);
}

function stop(yes) {
  paused = yes;
  pause.setAttribute('aria-pressed', String(paused));
  pause.textContent = paused ? 'Go on' : 'Pause';
  if (!paused) refresh();
  tell();
}

const plot = plots(() => paused);
pause.addEventListener('click', () => stop(!paused));
document.addEventListener('visibilitychange', () => { if (!document.hidden && !paused) refresh(); });
setInterval(() => { if (!document.hidden && !paused) refresh(); }, every);
setInterval(tell, 1000);
orders(refresh);
keys(() => stop(!paused));
tell();
