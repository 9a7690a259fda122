// Draws the plots with uPlot. A plot is an extra: the page says the same in words
// and in a table. Lines differ by dashes too, not by colour alone.

const calm = 10000; // between two questions for the same plot

// The first colour of a pair is for a light page. They keep apart for readers who
// do not see red or green (after Okabe and Ito), and have 3:1 on their ground.
const looks = {
  offered: [['#3b3b42', '#d6d6dc'], []],
  goodput: [['#0072b2', '#56b4e9'], []],
  attempts: [['#7a6a00', '#f0e442'], [2, 3]],
  refused: [['#b35900', '#e69f00'], [8, 4]],
  degraded: [['#a0507f', '#cc79a7'], [8, 3, 2, 3]],
  failed: [['#c02a00', '#ff7a4d'], [4, 3]],
  in_flight: [['#0072b2', '#56b4e9'], []],
  queued: [['#b35900', '#e69f00'], [8, 4]],
  memory: [['#0072b2', '#56b4e9'], []],
  first_content_p50: [['#0072b2', '#56b4e9'], []],
  first_content_p95: [['#b35900', '#e69f00'], [8, 4]],
  amplification_in: [['#b35900', '#e69f00'], []],
  amplification_out: [['#0072b2', '#56b4e9'], [8, 4]],
};

const dark = matchMedia('(prefers-color-scheme: dark)');
const colour = (pair) => pair[dark.matches ? 1 : 0];

function say(unit, v) {
  if (v == null) return '–';
  if (unit === 'per_second') return `${short(v)}/s`;
  if (unit === 'bytes') return v === 0 ? '0' : v >= 1 << 20 ? `${(v / (1 << 20)).toFixed(1)} MiB` : `${(v / 1024).toFixed(1)} KiB`;
  if (unit === 'seconds') return v < 10 ? `${Math.round(v * 1000)} ms` : `${v.toFixed(1)} s`;
  if (unit === 'ratio') return v.toFixed(2);
  return short(v);
}

const short = (v) => (v >= 1000 ? `${+(v / 1000).toFixed(1)}k` : String(+v.toFixed(v < 10 ? 2 : 1)));

export function plots(paused) {
  const drawn = new Map();
  const look = () => {
    for (const [box, p] of drawn) if (!box.isConnected) { p.end(); drawn.delete(box); }
    for (const figure of document.querySelectorAll('figure.plot')) {
      const box = figure.querySelector('.canvas');
      if (!drawn.has(box)) drawn.set(box, new Plot(figure, box));
      drawn.get(box).update();
    }
  };
  document.addEventListener('toggle', (e) => {
    if (e.target.matches?.('details.lazy') && e.target.open) fill(e.target).then(look);
  }, true);
  dark.addEventListener('change', () => { for (const p of drawn.values()) p.redraw(); });
  look();
  setInterval(() => { if (!document.hidden && !paused()) look(); }, calm);
  return { look };
}

// fill puts a subject's plots below its row, with what the page of its past has.
async function fill(details) {
  const box = details.querySelector('.more');
  if (box.childElementCount) return;
  try {
    const r = await fetch(`/past?subject=${encodeURIComponent(details.dataset.subject)}`, { headers: { 'X-Hourthree-Part': 'main' }, signal: AbortSignal.timeout(8000) });
    if (!r.ok) throw new Error();
    const page = new DOMParser().parseFromString(await r.text(), 'text/html');
    const parts = [...page.querySelectorAll('section')];
    for (const part of parts) {
      const h = document.createElement('p');
      h.className = 'heading';
      h.textContent = part.querySelector('h2').textContent;
      part.querySelector('h2').replaceWith(h);
      for (const marked of part.querySelectorAll('[id]')) marked.id += `-${details.id}`;
    }
    box.replaceChildren(...(parts.length ? parts.map((p) => document.importNode(p, true)) : ['Nothing is known of it.']));
  } catch {
    box.replaceChildren('The router does not answer. Close this and open it again.');
  }
}

class Plot {
  constructor(figure, box) {
    this.figure = figure;
    this.box = box;
    this.tag = '';
    this.asked = 0;
    this.range = '';
    this.resize = new ResizeObserver(() => this.size());
    this.resize.observe(box);
    box.addEventListener('keydown', (e) => this.key(e));
  }

  async update() {
    const { series, subject, range } = this.figure.dataset;
    if (this.busy || (this.range === range && Date.now() - this.asked < calm - 500)) return;
    this.busy = true;
    this.asked = Date.now();
    try {
      if (this.range !== range) this.tag = '';
      this.range = range;
      const r = await fetch(`/plot?${new URLSearchParams({ series, subject, range })}`, { headers: this.tag ? { 'If-None-Match': this.tag } : {}, cache: 'no-store', signal: AbortSignal.timeout(8000) });
      if (r.status === 304 || !r.ok) return;
      this.tag = r.headers.get('ETag') ?? '';
      this.answer = await r.json();
      this.draw();
    } catch { /* the page says that the router does not answer */ } finally {
      this.busy = false;
    }
  }

  draw() {
    const lines = (this.answer.series ?? []).filter((s) => s.values?.some((v) => v != null));
    const data = [this.answer.at, ...lines.map((s) => s.values)];
    const names = lines.map((s) => s.name).join();
    if (this.plot && this.names === names) {
      this.plot.setData(data);
      this.rest();
      return;
    }
    this.end(true);
    this.names = names;
    if (!lines.length) return;
    this.plot = new uPlot(this.options(lines), data, this.box);
    this.box.tabIndex = 0;
    this.box.setAttribute('role', 'group');
    this.box.setAttribute('aria-label', `Plot of ${lines.map((s) => s.name.replaceAll('_', ' ')).join(', ')}. Arrow keys read values.`);
    this.plot.root.querySelector('canvas').setAttribute('aria-hidden', 'true');
    this.rest();
  }

  // rest has the legend say the newest values while nobody points at others.
  rest() {
    setTimeout(() => { // after uPlot has drawn
      if (this.plot && this.plot.cursor.idx == null) this.plot.setLegend({ idx: this.answer.at.length - 1 }, false);
    });
  }

  options(lines) {
    const css = getComputedStyle(document.documentElement);
    const ink = css.getPropertyValue('--soft').trim();
    const grid = css.getPropertyValue('--line').trim();
    const unit = lines[0].unit;
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: '12px system-ui, sans-serif' };
    return {
      width: this.box.clientWidth || 300, height: 220, tzDate: (t) => uPlot.tzDate(new Date(t * 1000), 'Etc/UTC'),
      scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] } },
      axes: [{ ...axis, space: 70, values: [[3600 * 24, '{YYYY}-{MM}-{DD}'], [3600, '{HH}:{mm}', null, null, '{HH}:{mm}\n{YYYY}-{MM}-{DD}'], [60, '{HH}:{mm}'], [1, '{HH}:{mm}:{ss}']].map((v) => [v[0], v[1], null, null, v[4] ?? null, null, null, null, 1]) },
        { ...axis, size: unit === 'bytes' ? 84 : 62, ...(unit === 'bytes' && { incrs: Array.from({ length: 50 }, (_, i) => 2 ** i) }), values: (_, all) => all.map((v) => say(unit, v)) }],
      series: [{ label: 'UTC', value: (_, t) => (t == null ? '–' : new Date(t * 1000).toISOString().slice(0, 19).replace('T', ' ')) },
        ...lines.map((s) => {
          const [pair, dash] = looks[s.name] ?? [['#3b3b42', '#d6d6dc'], []];
          return { label: s.name.replaceAll('_', ' '), stroke: () => colour(pair), dash, width: 2, points: { show: false }, value: (_, v) => say(s.unit, v) };
        })],
      cursor: { drag: { x: false, y: false }, points: { size: 6 } },
      legend: { live: true },
    };
  }

  // key moves the cursor by a value; the legend says what is under it.
  key(e) {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[e.key];
    if (!step || !this.plot) return;
    e.preventDefault();
    const last = this.answer.at.length - 1;
    const i = Math.min(last, Math.max(0, (this.plot.cursor.idx ?? last) + step));
    this.plot.setCursor({ left: this.plot.valToPos(this.answer.at[i], 'x'), top: 20 });
    this.told ??= this.box.parentElement.appendChild(Object.assign(document.createElement('p'), { className: 'unseen', role: 'status' }));
    this.told.dataset.keep = 'told';
    this.told.textContent = [new Date(this.answer.at[i] * 1000).toISOString().slice(11, 19), ...this.answer.series.map((s) => `${s.name.replaceAll('_', ' ')} ${say(s.unit, s.values[i])}`)].join(', ');
  }

  size() {
    if (this.plot && this.box.clientWidth) this.plot.setSize({ width: this.box.clientWidth, height: 220 });
  }

  redraw() {
    if (!this.answer) return;
    this.names = null;
    this.draw();
  }

  end(again) {
    this.plot?.destroy();
    this.plot = null;
    if (!again) this.resize.disconnect();
  }
}
