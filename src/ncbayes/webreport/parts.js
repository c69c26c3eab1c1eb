// Small parts of the page: elements, numbers, sliders. Text of users goes in as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";
const ARRAYS = { u1: Uint8Array, u2: Uint16Array, i2: Int16Array, u4: Uint32Array, f4: Float32Array };

// The numbers that Python's packing.packed wrote.
function unpacked(pack) {
  const text = atob(pack.data);
  const bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  return new ARRAYS[pack.type](bytes.buffer);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const element = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const drawn = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// So many decimals, and no minus in front of zeros only.
function fixed(value, decimals) {
  if (value === null || !Number.isFinite(value)) return "unknown";
  const text = value.toFixed(Math.max(0, decimals));
  return Number(text) === 0 ? text.replace("-", "") : text;
}

// So many significant digits, written out where that is short.
function digits(value, count = 3) {
  if (value === null || !Number.isFinite(value)) return "unknown";
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size < -4 || size > 6) return value.toExponential(count - 1);
  return fixed(value, Math.max(0, count - 1 - size));
}

// A number and its sign stay on one line: the space does not break.
const percent = (share, decimals = 1) => (share === null ? "unknown" : `${fixed(100 * share, decimals)}\u00a0%`);
const levelPercent = (level) => `${Number((100 * level).toFixed(6))}\u00a0%`;
const levelWords = (level) => `equal-tailed ${levelPercent(level)} interval`;
const many = (count, one) => `${count} ${one}${count === 1 ? "" : "s"}`;

let numbered = 0;
const newId = (stem) => `${stem}-${++numbered}`;

function section(title, ...children) {
  const id = newId("part");
  return element("section", { id: `${id}-section`, "aria-labelledby": id },
    element("h2", { id, text: title }), ...children);
}

// Grades by icon and word, so that colour is not all that tells them.
const GRADES = { good: "✓", fair: "≈", poor: "⚠", failed: "✕" };

function badge(grade) {
  return element("span", { class: `badge ${grade}` }, element("span", { "aria-hidden": "true", text: `${GRADES[grade]} ` }), grade);
}

// What stands directly above every result of a failed fit; nothing if there are no words.
function failedBanner(words) {
  if (!words) return [];
  return [element("p", { class: "banner failed", role: "note" }, element("span", { "aria-hidden": "true", text: `${GRADES.failed} ` }), element("strong", { text: words }))];
}

// A slider over a list: positions by number, read out as their words.
function slider(name, count, start, words, changed, id) {
  const shown = element("output", {});
  const input = element("input", { type: "range", id, min: 0, max: Math.max(count - 1, 0), step: 1, value: start });
  const say = () => {
    shown.textContent = words(input.valueAsNumber);
    input.setAttribute("aria-valuetext", shown.textContent);
  };
  input.addEventListener("input", () => { say(); changed(input.valueAsNumber); });
  say();
  const label = element("label", { for: id, text: `${name}: ` }, shown);
  return { box: element("div", { class: "control wide" }, label, input), input, say };
}

// Radio buttons: choices are pairs of a value and its words.
function choice(name, choices, start, changed, id) {
  const buttons = choices.map(([value, words]) => element("label", {},
    element("input", { type: "radio", name: id, value, checked: value === start, onchange: () => changed(value) }), words));
  return element("fieldset", { class: "control", id },
    element("legend", { text: name }), element("div", { class: "choices" }, ...buttons));
}

function select(name, choices, start, changed, id) {
  const options = choices.map(([value, words]) => element("option", { value, selected: value === start, text: words }));
  const list = element("select", { id, onchange: () => changed(Number(list.value)) }, ...options);
  return { box: element("div", { class: "control" }, element("label", { for: id, text: name }), list), list };
}

function searchBox(name, changed, entered, id) {
  const input = element("input", { type: "search", id, autocomplete: "off", spellcheck: "false" });
  input.addEventListener("input", () => changed(input.value));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") entered(input.value);
  });
  return { box: element("div", { class: "control" }, element("label", { for: id, text: name }), input), input };
}

function checkbox(name, start, changed, id) {
  const input = element("input", { type: "checkbox", id, checked: start, onchange: () => changed(input.checked) });
  return element("div", { class: "control choices" }, element("label", {}, input, name));
}

// A box in which a wide table scrolls; it can be scrolled by keyboard too.
function scrolling(name, table) {
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name }, table);
}
