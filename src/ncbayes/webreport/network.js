// The network of a graphical model: what is selected, the drawing, the panel of an edge, the table.

// The colour of an edge, by the probability that its norm exceeds the threshold.
const SURENESS = [
  [0.99, "#08264f", "99\u00a0% and more"],
  [0.95, "#1f4f94", "95 to 99\u00a0%"],
  [0.8, "#3f74b5", "80 to 95\u00a0%"],
  [0.5, "#6b8fbd", "50 to 80\u00a0%"],
  [0, "#9a9a9a", "below 50\u00a0%"],
];
// More lines than this are slow and can't be told apart.
const MOST_DRAWN = 800;
// How near the pointer must be to an edge, in pixels.
const REACH = 14;
const RULES = {
  median: "some posterior median exceeds the threshold in size",
  interval: "some interval excludes zero; the threshold changes the probabilities only",
};

function readNetwork(network) {
  const kinds = network.kinds.length;
  const groups = network.groups.map((group) => {
    const found = { ...group };
    for (const name of ["strength", "norm", "counts", "median", "low", "high"]) found[name] = unpacked(group[name]);
    found.lag = group.lag && unpacked(group.lag);
    found.largest = new Float64Array(network.edges);
    found.excludes = new Uint8Array(network.edges);
    for (let edge = 0; edge < network.edges; edge++) {
      for (let k = edge * kinds; k < (edge + 1) * kinds; k++) {
        found.largest[edge] = Math.max(found.largest[edge], Math.abs(found.median[k]));
        if (found.low[k] > 0 || found.high[k] < 0) found.excludes[edge] = 1;
      }
    }
    return found;
  });
  return { ...network, ends: unpacked(network.ends), groups };
}

function networkView(packedNetwork, failed) {
  const net = readNetwork(packedNetwork);
  const state = { group: 0, rule: "interval", step: net.start, search: "", edge: null, places: [] };
  const view = { net, state, ...networkParts(net) };
  view.controls.append(...networkControls(view));
  connectDrawing(view);
  new ResizeObserver(() => drawNetwork(view)).observe(view.drawing);
  refresh(view);
  showEdge(view, null);
  return section("Network", element("p", { text: networkWords(net) }), view.controls, view.count, ...failedBanner(failed),
    element("div", { class: "stage" }, element("div", {}, view.drawing, view.legend), view.panel),
    element("h3", { text: "The selected edges as a table" }), ...failedBanner(failed), view.table.box);
}

function networkWords(net) {
  const less = net.edges < net.possible ? ` The page has room for the ${net.edges} strongest of ${net.possible} pairs.` : "";
  return `${many(net.nodes.length, "node")}, ${many(net.possible, "pair")}. The wider an edge, the stronger; the darker, the surer that its norm (the square root of the sum of its squared coefficients) exceeds the threshold.${less}`;
}

function networkParts(net) {
  const svg = drawn("svg", {
    id: "network", tabindex: 0, role: "application", "aria-roledescription": "network",
    "aria-label": `Network of ${many(net.nodes.length, "node")}. Arrow keys go from edge to edge, the strongest first; Escape leaves the edge.`,
  });
  const legend = element("ul", { class: "legend", "aria-label": "Colours of the edges" },
    element("li", { text: "Probability:" }),
    ...SURENESS.map(([, colour, words]) => {
      const swatch = element("span", { class: "swatch", "aria-hidden": "true" });
      swatch.style.background = colour;
      return element("li", {}, swatch, words);
    }),
    net.kinds.length === 1 ? element("li", { text: `Dashed: ${net.kinds[0]} below zero` }) : null);
  return {
    svg, legend,
    controls: element("div", { class: "controls" }),
    count: element("p", { id: "count", role: "status" }),
    drawing: element("div", { class: "drawing" }, svg),
    panel: element("div", { class: "panel", id: "edge-panel", "aria-live": "polite" }),
    table: sortableTable("Edges", edgeColumns(net), "strength"),
  };
}

function networkControls(view) {
  const { net, state } = view;
  const parts = [];
  if (net.groups.length > 1) {
    const groups = net.groups.map((group, k) => [k, group.label]);
    parts.push(select("Group", groups, 0, (group) => { state.group = group; refresh(view); }, "group").box);
  }
  const rules = [["interval", `${levelPercent(net.level)} interval`], ["median", "median"]];
  parts.push(choice("Rule", rules, state.rule, (rule) => { state.rule = rule; refresh(view); }, "rule"));
  parts.push(slider("Threshold", net.thresholds.length, state.step, (step) => String(net.thresholds[step]),
    (step) => { state.step = step; refresh(view); }, "threshold").box);
  const find = (text) => { state.search = text; refresh(view); };
  const enter = () => { if (state.search && state.listed.length) { showEdge(view, state.listed[0]); view.svg.focus(); } };
  parts.push(searchBox("Find a node", find, enter, "search").box);
  return parts;
}

const ofGroup = (view) => view.net.groups[view.state.group];
const endsOf = (view, edge) => [view.net.ends[2 * edge], view.net.ends[2 * edge + 1]];
const namesOf = (view, edge) => endsOf(view, edge).map((node) => view.net.nodes[node]);

function probability(view, edge) {
  const group = ofGroup(view);
  return group.counts[edge * view.net.thresholds.length + view.state.step] / group.draws;
}

function isSelected(view, edge) {
  const group = ofGroup(view);
  return view.state.rule === "median" ? group.largest[edge] > view.net.thresholds[view.state.step] : group.excludes[edge] === 1;
}

// Only an edge with one coefficient has a sign.
const isNegative = (view, edge) => view.net.kinds.length === 1 && ofGroup(view).median[edge] < 0;

// The numbers of the nodes whose names hold the text; of a whole name only that node.
function matches(view) {
  const text = view.state.search.trim().toLowerCase();
  if (!text) return new Set();
  const names = view.net.nodes.map((name) => name.toLowerCase());
  const whole = names.indexOf(text);
  if (whole >= 0) return new Set([whole]);
  return new Set([...names.keys()].filter((node) => names[node].includes(text)));
}

// After any control moved: select, list, count, draw.
function refresh(view) {
  const { net, state } = view;
  const strength = ofGroup(view).strength;
  state.found = matches(view);
  state.selected = [...Array(net.edges).keys()].filter((edge) => isSelected(view, edge));
  state.selected.sort((one, other) => strength[other] - strength[one]);
  state.listed = state.selected;
  if (state.search.trim()) state.listed = state.selected.filter((edge) => endsOf(view, edge).some((node) => state.found.has(node)));
  view.count.textContent = countWords(view);
  view.table.show(state.listed.map((edge) => edgeRow(view, edge)), tableCaption(view));
  drawNetwork(view);
  if (state.edge !== null) showEdge(view, state.edge);
}

function countWords(view) {
  const { net, state } = view;
  const drawnWords = state.selected.length > MOST_DRAWN ? ` The ${MOST_DRAWN} strongest are drawn.` : "";
  return `${state.selected.length} of ${net.possible} pairs are selected: ${RULES[state.rule]}.${drawnWords}${searchWords(view)}`;
}

function searchWords(view) {
  const { net, state } = view;
  if (!state.search.trim()) return "";
  if (!state.found.size) return " No node has such a name.";
  const name = state.found.size === 1 ? net.nodes[[...state.found][0]] : `${state.found.size} nodes`;
  return ` ${name}: ${many(state.listed.length, "selected edge")}.`;
}

function tableCaption(view) {
  return `${many(view.state.listed.length, "edge")}: posterior medians; intervals are equal-tailed, of ${levelPercent(view.net.level)}; probability that the norm exceeds ${view.net.thresholds[view.state.step]}. A prior that shrinks pulls weak edges to 0, and their intervals with them.`;
}

function edgeColumns(net) {
  const numbers = [["strength", "strength"], ["norm", "norm"], ["probability", "probability"]];
  return [
    { key: "one", name: "node 1" }, { key: "other", name: "node 2" },
    ...numbers.map(([key, name]) => ({ key, name, number: true })),
    ...net.kinds.map((kind, k) => ({ key: `kind${k}`, name: kind, number: true })),
  ];
}

function edgeRow(view, edge) {
  const group = ofGroup(view), kinds = view.net.kinds.length;
  const [one, other] = namesOf(view, edge);
  const sure = probability(view, edge);
  const row = {
    id: edge, one: [one, one], other: [other, other],
    strength: [group.strength[edge], fixed(group.strength[edge], 3)],
    norm: [group.norm[edge], fixed(group.norm[edge], 3)],
    probability: [sure, percent(sure)],
  };
  for (let k = 0; k < kinds; k++) {
    const at = edge * kinds + k;
    row[`kind${k}`] = [group.median[at], `${fixed(group.median[at], 3)} (${intervalWords(group, at)})`];
  }
  return row;
}

const intervalWords = (group, at) => `${fixed(group.low[at], 3)} to ${fixed(group.high[at], 3)}`;

// Where the nodes stand in pixels, for the width the page has.
function setPlaces(view) {
  const { net, state } = view;
  const width = Math.max(view.drawing.clientWidth, 240);
  const longest = Math.max(...net.nodes.map((name) => shortName(name).length));
  const side = Math.min(width * 0.3, 7.4 * longest + 24);
  state.font = net.nodes.length > 40 || width < 420 ? 11 : 13;
  let [left, top, across, down] = [20, 20, width - 20 - Math.min(side, 90), Math.min(Math.max(width * 0.85, 320), 680) - 40];
  if (net.circle) {
    across = down = Math.min(width - 2 * side, 490);
    [left, top] = [(width - across) / 2, 36];
  }
  state.places = net.nodes.map((_, k) => [left + net.x[k] * across, top + net.y[k] * down]);
  state.size = [width, down + 2 * top];
}

const shortName = (name) => (name.length <= 20 ? name : `${name.slice(0, 11)}...${name.slice(-6)}`);

function drawNetwork(view) {
  const { svg, state } = view;
  setPlaces(view);
  svg.setAttribute("viewBox", `0 0 ${state.size[0]} ${state.size[1]}`);
  svg.style.height = `${state.size[1]}px`;
  svg.replaceChildren(edgeLines(view), nodeDots(view), nodeLabels(view), drawn("g", { class: "mark" }));
  markEdge(view);
}

function edgeLines(view) {
  const { state } = view;
  const strength = ofGroup(view).strength;
  const top = strength.reduce((most, each) => Math.max(most, each), 0) || 1;
  const searching = state.search.trim() !== "", kept = new Set(state.listed);
  state.drawn = state.selected.slice(0, MOST_DRAWN);
  // Thinner where the page is narrow or the edges are many.
  const widest = Math.min(9, state.size[0] / 80) * Math.min(1, Math.max(0.3, Math.sqrt(60 / state.drawn.length)));
  // The strongest last, on top.
  return drawn("g", { class: "edges" }, ...[...state.drawn].reverse().map((edge) => {
    const [[x1, y1], [x2, y2]] = endsOf(view, edge).map((node) => state.places[node]);
    const sure = probability(view, edge), faded = searching && !kept.has(edge);
    const wide = 0.8 + widest * (strength[edge] / top), dashed = isNegative(view, edge);
    return drawn("line", {
      x1, y1, x2, y2, "data-edge": edge, stroke: SURENESS.find(([least]) => sure >= least)[1],
      "stroke-width": wide, "stroke-opacity": faded ? 0.12 : 0.92,
      "stroke-dasharray": dashed ? `${wide + 6} ${wide / 2 + 4}` : null, "stroke-linecap": dashed ? "butt" : "round",
    });
  }));
}

function nodeDots(view) {
  const { net, state } = view;
  const size = net.nodes.length > 40 ? 4 : 6.5;
  return drawn("g", { class: "nodes" }, ...state.places.map(([cx, cy], node) => drawn("circle", {
    cx, cy, "data-node": node, r: state.found.has(node) ? size + 4 : size,
    fill: state.found.has(node) ? "#B34D00" : "#ffffff", stroke: "#1a1a1a", "stroke-width": state.found.has(node) ? 2.5 : 1.5,
  }, drawn("title", { text: net.nodes[node] }))));
}

// Names beside the nodes; where two would overlap, that of the node with the stronger edges.
function nodeLabels(view) {
  const { net, state } = view;
  const weight = new Float64Array(net.nodes.length), strength = ofGroup(view).strength;
  for (const edge of state.selected) for (const node of endsOf(view, edge)) weight[node] += strength[edge];
  const first = new Set([...state.found, ...(state.edge === null ? [] : endsOf(view, state.edge))]);
  const order = [...weight.keys()].sort((one, other) => first.has(other) - first.has(one) || weight[other] - weight[one]);
  const size = state.font, taken = [], parts = [];
  for (const node of order) {
    const spot = labelSpot(net, state, node, size);
    const hit = taken.some((box) => box[0] < spot.box[2] && spot.box[0] < box[2] && box[1] < spot.box[3] && spot.box[1] < box[3]);
    if (hit && !first.has(node)) continue;
    taken.push(spot.box);
    const bold = first.has(node) ? "700" : "400";
    parts.push(drawn("text", {
      x: spot.x, y: spot.y, "text-anchor": spot.anchor, "font-size": size, "font-weight": bold, "pointer-events": "none",
      stroke: "#ffffff", "stroke-width": 3, "paint-order": "stroke", "stroke-linejoin": "round", text: shortName(net.nodes[node]),
    }));
  }
  return drawn("g", { class: "names", "aria-hidden": "true" }, ...parts);
}

function labelSpot(net, state, node, size) {
  const [cx, cy] = state.places[node];
  const wide = shortName(net.nodes[node]).length * size * 0.56;
  let anchor = "start", x = cx + 9, y = cy + size * 0.35;
  if (net.circle) {
    const [dx, dy] = [net.x[node] - 0.5, net.y[node] - 0.5];
    anchor = Math.abs(dx) < 0.06 ? "middle" : dx > 0 ? "start" : "end";
    x = cx + 28 * dx;
    y = cy + size * 0.35 + 34 * dy;
  }
  const from = anchor === "start" ? x : anchor === "end" ? x - wide : x - wide / 2;
  return { x, y, anchor, box: [from, y - size, from + wide, y + 3] };
}

function markEdge(view) {
  const mark = view.svg.querySelector(".mark"), { state } = view;
  if (!mark) return;
  mark.replaceChildren();
  if (state.edge === null) return;
  const [[x1, y1], [x2, y2]] = endsOf(view, state.edge).map((node) => state.places[node]);
  const line = { x1, y1, x2, y2, "stroke-linecap": "round", "pointer-events": "none" };
  mark.append(drawn("line", { ...line, stroke: "#ffffff", "stroke-width": 9, "stroke-opacity": 0.9 }),
    drawn("line", { ...line, stroke: "#B34D00", "stroke-width": 5 }));
  for (const [cx, cy] of [[x1, y1], [x2, y2]]) mark.append(drawn("circle", { cx, cy, r: 8, fill: "#B34D00", stroke: "#ffffff", "stroke-width": 2, "pointer-events": "none" }));
}

// Pointer and keys: the nearest edge, or the next one.
function connectDrawing(view) {
  const { svg, state } = view;
  const point = (event) => {
    const edge = nearestEdge(view, event);
    if (edge !== null && edge !== state.edge) pick(view, edge);
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  svg.addEventListener("focus", () => {
    if (state.edge === null && state.listed.length && svg.matches(":focus-visible")) pick(view, state.listed[0]);
  });
  svg.addEventListener("keydown", (event) => {
    const next = nextEdge(view, event.key);
    if (next === undefined) return;
    event.preventDefault();
    pick(view, next);
  });
}

function nextEdge(view, key) {
  const list = view.state.listed, at = list.indexOf(view.state.edge);
  if (key === "Escape") return null;
  if (!list.length) return undefined;
  // Without an edge, at is -1: the next is the first one, and the one before is the last.
  const last = list.length - 1, after = at === last ? 0 : at + 1, before = at <= 0 ? last : at - 1;
  const moves = { ArrowRight: after, ArrowDown: after, ArrowLeft: before, ArrowUp: before, Home: 0, End: last };
  return key in moves ? list[moves[key]] : undefined;
}

function nearestEdge(view, event) {
  const { svg, state } = view;
  const box = svg.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * state.size[0], y = ((event.clientY - box.top) / box.height) * state.size[1];
  let best = null, least = event.pointerType === "touch" ? 2 * REACH : REACH;
  const allowed = state.search.trim() ? state.listed : state.drawn;
  for (const edge of allowed) {
    const [[x1, y1], [x2, y2]] = endsOf(view, edge).map((node) => state.places[node]);
    const [dx, dy] = [x2 - x1, y2 - y1];
    const along = Math.min(1, Math.max(0, ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1)));
    const away = Math.hypot(x - x1 - along * dx, y - y1 - along * dy);
    if (away < least) [best, least] = [edge, away];
  }
  return best;
}

function pick(view, edge) {
  showEdge(view, edge);
  view.svg.querySelector(".names").replaceWith(nodeLabels(view));
  markEdge(view);
}

function showEdge(view, edge) {
  view.state.edge = edge;
  view.table.pick(edge);
  markEdge(view);
  if (edge === null) {
    view.panel.replaceChildren(element("h3", { text: "An edge" }),
      element("p", { class: "hint", text: "Point at an edge, or press Tab until the network has the frame and then the arrow keys, to read its numbers here." }));
    return;
  }
  const [one, other] = namesOf(view, edge), sure = probability(view, edge), group = ofGroup(view);
  const threshold = view.net.thresholds[view.state.step];
  view.panel.replaceChildren(
    element("h3", { text: `${one} and ${other}` }),
    element("p", {}, "Norm ", element("b", { id: "edge-norm", text: fixed(group.norm[edge], 3) }), " (posterior median); probability that it exceeds ",
      `${threshold}: `, element("b", { id: "edge-probability", text: percent(sure) }), "; strength ",
      element("b", { id: "edge-strength", text: fixed(group.strength[edge], 3) }),
      isSelected(view, edge) ? "; selected." : "; not selected."),
    coefficientTable(view, edge), ...lagWords(view, edge));
}

function coefficientTable(view, edge) {
  const group = ofGroup(view), kinds = view.net.kinds;
  const rows = kinds.map((kind, k) => {
    const at = edge * kinds.length + k;
    return element("tr", {}, element("th", { scope: "row", text: kind }),
      element("td", { class: "number", text: fixed(group.median[at], 3) }), element("td", { text: intervalWords(group, at) }));
  });
  const heads = ["coefficient", "median", `${levelPercent(view.net.level)} interval`];
  return element("table", { id: "edge-coefficients" },
    element("caption", { text: `Posterior medians and ${levelWords(view.net.level)}s` }),
    element("thead", {}, element("tr", {}, ...heads.map((text, k) => element("th", { scope: "col", class: k === 1 ? "number" : null, text })))),
    element("tbody", {}, ...rows));
}

function lagWords(view, edge) {
  const lag = ofGroup(view).lag;
  if (!lag) return [];
  const [angle, low, high] = [0, 1, 2].map((k) => lag[3 * edge + k]);
  const [one, other] = namesOf(view, edge);
  const ahead = angle >= 0 ? `${one} ahead of ${other}` : `${other} ahead of ${one}`;
  const degrees = fixed((Math.abs(angle) * 180) / Math.PI, 0);
  return [element("p", { id: "edge-lag" },
    `Preferred lag of ${one} to ${other}: `, element("b", { text: `${fixed(angle, 2)} radians` }),
    ` (${ahead} by ${degrees} degrees); shortest arc of ${levelPercent(view.net.level)}: ${fixed(low, 2)} to ${fixed(high, 2)} radians. It means little where the probability is low.`)];
}
