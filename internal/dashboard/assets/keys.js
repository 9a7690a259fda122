// Shortcuts of one key. They leave alone what is typed into a field and every
// combination that the browser or a screen reader has, and can be switched off.

const store = 'hourthree-keys';

export function keys(pause) {
  const help = document.getElementById('help');
  const on = document.getElementById('keys-on');
  on.checked = localStorage.getItem(store) !== 'off';
  on.addEventListener('change', () => localStorage.setItem(store, on.checked ? 'on' : 'off'));
  document.getElementById('help-open').addEventListener('click', () => help.showModal());
  document.getElementById('help-close').addEventListener('click', () => help.close());
  document.addEventListener('keydown', (e) => {
    if (!on.checked || e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || e.isComposing) return;
    if (e.target.closest?.('input, select, textarea, [contenteditable]') || document.querySelector('dialog[open]')) return;
    if (e.key === '?') help.showModal();
    else if (e.key === 'p') pause();
    else if (e.key === '/') document.getElementById('q')?.focus();
    else if (/^[1-9]$/.test(e.key)) document.querySelector(`#nav a[data-key="${e.key}"]`)?.click();
    else return;
    e.preventDefault();
  });
}
