// Nodes from data. Names, reasons and errors are text of strangers: here they become text nodes,
// and nothing in this page ever becomes markup.

const DRAWN = "http://www.w3.org/2000/svg";

/** An element; `children` are nodes, texts, numbers, or lists of them, and null is nothing. */
export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An element of a drawing, as `h` makes those of the document. */
export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(DRAWN, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on") || name === "style") throw new Error(`attribute ${name} is not used`);
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter(isThere).map(asNode));
  return node;
}

/** Make `old` look like `wanted`; what is equal stays, with its focus, selection and open details. */
export function patch(old, wanted) {
  if (old.nodeName !== wanted.nodeName || keyOf(old) !== keyOf(wanted)) {
    old.replaceWith(wanted);
  } else if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== wanted.data) old.data = wanted.data;
  } else {
    patchAttributes(old, wanted);
    patchChildren(old, wanted);
  }
}

/** Replace what is in `parent` by `wanted` nodes, as `patch` does. */
export function show(parent, ...wanted) {
  const copy = parent.cloneNode(false);
  copy.append(...wanted.flat(Infinity).filter(isThere));
  patchChildren(parent, copy);
}

function isThere(child) {
  return child !== null && child !== undefined && child !== false;
}

function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") : null;
}

function patchAttributes(old, wanted) {
  const isUsers = (name) => name === "open"; // of details: who looks decides
  for (const { name } of [...old.attributes]) {
    if (!wanted.hasAttribute(name) && !isUsers(name)) old.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (old.getAttribute(name) !== value && !isUsers(name)) old.setAttribute(name, value);
  }
}

function patchChildren(parent, wanted) {
  const keyed = new Map([...parent.children].filter(keyOf).map((node) => [keyOf(node), node]));
  let place = parent.firstChild;
  for (const child of [...wanted.childNodes]) {
    const kept = keyed.get(keyOf(child));
    keyed.delete(keyOf(child));
    if (kept && kept !== place) {
      parent.insertBefore(kept, place);
      place = kept;
    }
    if (place === null || (!kept && keyOf(place) !== keyOf(child))) {
      parent.insertBefore(child, place);
      continue;
    }
    const next = place.nextSibling;
    patch(place, child);
    place = next;
  }
  while (place !== null) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}
