// Signs in at a router's operator listener in headless Chromium: through an OpenID
// provider's own forms, and with a key; then tries from another site what must not
// work. Takes {admin, user, key, pictures} as JSON on standard input; prints what was
// seen. The browser is driven through a pipe. The other site is localhost, which is
// not 127.0.0.1, where the listener is.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const job = JSON.parse(readFileSync(0, 'utf8'));
const profile = mkdtempSync(join(tmpdir(), 'signin-'));
const browser = spawn('chromium', ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update',
  '--disable-sync', '--no-first-run', '--remote-debugging-pipe', `--user-data-dir=${profile}`], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
process.on('SIGTERM', () => { browser.kill(); process.exit(1); });

let last = 0;
let unread = '';
const waiting = new Map();
const complaints = [];
browser.stdio[4].setEncoding('utf8').on('data', (chunk) => {
  const parts = (unread + chunk).split('\0');
  unread = parts.pop();
  for (const m of parts.map((p) => JSON.parse(p))) {
    if (m.id) {
      const { resolve, reject } = waiting.get(m.id);
      waiting.delete(m.id);
      m.error ? reject(new Error(m.error.message)) : resolve(m.result);
    } else if (m.method === 'Log.entryAdded' && !m.params.entry.url?.endsWith('/favicon.ico')) {
      complaints.push(m.params.entry.text);
    }
  }
});

function send(method, params = {}, sessionId) {
  const id = ++last;
  browser.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + '\0');
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

// tab opens a page in a browser that knows nothing yet, or in one that does.
async function tab(browserContextId) {
  const { targetId } = await send('Target.createTarget', { url: 'about:blank', browserContextId });
  const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
  for (const d of ['Page', 'Log', 'Runtime', 'Network']) await send(`${d}.enable`, {}, sessionId);
  const evaluate = async (expression) => {
    const r = await send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true, userGesture: true }, sessionId);
    if (r.exceptionDetails) throw new Error(JSON.stringify(r.exceptionDetails));
    return r.result.value;
  };
  return {
    go: (url) => send('Page.navigate', { url }, sessionId),
    evaluate,
    // until waits for a condition of the page; while it is being replaced there is none.
    until: async (what, condition) => {
      for (const end = Date.now() + 60_000; Date.now() < end; await new Promise((r) => setTimeout(r, 50))) {
        if (await evaluate(`document.readyState === 'complete' && (${condition})`).catch(() => false)) return;
      }
      throw new Error(`${what} does not come; there is ${await evaluate('location.href + " " + document.body.innerText')}`);
    },
    picture: async (name) => {
      const { data } = await send('Page.captureScreenshot', { format: 'png' }, sessionId);
      if (job.pictures) writeFileSync(join(job.pictures, name + '.png'), Buffer.from(data, 'base64'));
    },
  };
}

const other = createServer((_, w) => w.setHeader('Content-Type', 'text/html').end('<!doctype html><title>other</title><p>Another site.'));
await new Promise((resolve) => other.listen(0, '127.0.0.1', resolve));
const elsewhere = `http://localhost:${other.address().port}/`;
const out = {};

async function throughProvider() {
  const { browserContextId } = await send('Target.createBrowserContext');
  const t = await tab(browserContextId);
  await t.go(`${job.admin}/api/v1/whoami`);
  await t.until('the sign-in', `location.pathname === '/login'`);
  await t.picture('login');
  out.styled = await t.evaluate(`getComputedStyle(document.querySelector('main')).maxWidth`);
  await t.evaluate(axe + ';0');
  out.axe = await t.evaluate('axe.run().then((r) => r.violations.map((v) => v.id))');
  out.complaints = complaints.splice(0).filter((c) => !c.includes('status of 401'));
  await t.evaluate(`document.querySelector('a.button').click()`);
  await t.until('the provider', `location.hostname === 'localhost' && document.querySelector('[name=login]')`);
  await t.evaluate(`document.querySelector('[name=login]').value = ${JSON.stringify(job.user)}; document.querySelector('[name=password]').value = 'x'; document.querySelector('form').submit()`);
  await t.until('consent', `location.hostname === 'localhost' && !document.querySelector('[name=login]') && document.querySelector('form')`);
  await t.evaluate(`document.querySelector('form').submit()`);
  await t.until('the way back', `location.origin === ${JSON.stringify(job.admin)}`);
  await t.until('its end', `location.pathname !== '/oidc/callback' || document.querySelector('[role=alert]')`);
  await t.picture('after');
  out.at = await t.evaluate('location.pathname');
  out.text = await t.evaluate('document.body.innerText');
  out.scripts = await t.evaluate('document.cookie');
  return browserContextId;
}

// fromElsewhere tries from another site what a session must not be used for.
async function fromElsewhere(context) {
  const t = await tab(context);
  await t.go(elsewhere);
  await t.until('the other site', `document.title === 'other'`);
  await t.evaluate(`(async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/json']) {
      await fetch('${job.admin}/api/v1/changes', { method: 'POST', mode: type.includes('json') ? 'cors' : 'no-cors', credentials: 'include', headers: { 'Content-Type': type }, body: '{"what":"forged"}' }).catch(() => {});
    }
    await fetch('${job.admin}/api/v1/workloads/users/quarantine', { method: 'PUT', credentials: 'include', headers: { 'Content-Type': 'application/json' }, body: '{}' }).catch(() => {});
    const f = document.createElement('iframe'); f.name = 'f'; f.src = '${job.admin}/'; document.body.append(f);
    await new Promise((r) => { f.onload = r; setTimeout(r, 5000); });
    const form = document.createElement('form');
    form.method = 'post'; form.enctype = 'text/plain'; form.action = '${job.admin}/api/v1/changes'; form.target = 'f';
    const i = document.createElement('input'); i.name = '{"what":"forged","who":"'; i.value = '"}'; form.append(i);
    document.body.append(form); form.submit();
    await new Promise((r) => { f.onload = r; setTimeout(r, 5000); });
  })()`);
  out.read = await t.evaluate(`fetch('${job.admin}/api/v1/whoami', { credentials: 'include' }).then((r) => r.text()).catch(() => 'not read')`);
  out.framed = complaints.splice(0).filter((c) => /frame/i.test(c)).length > 0;
  // A link of another site leads to where it says, without another sign-in.
  await t.evaluate(`(() => { const a = document.createElement('a'); a.href = '${job.admin}/api/v1/whoami'; document.body.append(a); a.click(); })()`);
  await t.until('what the link leads to', `location.pathname === '/api/v1/whoami' && document.body.innerText.includes('"name"')`);
  out.linked = await t.evaluate('document.body.innerText');
}

async function withKey() {
  const { browserContextId } = await send('Target.createBrowserContext');
  const t = await tab(browserContextId);
  await t.go(`${job.admin}/login?next=/api/v1/whoami`);
  const type = async (key) => {
    await t.until('the form', `document.querySelector('#key')`);
    await t.evaluate(`document.querySelector('#key').value = ${JSON.stringify(key)}; document.querySelector('form').submit()`);
  };
  await type('not-a-key-of-anybody');
  await t.until('the refusal', `document.querySelector('[role=alert]')`);
  out.wrong = await t.evaluate(`document.querySelector('[role=alert]').innerText`);
  await type(job.key);
  await t.until('who it is', `location.pathname === '/api/v1/whoami'`);
  out.keyed = await t.evaluate('document.body.innerText');
  await t.go(`${job.admin}/logout`);
  await t.until('signing out', `document.querySelector('form[action="/logout"]')`);
  await t.evaluate(`document.querySelector('form').submit()`);
  await t.until('the sign-in again', `location.pathname === '/login'`);
  await t.go(`${job.admin}/api/v1/whoami`);
  await t.until('the sign-in once more', `location.search === '?next=%2Fapi%2Fv1%2Fwhoami'`);
  out.after = await t.evaluate('document.body.innerText');
}

try {
  const context = await throughProvider();
  if (job.key) {
    await fromElsewhere(context);
    await withKey();
  }
} finally {
  const gone = new Promise((resolve) => browser.on('exit', resolve));
  send('Browser.close').catch(() => browser.kill());
  await gone;
  other.closeAllConnections();
  other.close();
  rmSync(profile, { recursive: true, force: true, maxRetries: 30, retryDelay: 100 }); // its children may still write
}
console.log(JSON.stringify(out));
