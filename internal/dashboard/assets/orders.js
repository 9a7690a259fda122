// What an operator orders: buttons open one dialog that asks for why and how long,
// and the API of this listener does the rest. Nothing is changed by a GET.

const texts = {
  drain: ['Drain', 'gets no new requests; calls in flight run on.', ['why', 'for']],
  'force-open': ['Force open', 'gets nothing, and no probes.', ['why', 'for']],
  'force-closed': ['Force closed', 'gets its full share whatever its breaker has seen.', ['why', 'for']],
  quarantine: ['Quarantine', 'keeps a share of concurrency and memory.', ['share', 'why', 'for']],
  budget: ['Retry budget', 'has its retry allowance multiplied; 0 pays for no extra attempt.', ['factor', 'why', 'for']],
  undo: ['Undo', 'is taken back.', ['why']],
  lane: ['Quarantine', 'keeps a share of concurrency and memory until it is released.', ['share', 'why']],
  release: ['Release', 'leaves quarantine.', ['why']],
  promote: ['Promote', 'goes to the next stage now.', ['why']],
  retry: ['Roll out again', 'begins again at the first stage.', ['why']],
  halt: ['Halt', 'is stopped; everything goes back to the version before.', ['why']],
};

export function orders(changed) {
  const dialog = document.getElementById('order');
  const form = dialog.querySelector('form');
  const wrong = document.getElementById('order-wrong');
  const said = document.getElementById('said');
  let job = null;

  document.addEventListener('click', (e) => {
    const b = e.target.closest?.('button[data-order], button[data-undo], button[data-lane], button[data-rollout]');
    if (b) ask(b.dataset);
  });

  function ask(d) {
    const kind = d.order ?? (d.undo ? 'undo' : d.lane === 'release' ? 'release' : d.lane ? 'lane' : d.rollout);
    const [title, effect, fields] = texts[kind];
    const subject = d.subject ?? `${d.undo} (${d.text})`;
    job = { kind, subject, id: d.undo };
    document.getElementById('order-title').textContent = title;
    const what = document.getElementById('order-what');
    const name = document.createElement('bdi');
    name.textContent = subject;
    what.replaceChildren(name, ` ${effect}`);
    for (const f of form.querySelectorAll('.field')) f.hidden = !fields.includes(f.dataset.for);
    form.reset();
    wrong.textContent = '';
    dialog.showModal();
    form.elements.why.focus();
  }

  document.getElementById('order-cancel').addEventListener('click', () => dialog.close());
  form.addEventListener('submit', async (e) => {
    e.preventDefault();
    const f = form.elements;
    const shown = (name) => !f[name].closest('.field').hidden;
    const fault = check(f, shown);
    if (fault) return complain(wrong, fault);
    const button = form.querySelector('.main');
    button.disabled = true;
    const problem = await order(job, {
      why: f.why.value.trim(), for: (shown('for') && f.for.value) || undefined,
      share: shown('share') ? number(f.share.value) / 100 : undefined, factor: shown('factor') ? number(f.factor.value) : undefined,
    }, said);
    button.disabled = false;
    if (problem) return complain(wrong, { text: problem });
    dialog.close();
    changed();
  });

  fresh(said, changed);
}

const number = (text) => Number(text.trim().replace(',', '.'));

// check finds what is wrong before it is sent.
function check(f, shown) {
  if (!f.why.value.trim()) return { text: 'Say why. It goes to the audit log.', at: f.why };
  if (shown('share') && !(number(f.share.value) >= 0 && number(f.share.value) <= 100)) return { text: 'The share is from 0 to 100 percent.', at: f.share };
  if (shown('factor') && !(number(f.factor.value) >= 0 && number(f.factor.value) <= 10)) return { text: 'The factor is from 0 to 10.', at: f.factor };
  return null;
}

function complain(wrong, { text, at }) {
  wrong.textContent = text;
  at?.focus();
}

// order asks the API and returns its complaint, "" for none.
async function order(job, ask, said) {
  const to = {
    undo: ['DELETE', `/api/v1/actions/${encodeURIComponent(job.id)}`, { why: ask.why }],
    lane: ['PUT', `/api/v1/workloads/${encodeURIComponent(job.subject)}/quarantine`, { why: ask.why, share: ask.share }],
    release: ['DELETE', `/api/v1/workloads/${encodeURIComponent(job.subject)}/quarantine`, { why: ask.why }],
    promote: ['POST', '/api/v1/rollout/promote', { why: ask.why }],
    retry: ['POST', '/api/v1/rollout/retry', { why: ask.why }],
    halt: ['POST', '/api/v1/rollout/halt', { why: ask.why }],
  }[job.kind] ?? ['POST', '/api/v1/actions', { kind: job.kind, subject: job.subject, ...ask }];
  try {
    const r = await fetch(to[1], { method: to[0], headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(to[2]), redirect: 'error', signal: AbortSignal.timeout(15000) });
    const text = await r.text();
    let answer = {};
    try { answer = JSON.parse(text); } catch { /* some answers have no body, others are text */ }
    if (!r.ok) return answer.error?.message ?? answer.error ?? (text.trim() || `The router answered ${r.status}.`);
    said.textContent = tell(job, ask, answer);
    return '';
  } catch {
    return 'The router does not answer. It is not known whether it did this: look at Actions before you try again.';
  }
}

// tell says what the router has done.
function tell(job, ask, answer) {
  if (job.kind === 'undo') return `${job.subject} is undone.${(answer.resumes ?? []).map((id) => ` ${id} holds again.`).join('')}`;
  const how = `${ask.target ? ` to ${ask.target}` : ''}${ask.share === undefined ? '' : ` to ${100 * ask.share} %`}${ask.factor === undefined ? '' : ` times ${ask.factor}`}`;
  if (!answer.id) return `Done: ${job.kind} ${job.subject}${how}.`;
  return `${answer.id}: ${job.kind} ${job.subject}${how}${answer.until ? ` until ${answer.until.slice(11, 19)}` : ''}.${(answer.warnings ?? []).map((w) => ` ${w}`).join('')}`;
}

// fresh is the form for a new action.
function fresh(said, changed) {
  const form = document.getElementById('new-order');
  if (!form) return;
  const f = form.elements;
  const wrong = document.getElementById('new-wrong');
  const fit = () => {
    const kind = f.kind.value;
    for (const [name, kinds] of [['target', ['pin']], ['share', ['quarantine']], ['factor', ['budget']]]) f[name].closest('p').hidden = !kinds.includes(kind);
    document.getElementById('new-of').textContent = { quarantine: 'Workload', shed: 'Priority', budget: 'Whose: workload:NAME or target:NAME', pin: 'Model' }[kind] ?? 'Target';
    suggest(document.getElementById('subjects'), kind);
  };
  f.kind.addEventListener('change', fit);
  fit();
  form.addEventListener('submit', async (e) => {
    e.preventDefault();
    const shown = (name) => !f[name].closest('p').hidden;
    if (!f.subject.value.trim()) return complain(wrong, { text: 'Say which.', at: f.subject });
    const fault = check(f, shown);
    if (fault) return complain(wrong, fault);
    wrong.textContent = await order({ kind: f.kind.value, subject: f.subject.value.trim() }, {
      why: f.why.value.trim(), for: f.for.value || undefined, target: shown('target') ? f.target.value.trim() : undefined,
      share: shown('share') ? number(f.share.value) / 100 : undefined, factor: shown('factor') ? number(f.factor.value) : undefined,
    }, said);
    if (wrong.textContent) return;
    form.reset();
    fit();
    changed();
  });
}

// suggest offers what a kind of action can be about.
function suggest(list, kind) {
  const all = (id) => [...document.querySelectorAll(`#${id} option`)].map((o) => o.value);
  const names = {
    quarantine: () => all('workloads'), pin: () => all('models'), shed: () => ['batch', 'interactive'],
    budget: () => [...all('workloads').map((n) => `workload:${n}`), ...all('targets').map((n) => `target:${n}`)],
  }[kind] ?? (() => all('targets'));
  list.replaceChildren(...names().map((value) => Object.assign(document.createElement('option'), { value })));
}
