// Densities over time: maps on a canvas, curves with bands, and the time slider of both.

const MODES = { density: "density", sd: "uncertainty (sd)", change: "change" };
// How long a time stays when the times are played, in milliseconds.
const PAUSE = 900;

function readDensity(density) {
  const found = { ...density };
  for (const name of ["mean", "sd", "low", "high", "cells", "nearest", "rise", "change_low", "change_high"]) {
    if (density[name]) found[name] = unpacked(density[name]);
  }
  found.places = density.points.places.map(unpacked);
  found.count = found.mean.length / density.times.length;
  found.unit = 10 ** -density.decimals;
  return found;
}

// The slider of times, with buttons to play them where motion is welcome.
function timeControls(view, changed) {
  const { density, state } = view;
  if (density.times.length < 2) return [];
  const move = slider("Time", density.times.length, state.time, (time) => timeWords(density, time), (time) => { state.time = time; changed(); }, "time");
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const button = element("button", { type: "button", id: "play", disabled: still, text: still ? "Play is off: your system asks for less motion" : "Play" });
  let timer = null;
  const stop = () => { clearInterval(timer); timer = null; button.textContent = "Play"; };
  button.addEventListener("click", () => {
    if (timer !== null) { stop(); return; }
    button.textContent = "Pause";
    timer = setInterval(() => view.moveTime((state.time + 1) % density.times.length), PAUSE);
  });
  view.moveTime = (time) => { move.input.value = time; move.input.dispatchEvent(new Event("input")); };
  return [move.box, element("div", { class: "control" }, button)];
}

const timeWords = (density, time) => `${density.times[time]} (${many(density.points.counts[time], "point")})`;

function densityWords(density) {
  const some = density.points.every > 1 ? ` One of ${density.points.every} points is drawn.` : "";
  const coarse = density.size < density.usual ? ` So that all ${density.times.length} times fit into the page, the grid has ${density.size} cells along the longer side, not ${density.usual}.` : "";
  return `The density is ${density.units} and integrates to one over the domain at every time. Numbers are posterior means of ${density.draws} draws, with ${levelWords(density.level)}s cell by cell.${coarse}${some}`;
}

// A density in the units of the user, from the whole number that is stored.
const shown = (density, whole) => fixed(whole * density.unit, density.decimals);

function mapView(packedMap, failed) {
  const density = readDensity(packedMap);
  const state = { mode: "density", time: 0, reference: density.references ? density.references[0] : 0, cell: null, points: true };
  const view = { density, state, ...mapParts(density) };
  view.pairs = new Map(density.pairs.map(([a, b], k) => [`${a},${b}`, k]));
  view.tables = { density: colourTable(VIRIDIS), sd: colourTable(CIVIDIS), change: colourTable(DIVERGING) };
  const changed = () => drawMap(view);
  const modes = Object.entries(MODES).filter(([mode]) => mode !== "change" || density.times.length > 1);
  view.controls.append(choice("Show", modes, "density", (mode) => setMode(view, mode), "mode"), ...timeControls(view, changed));
  if (density.times.length > 1) view.controls.append(referenceControl(view, changed));
  view.controls.append(checkbox("Data points", true, (points) => { state.points = points; changed(); }, "points"));
  connectMap(view);
  new ResizeObserver(changed).observe(view.drawing);
  changed();
  return section("Density map", element("p", { text: densityWords(density) }), view.controls, ...failedBanner(failed),
    element("div", { class: "stage" }, element("div", {}, view.drawing, view.scale), view.panel));
}

// A change from a time to itself shows nothing: then the slider goes to the other end.
function setMode(view, mode) {
  const { density, state } = view, last = density.times.length - 1;
  state.mode = mode;
  if (mode === "change" && state.time === state.reference) view.moveTime(state.time === last ? 0 : last);
  drawMap(view);
}

function mapParts(density) {
  const canvas = element("canvas", {
    id: "map", tabindex: 0, role: "application", "aria-roledescription": "map",
    "aria-label": `Map of the density by ${density.axes.join(" and ")}. Arrow keys move from cell to cell, and the numbers are read out.`,
  });
  return {
    canvas, drawing: element("div", { class: "drawing" }, canvas),
    controls: element("div", { class: "controls" }), scale: element("div", { class: "scale" }),
    panel: element("div", { class: "panel", id: "cell-panel", "aria-live": "polite" }),
  };
}

function referenceControl(view, changed) {
  const { density, state } = view;
  const choices = density.references.map((time) => [time, density.times[time]]);
  const made = select("Change since", choices, state.reference, (time) => { state.reference = time; changed(); }, "reference");
  view.reference = made.box;
  return made.box;
}

// The stored pair of the time and the reference: its number and whether it runs backwards.
function pairOf(view) {
  const { time, reference } = view.state;
  if (time === reference) return null;
  const back = time < reference;
  const at = view.pairs.get(back ? `${time},${reference}` : `${reference},${time}`);
  return at === undefined ? null : { at, back };
}

function valueAt(view, number) {
  const { density, state } = view, at = state.time * density.count + number;
  if (state.mode === "change") return density.mean[at] - density.mean[state.reference * density.count + number];
  return density[state.mode === "sd" ? "sd" : "mean"][at];
}

// The chance of an increase in percent, null where the two times are the same.
function riseAt(view, number) {
  const pair = pairOf(view);
  if (!pair) return null;
  const rise = view.density.rise[pair.at * view.density.count + number] % view.density.open;
  return pair.back ? 100 - rise : rise;
}

// Whether the chance, before it was rounded, leaves open if the density rose or fell.
function isOpen(view, number) {
  const pair = pairOf(view);
  return pair !== null && view.density.rise[pair.at * view.density.count + number] >= view.density.open;
}

function changeEnds(view, number) {
  const { density } = view, pair = pairOf(view);
  if (!pair || !density.change_low) return null;
  const at = pair.at * density.count + number, unit = 10 ** -density.change_decimals;
  const ends = [density.change_low[at] * unit, density.change_high[at] * unit];
  return pair.back ? [-ends[1], -ends[0]] : ends;
}

// One scale for all times: from zero, or the same on both sides of it.
function scaleOf(view) {
  const { density, state } = view;
  if (state.mode !== "change") return [0, density[state.mode === "sd" ? "sd" : "mean"].reduce((most, each) => Math.max(most, each), 1)];
  let reach = 1;
  const from = state.reference * density.count;
  for (let k = 0; k < density.mean.length; k++) reach = Math.max(reach, Math.abs(density.mean[k] - density.mean[from + (k % density.count)]));
  return [-reach, reach];
}

function drawMap(view) {
  const { canvas, density, state } = view;
  if (view.reference) view.reference.hidden = state.mode !== "change";
  const frame = mapFrame(view), pen = canvas.getContext("2d");
  const dense = window.devicePixelRatio || 1;
  canvas.width = Math.round(frame.width * dense);
  canvas.height = Math.round(frame.height * dense);
  canvas.style.height = `${frame.height}px`;
  pen.setTransform(dense, 0, 0, dense, 0, 0);
  const limits = scaleOf(view);
  pen.save();
  clipToOutline(view, pen, frame);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(mapImage(view, limits), frame.left, frame.top, frame.wide, frame.tall);
  if (state.mode === "change") hatch(view, pen, frame);
  pen.restore();
  drawOutline(view, pen, frame);
  drawAxes(density, pen, frame);
  if (state.points) drawPoints(view, pen, frame);
  drawCursor(view, pen, frame);
  drawScale(view, limits);
  readCell(view);
}

// Where the map stands on the canvas, and how coordinates become pixels.
function mapFrame(view) {
  const { density, drawing } = view;
  const width = Math.max(drawing.clientWidth, 240), left = 62, right = 12, top = 10, below = 44;
  const wide = Math.min(width - left - right, 620 / Math.max(density.tall, 0.4)), tall = wide * density.tall;
  const [low, high] = density.bounds;
  view.frame = {
    width, left, top, wide, tall, height: tall + top + below,
    x: scaled(low[0], high[0], left, left + wide), y: scaled(low[1], high[1], top + tall, top),
  };
  return view.frame;
}

// One pixel a cell; cells beyond the outline take their neighbour's colour and are cut off.
function mapImage(view, [low, high]) {
  const { density, state } = view, [rows, columns] = density.shape;
  const image = element("canvas", { width: columns, height: rows }), pen = image.getContext("2d");
  const pixels = pen.createImageData(columns, rows), colours = view.tables[state.mode];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const value = valueAt(view, density.nearest[row * columns + column]);
      const colour = colours[Math.round((255 * (value - low)) / (high - low || 1))];
      const at = 4 * ((rows - 1 - row) * columns + column);
      pixels.data.set([...colour, 255], at);
    }
  }
  pen.putImageData(pixels, 0, 0);
  return image;
}

function ringPath(view, frame) {
  const path = new Path2D();
  for (const pack of view.density.rings) {
    const ring = unpacked(pack);
    for (let k = 0; k < ring.length; k += 2) path[k ? "lineTo" : "moveTo"](frame.x(ring[k]), frame.y(ring[k + 1]));
    path.closePath();
  }
  return path;
}

function clipToOutline(view, pen, frame) {
  if (view.density.rings.length) pen.clip(ringPath(view, frame), "evenodd");
}

function drawOutline(view, pen, frame) {
  pen.strokeStyle = "#333333";
  pen.lineWidth = 1.2;
  if (view.density.rings.length) pen.stroke(ringPath(view, frame));
  else pen.strokeRect(frame.left, frame.top, frame.wide, frame.tall);
}

// Lines over the cells where it is open whether the density rose or fell.
function hatch(view, pen, frame) {
  if (!pairOf(view)) return;
  const { density } = view, [rows, columns] = density.shape;
  const open = new Path2D(), wide = frame.wide / columns, tall = frame.tall / rows;
  density.nearest.forEach((number, at) => {
    const row = Math.floor(at / columns);
    if (isOpen(view, number)) open.rect(frame.left + (at % columns) * wide, frame.top + (rows - 1 - row) * tall, wide, tall);
  });
  pen.save();
  pen.clip(open);
  pen.strokeStyle = "rgba(60, 60, 60, 0.45)";
  pen.lineWidth = 1;
  pen.beginPath();
  for (let x = -frame.tall; x < frame.wide; x += 7) {
    pen.moveTo(frame.left + x, frame.top + frame.tall);
    pen.lineTo(frame.left + x + frame.tall, frame.top);
  }
  pen.stroke();
  pen.restore();
}

function drawAxes(density, pen, frame) {
  const [low, high] = density.bounds, font = "system-ui, sans-serif";
  pen.fillStyle = "#1a1a1a";
  pen.font = `12px ${font}`;
  pen.textAlign = "center";
  const across = ticks(low[0], high[0], Math.max(2, frame.wide / 110)), up = ticks(low[1], high[1], Math.max(3, frame.tall / 90));
  for (const tick of across) pen.fillText(tick.toFixed(across.decimals), frame.x(tick), frame.top + frame.tall + 16);
  pen.fillText(shortName(density.axes[0]), frame.left + frame.wide / 2, frame.top + frame.tall + 34);
  pen.textAlign = "right";
  for (const tick of up) pen.fillText(tick.toFixed(up.decimals), frame.left - 6, frame.y(tick) + 4);
  pen.save();
  pen.translate(16, frame.top + frame.tall / 2);
  pen.rotate(-Math.PI / 2);
  pen.textAlign = "center";
  pen.fillText(shortName(density.axes[1]), 0, 0);
  pen.restore();
}

function drawPoints(view, pen, frame) {
  const places = view.density.places[view.state.time];
  const size = places.length > 800 ? 1.8 : 2.6;
  pen.fillStyle = "rgba(255, 255, 255, 0.85)";
  pen.strokeStyle = "#000000";
  pen.lineWidth = 0.8;
  for (let k = 0; k < places.length; k += 2) {
    pen.beginPath();
    pen.arc(frame.x(places[k]), frame.y(places[k + 1]), size, 0, 2 * Math.PI);
    pen.fill();
    pen.stroke();
  }
}

function drawCursor(view, pen, frame) {
  if (view.state.cell === null) return;
  const [rows, columns] = view.density.shape, { cell } = view.state;
  const wide = frame.wide / columns, tall = frame.tall / rows;
  const box = [frame.left + (cell % columns) * wide, frame.top + (rows - 1 - Math.floor(cell / columns)) * tall, wide, tall];
  pen.lineWidth = 4;
  pen.strokeStyle = "#ffffff";
  pen.strokeRect(...box);
  pen.lineWidth = 2;
  pen.strokeStyle = "#000000";
  pen.strokeRect(...box);
}

function drawScale(view, [low, high]) {
  const { density, state } = view;
  const stops = { density: VIRIDIS, sd: CIVIDIS, change: DIVERGING }[state.mode];
  const bar = element("div", { class: "bar", "aria-hidden": "true" });
  bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  const names = {
    density: `Density, ${density.units}`, sd: `Posterior standard deviation of the density, ${density.units}`,
    change: `Change of the density since ${density.times[state.reference]}, ${density.units}. Hatched: the probability of an increase is between ${100 - density.sure} and ${density.sure}\u00a0%`,
  };
  const numbers = [low, (low + high) / 2, high].map((value) => digits(value * density.unit));
  if (state.mode === "change") numbers[2] = `+${numbers[2]}`;
  view.scale.replaceChildren(element("div", { class: "hint", id: "scale-name", text: names[state.mode] }), bar,
    element("div", { class: "ends" }, ...numbers.map((text) => element("span", { text }))));
}

function connectMap(view) {
  const { canvas, density, state } = view, [rows, columns] = density.shape;
  const point = (event) => {
    const box = canvas.getBoundingClientRect(), frame = view.frame;
    const column = Math.floor(((event.clientX - box.left - frame.left) / frame.wide) * columns);
    const row = rows - 1 - Math.floor(((event.clientY - box.top - frame.top) / frame.tall) * rows);
    if (column < 0 || column >= columns || row < 0 || row >= rows) return;
    moveTo(view, row * columns + column);
  };
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, 0], ArrowDown: [-1, 0] };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const from = state.cell === null ? highestCell(view) : state.cell;
    const [up, right] = state.cell === null ? [0, 0] : steps[event.key];
    const row = Math.min(rows - 1, Math.max(0, Math.floor(from / columns) + up));
    const column = Math.min(columns - 1, Math.max(0, (from % columns) + right));
    moveTo(view, row * columns + column);
  });
}

function moveTo(view, cell) {
  if (cell === view.state.cell) return;
  view.state.cell = cell;
  drawMap(view);
}

// Where the keys start: the cell of the highest density at this time.
function highestCell(view) {
  const { density, state } = view, from = state.time * density.count;
  let best = 0;
  for (let k = 1; k < density.count; k++) if (density.mean[from + k] > density.mean[from + best]) best = k;
  return density.cells[best];
}

function readCell(view) {
  const { density, state, panel } = view;
  if (state.cell === null) {
    panel.replaceChildren(element("h3", { text: "A place" }),
      element("p", { class: "hint", text: "Point at the map, or press Tab until it has the frame and then the arrow keys, to read its numbers here." }));
    return;
  }
  const columns = density.shape[1], number = density.nearest[state.cell];
  const place = [density.ticks[0][state.cell % columns], density.ticks[1][Math.floor(state.cell / columns)]];
  const where = density.axes.map((name, k) => `${name} ${digits(place[k], 6)}`).join(", ");
  if (density.cells[number] !== state.cell) {
    panel.replaceChildren(element("h3", { text: "Outside" }), element("p", { id: "cell-words", text: `${where}: outside the domain, where there is no density.` }));
    return;
  }
  const lines = state.mode === "change" ? changeLines(view, number) : densityLines(view, number);
  panel.replaceChildren(element("h3", { text: density.times[state.time] }), element("p", { id: "cell-words", text: `${where}.` }),
    element("dl", { class: "facts" }, ...lines.flatMap(([name, id, text]) => [element("dt", { text: name }), element("dd", { id, text })])));
}

function densityLines(view, number) {
  const { density, state } = view, at = state.time * density.count + number;
  return [
    ["density", "cell-mean", `${shown(density, density.mean[at])} ${density.units}`],
    [`${levelPercent(density.level)} interval`, "cell-interval", `${shown(density, density.low[at])} to ${shown(density, density.high[at])}`],
    ["sd", "cell-sd", shown(density, density.sd[at])],
  ];
}

function changeLines(view, number) {
  const { density, state } = view, rise = riseAt(view, number), ends = changeEnds(view, number);
  if (rise === null) return [["change", "cell-change", "none: the two times are the same"]];
  const change = fixed(valueAt(view, number) * density.unit, density.change_decimals);
  const sure = rise >= 100 ? "more than 99\u00a0%" : rise <= 0 ? "less than 1\u00a0%" : `${rise}\u00a0%`;
  const lines = [[`change since ${density.times[state.reference]}`, "cell-change", `${change} ${density.units}`]];
  if (ends) lines.push([`${levelPercent(density.level)} interval`, "cell-interval", ends.map((end) => fixed(end, density.change_decimals)).join(" to ")]);
  return [...lines, ["probability of an increase", "cell-rise", sure]];
}

// Densities of one dimension: a curve with a band.
function curveView(packedCurve, failed) {
  const density = readDensity(packedCurve), state = { time: 0, cell: null };
  const svg = drawn("svg", {
    id: "curve", tabindex: 0, role: "application", "aria-roledescription": "curve",
    "aria-label": `Density by ${density.axes[0]}. Arrow keys move along the axis, and the numbers are read out.`,
  });
  const view = {
    density, state, svg, drawing: element("div", { class: "drawing" }, svg),
    panel: element("div", { class: "panel", id: "cell-panel", "aria-live": "polite" }),
  };
  const changed = () => drawCurve(view);
  const controls = element("div", { class: "controls" }, ...timeControls(view, changed));
  connectCurve(view);
  new ResizeObserver(changed).observe(view.drawing);
  changed();
  return section("Density", element("p", { text: densityWords(density) }), controls, ...failedBanner(failed),
    element("div", { class: "stage" }, element("div", {}, view.drawing,
      element("p", { class: "hint", text: `Line: posterior mean. Band: ${levelWords(density.level)}, point by point. Ticks below: the data.` })), view.panel));
}

function drawCurve(view) {
  const { density, state, svg } = view, xs = density.ticks[0], from = state.time * density.count;
  const width = Math.max(view.drawing.clientWidth, 240), height = 360;
  const top = density.high.reduce((most, each) => Math.max(most, each), 1);
  const x = scaled(xs[0], xs[xs.length - 1], 62, width - 12), y = scaled(0, top, height - 50, 28);
  const line = (values) => xs.map((each, k) => `${x(each).toFixed(1)},${y(values[from + k]).toFixed(1)}`);
  view.x = x;
  const parts = [
    drawn("path", { d: `M${line(density.high).join("L")}L${line(density.low).reverse().join("L")}Z`, fill: "#0072B2", "fill-opacity": 0.25 }),
    drawn("path", { d: `M${line(density.mean).join("L")}`, fill: "none", stroke: "#0072B2", "stroke-width": 2 }),
    drawn("path", { d: `M62,${height - 50}H${width - 12}`, stroke: "#767b82" }),
  ];
  for (const place of density.places[state.time]) parts.push(drawn("path", { d: `M${x(place)},${height - 50}v-7`, stroke: "#333333", "stroke-opacity": 0.6, "stroke-width": 0.7 }));
  for (const tick of ticks(xs[0], xs[xs.length - 1], width / 110)) parts.push(label(x(tick), height - 32, String(tick), "middle", 12));
  const up = ticks(0, top * density.unit, 5);
  for (const tick of up) parts.push(label(56, y(tick / density.unit) + 4, tick.toFixed(up.decimals), "end", 12));
  parts.push(label(10, 16, `density, ${density.units}`, "start", 13), label((width + 50) / 2, height - 12, shortName(density.axes[0]), "middle", 13));
  if (state.cell !== null) parts.push(drawn("path", { d: `M${x(xs[state.cell])},28V${height - 50}`, stroke: "#B34D00", "stroke-width": 2 }));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.height = `${height}px`;
  svg.replaceChildren(...parts);
  readCurve(view);
}

function connectCurve(view) {
  const { density, state, svg } = view, xs = density.ticks[0];
  const move = (cell) => { state.cell = Math.min(xs.length - 1, Math.max(0, cell)); drawCurve(view); };
  const point = (event) => {
    const at = event.clientX - svg.getBoundingClientRect().left;
    move(Math.round(((at - view.x(xs[0])) / (view.x(xs[xs.length - 1]) - view.x(xs[0]))) * (xs.length - 1)));
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  svg.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
    event.preventDefault();
    const step = event.key === "ArrowRight" ? 1 : -1;
    move(state.cell === null ? 0 : state.cell + step);
  });
}

function readCurve(view) {
  const { density, state, panel } = view;
  if (state.cell === null) {
    panel.replaceChildren(element("h3", { text: "A place" }),
      element("p", { class: "hint", text: "Point at the curve, or press Tab until it has the frame and then the arrow keys, to read its numbers here." }));
    return;
  }
  panel.replaceChildren(element("h3", { text: density.times[state.time] }),
    element("p", { id: "cell-words", text: `${density.axes[0]} ${digits(density.ticks[0][state.cell], 6)}.` }),
    element("dl", { class: "facts" }, ...densityLines(view, state.cell).flatMap(([name, id, text]) => [element("dt", { text: name }), element("dd", { id, text })])));
}
