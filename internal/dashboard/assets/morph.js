// Makes one tree like another and keeps every node that is in both, so that focus,
// scroll and a screen reader's place stay with it. Elements with an id are the same
// wherever they stand. What has data-keep belongs to the reader or to a script.

export function morph(from, to) {
  const held = document.activeElement;
  children(from, to);
  if (!held || held === document.activeElement || held === document.body) return;
  if (held.isConnected) held.focus({ preventScroll: true }); // it was moved
  else document.getElementById('main').focus({ preventScroll: true });
}

function children(from, to) {
  const wanted = new Set();
  for (const c of to.children) if (c.id) wanted.add(c.id);
  const here = new Map();
  for (const c of from.children) if (c.id) here.set(c.id, c);
  let at = from.firstChild;
  for (const next of [...to.childNodes]) {
    const known = next.nodeType === Node.ELEMENT_NODE && next.id ? here.get(next.id) : undefined;
    while (at && at !== known && (known ? !wanted.has(at.id) : next.id ? false : at.id && !wanted.has(at.id))) at = drop(at);
    let same = null;
    if (known && known.nodeName === next.nodeName) same = known;
    else if (at && !at.id && !next.id && at.nodeType === next.nodeType && at.nodeName === next.nodeName) same = at;
    if (!same) {
      from.insertBefore(document.importNode(next, true), at);
      continue;
    }
    if (same !== at) place(from, same, at);
    update(same, next);
    at = same.nextSibling;
  }
  while (at) at = drop(at);
}

function drop(node) {
  const after = node.nextSibling;
  node.remove();
  return after;
}

function place(parent, node, before) {
  if (parent.moveBefore) parent.moveBefore(node, before); // keeps focus and scroll
  else parent.insertBefore(node, before);
}

function update(a, b) {
  if (a.nodeType !== Node.ELEMENT_NODE) {
    if (a.nodeValue !== b.nodeValue) a.nodeValue = b.nodeValue;
    return;
  }
  if (a.dataset?.keep) return;
  const open = a.nodeName === 'DETAILS' || a.nodeName === 'DIALOG';
  for (const { name, value } of b.attributes) {
    if (!(open && name === 'open') && a.getAttribute(name) !== value) a.setAttribute(name, value);
  }
  for (const { name } of [...a.attributes]) {
    if (!(open && name === 'open') && !b.hasAttribute(name)) a.removeAttribute(name);
  }
  children(a, b);
}
