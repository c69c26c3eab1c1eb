// Colours, ticks, and the small pictures of chains and noise.

const CHAINS = ["#0072B2", "#B34D00", "#007A58", "#A8407E", "#3A5FCD", "#6B6B6B", "#7A6A00", "#000000"];
const DASHES = ["", "5 2", "2 2", "7 2 2 2"];
const VIRIDIS = ["#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c", "#22a884", "#44bf70", "#7ad151", "#bddf26", "#fde725"];
const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];
// Purple for less and orange for more, which the colour-blind tell apart.
const DIVERGING = ["#3f1a6b", "#6950a1", "#9f97c6", "#d2d2e7", "#f7f7f7", "#fddbae", "#f2a948", "#c96d0f", "#7f3b08"];

const channels = (colour) => [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16));

// 256 steps between the stops, as red, green, blue.
function colourTable(stops) {
  const parts = stops.map(channels);
  return Array.from({ length: 256 }, (_, k) => {
    const place = (k / 255) * (parts.length - 1);
    const left = Math.min(Math.floor(place), parts.length - 2);
    return parts[left].map((value, c) => Math.round(value + (place - left) * (parts[left + 1][c] - value)));
  });
}

// Round numbers between two ends, about so many.
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((each) => each * power >= rough * 0.999);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(Number((k * step).toFixed(decimals)));
  found.decimals = decimals;
  return found;
}

function scaled(low, high, from, to) {
  const width = high - low || 1;
  return (value) => from + ((value - low) / width) * (to - from);
}

const polyline = (xs, ys) => xs.map((x, k) => `${k ? "L" : "M"}${x.toFixed(1)},${ys[k].toFixed(1)}`).join("");

function label(x, y, text, anchor = "middle", size = 11) {
  return drawn("text", { x, y, "text-anchor": anchor, "font-size": size, text });
}

// Traces on the left, ranks of all draws by chain on the right.
function chainPicture(picture) {
  const box = { width: 330, height: 120 };
  const values = picture.traces.flat().filter((value) => value !== null);
  const low = Math.min(...values), high = Math.max(...values);
  const x = scaled(picture.at[0], picture.at[picture.at.length - 1], 46, 210);
  const y = scaled(low, high, 96, 10);
  const parts = picture.traces.map((trace, k) => drawn("path", {
    d: polyline(picture.at.map(x), trace.map(y)), fill: "none", stroke: CHAINS[k % CHAINS.length], "stroke-width": 0.9, "stroke-opacity": 0.85,
  }));
  const most = Math.max(...picture.ranks.flat());
  const even = picture.ranks[0].reduce((sum, each) => sum + each, 0) / picture.ranks[0].length;
  const bar = scaled(0, picture.ranks[0].length, 226, 324), up = scaled(0, most, 96, 10);
  parts.push(drawn("path", { d: `M226,${up(even)}L324,${up(even)}`, stroke: "#4a4a4a", "stroke-dasharray": "3 2" }));
  picture.ranks.forEach((own, k) => parts.push(drawn("path", {
    d: own.map((count, b) => `${b ? "L" : "M"}${bar(b)},${up(count)}L${bar(b + 1)},${up(count)}`).join(""),
    fill: "none", stroke: CHAINS[k % CHAINS.length], "stroke-width": 1.3, "stroke-dasharray": DASHES[k % DASHES.length],
  })));
  parts.push(drawn("path", { d: "M46,10V96H210M226,96H324", fill: "none", stroke: "#767b82" }));
  parts.push(label(42, 14, digits(high, 2), "end"), label(42, 96, digits(low, 2), "end"), label(128, 112, "draw"), label(275, 112, "rank"));
  const words = `${picture.name}: R-hat ${fixed(picture.r_hat, 3)}, ${fixed(picture.effective, 0)} effective draws`;
  return element("figure", {},
    drawn("svg", { viewBox: `0 0 ${box.width} ${box.height}`, role: "img", "aria-label": `Traces and ranks of ${words}` }, ...parts),
    element("figcaption", {}, element("b", { text: picture.name }), words.slice(picture.name.length)));
}

function chainLegend(names) {
  return element("ul", { class: "legend" }, ...names.map((name, k) => element("li", {},
    drawn("svg", { width: 32, height: 8, "aria-hidden": "true" }, drawn("path", { d: "M0,4H32", stroke: CHAINS[k % CHAINS.length], "stroke-width": 3, "stroke-dasharray": DASHES[k % DASHES.length] })),
    `chain ${name}`)));
}

// The outline of bars between edges.
function stairs(edges, shares, x, y) {
  const bars = shares.map((share, k) => `L${x(edges[k])},${y(share)}L${x(edges[k + 1])},${y(share)}`).join("");
  return `M${x(edges[0])},${y(0)}${bars}L${x(edges[edges.length - 1])},${y(0)}Z`;
}

// Shares of data and noise by their log odds.
function noisePicture(noise) {
  const ends = [noise.edges[0], noise.edges[noise.edges.length - 1]];
  const x = scaled(ends[0], ends[1], 46, 590);
  const top = Math.max(...noise.data, ...noise.noise);
  const y = scaled(0, top, 190, 14);
  const parts = [
    drawn("path", { d: stairs(noise.edges, noise.noise, x, y), fill: "#6B6B6B", "fill-opacity": 0.25, stroke: "#4a4a4a", "stroke-dasharray": "5 3" }),
    drawn("path", { d: stairs(noise.edges, noise.data, x, y), fill: "#0072B2", "fill-opacity": 0.3, stroke: "#0072B2", "stroke-width": 1.5 }),
    drawn("path", { d: `M${x(noise.alike)},14V190`, stroke: "#1a1a1a", "stroke-dasharray": "2 3" }),
    drawn("path", { d: "M46,190H590", stroke: "#767b82" }),
  ];
  for (const tick of ticks(ends[0], ends[1], 7)) parts.push(label(x(tick), 206, String(tick), "middle", 13));
  parts.push(label(42, 20, percent(top, 0), "end", 13), label(42, 190, "0", "end", 13), label(318, 225, "log odds that a point is data", "middle", 13));
  const legend = element("ul", { class: "legend" },
    element("li", {}, swatchLine("#0072B2", ""), `data (${noise.counts[0]})`),
    element("li", {}, swatchLine("#4a4a4a", "5 3"), `noise (${noise.counts[1]}${noise.sets > 1 ? ` in ${noise.sets} sets` : ""})`),
    element("li", {}, swatchLine("#1a1a1a", "2 3"), "all points, if noise were like the data"));
  return element("figure", {}, legend,
    drawn("svg", { viewBox: "0 0 600 232", role: "img", "aria-label": "Histograms of the log odds of data and noise" }, ...parts),
    element("figcaption", { text: `Where the two overlap, a point may be data or noise, and tells something about the parameters. Log odds beyond ${noise.farthest} stand at the ends.` }));
}

function swatchLine(colour, dashes) {
  return drawn("svg", { width: 32, height: 8, "aria-hidden": "true" },
    drawn("path", { d: "M0,4H32", stroke: colour, "stroke-width": 3, "stroke-dasharray": dashes }));
}
