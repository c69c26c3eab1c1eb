// What the fit saw of itself: data beside simulated rows, log Z, and mass where nothing was compared.

// A statistic's place within its row: multiples of the golden ratio's part spread evenly.
const spreadWithin = (k, count) => (count === 1 ? 0 : 2 * ((0.6180339887 * (k + 1)) % 1) - 1);

const chance = (p) => (p !== null && p < 1e-12 ? "below 1e-12" : digits(p, 2));
const scoreWords = (z, most) => (z !== null && Math.abs(z) > most ? `${z > 0 ? "above " : "below -"}${most}` : fixed(z, 1));
const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function predictionsView(found) {
  if (found.missing) return section("Predictions", element("p", { text: found.missing }));
  const where = found.group === null ? "" : ` The pictures show group ${found.group}, which differs most.`;
  const words = "Rows were simulated from the fit and set beside the data. A dot is a statistic, and its score the difference between data and simulated rows in standard errors, 0 for what the model was fitted to. " +
    `Of all ${many(found.statistics, "statistic")} one lies beyond the lines at ±${fixed(found.limit, 1)} by chance in one of a hundred fits.${where}`;
  return section("Predictions", element("p", {}, badge(found.grade), ` ${found.line}`), element("p", { text: words }),
    element("div", { class: "pair" }, scoresPicture(found), sharesPicture(found.picture)), looksTable(found));
}

function scoresPicture(found) {
  const step = Math.max(34, 150 / found.looks.length), floor = 24 + step * found.looks.length;
  const cut = (z) => Math.max(-found.farthest, Math.min(found.farthest, z));
  const reach = 1.08 * Math.max(found.limit, ...found.looks.flatMap((look) => look.z.map((z) => Math.abs(cut(z)))));
  const x = scaled(-reach, reach, 250, 590);
  const y = (row, k, count) => 24 + step * (row + 0.5) + 0.3 * step * spreadWithin(k, count);
  const dots = { near: "", far: "" };
  found.looks.forEach((look, row) => look.z.forEach((z, k) => {
    dots[Math.abs(z) > found.limit ? "far" : "near"] += `M${x(cut(z)).toFixed(1)},${y(row, k, look.z.length).toFixed(1)}h0`;
  }));
  const line = (at, colour) => drawn("path", { d: `M${x(at)},14V${floor}`, stroke: colour });
  const parts = [line(-found.limit, "#9aa0a6"), line(found.limit, "#9aa0a6"), line(0, "#4a4a4a"),
    drawn("path", { d: dots.near, stroke: "#0072B2", "stroke-opacity": 0.6, "stroke-width": 6, "stroke-linecap": "round", class: "near" }),
    drawn("path", { d: dots.far, stroke: "#B34D00", "stroke-width": 7, "stroke-linecap": "square", class: "far" }),
    drawn("path", { d: `M250,${floor}H590`, stroke: "#767b82" })];
  found.looks.forEach((look, row) => parts.push(label(242, 28 + step * (row + 0.5), shortened(look.name + (look.fitted ? " (fitted)" : ""), 40), "end", 12)));
  for (const tick of ticks(-reach, reach, 6)) parts.push(label(x(tick), floor + 16, String(tick), "middle", 13));
  const at = x(cut(found.worst.z ?? 0)), right = at > 420;
  parts.push(label(at + (right ? 4 : -4), 22 + step * found.worst.look, shortened(found.worst.label, 40), right ? "end" : "start", 13));
  const beyond = found.beyond ? ` ${many(found.beyond, "score")} beyond ${found.farthest} ${found.beyond === 1 ? "stands" : "stand"} at the ends.` : "";
  return element("figure", { class: "scores" },
    drawn("svg", { viewBox: `0 0 600 ${floor + 24}`, role: "img", "aria-label": `Scores of ${many(found.count, "statistic")} by kind; the worst is ${found.worst.label}, ${digits(found.worst.z)}` }, ...parts),
    element("figcaption", { text: `Scores of ${many(found.count, "statistic")}, by kind; squares lie beyond the lines.${beyond}` }));
}

function sharesPicture(picture) {
  const ends = [picture.edges[0], picture.edges[picture.edges.length - 1]];
  const x = scaled(ends[0], ends[1], 46, 590), top = Math.max(...picture.data, ...picture.simulated);
  const y = scaled(0, top, 190, 14);
  const parts = [
    drawn("path", { d: stairs(picture.edges, picture.data, x, y), fill: "#0072B2", "fill-opacity": 0.3, stroke: "#0072B2", "stroke-width": 1.5 }),
    drawn("path", { d: stairs(picture.edges, picture.simulated, x, y), fill: "none", stroke: "#B34D00", "stroke-width": 2, "stroke-dasharray": "5 3" }),
    drawn("path", { d: "M46,190H590", stroke: "#767b82" }),
  ];
  for (const tick of ticks(ends[0], ends[1], 7)) parts.push(label(x(tick), 206, String(tick), "middle", 13));
  parts.push(label(42, 20, percent(top, 0), "end", 13), label(42, 190, "0", "end", 13), label(318, 225, shortened(picture.name, 70), "middle", 13));
  const legend = element("ul", { class: "legend" },
    element("li", {}, swatchLine("#0072B2", ""), "data"), element("li", {}, swatchLine("#B34D00", "5 3"), "simulated from the fit"));
  return element("figure", { class: "shares" }, legend,
    drawn("svg", { viewBox: "0 0 600 232", role: "img", "aria-label": `Histograms of ${picture.name}, of data and of rows simulated from the fit` }, ...parts),
    element("figcaption", { text: `What differs most: shares by ${picture.name}.` }));
}

function looksTable(found) {
  const several = found.group !== null;
  const heads = [["kind of statistics", false], ...(several ? [["group", false]] : []), ["p-value", true], ["worst statistic", false], ["in the data", true], ["simulated", true], ["score", true]];
  const rows = found.rows.map((row) => [row.name, ...(several ? [row.group] : []), chance(row.p), row.label, digits(row.observed), digits(row.expected), scoreWords(row.z, found.farthest)]);
  const few = rows.length < found.total ? `The ${rows.length} of ${found.total} comparisons with the smallest p-values` : `All ${found.total} comparisons, by p-value`;
  return plainTable("Predictions", `${few}. A small p-value means: data from this fit would rarely look like that.`, heads, rows);
}

function verificationView(found) {
  const parts = found.missing ? [element("p", { text: found.missing })] : [];
  if (found.rows.length) parts.push(verificationTable(found), element("ul", {}, ...verificationWords(found).map((text) => element("li", { text }))));
  return section("Verification", ...parts);
}

function verificationTable(found) {
  const seen = !found.missing, rows = seen && !found.cells;
  const columns = found.total > 1 ? [["group", false, (row) => row.group]] : [];
  if (found.log_z) columns.push(["log Z, contrast", true, (row) => digits(row.contrast, 4)],
    ["log Z, worked out", true, (row) => (row.worked_out === null ? "not known" : digits(row.worked_out, 4))],
    ["difference", true, (row) => (row.gap === null ? "not known" : `${fixed(row.gap, 2)} (sd ${fixed(row.sd, 2)})`)]);
  if (rows) columns.push(["mass elsewhere", true, (row) => percent(row.strays)], ["near, anywhere", true, (row) => percent(row.near)],
    ["near, data", true, (row) => percent(row.near_from_rows)]);
  if (seen) columns.push(["rows", true, (row) => fixed(row.rows, 0)], [rows ? "simulated" : "data sets simulated", true, (row) => fixed(row.worth, 0)]);
  const few = found.rows.length < found.total ? ` The first ${found.rows.length} of ${found.total} groups.` : "";
  return plainTable("Verification", `What the fit saw of itself.${few}`, columns.map(([name, number]) => [name, number]),
    found.rows.map((row) => columns.map(([, , words]) => words(row))));
}

function verificationWords(found) {
  const words = [];
  if (found.log_z) words.push("log Z: the contrast of data and comparison points estimates the normalizing constant of the model on its own. If it is far from log Z as worked out at the draws, the fit missed a part of the model.");
  if (found.missing) return words;
  if (found.cells) return [...words, "Data sets simulated: points of a density are counted in cells, and so are those of data sets drawn from it; see the predictions."];
  return [...words,
    "Mass elsewhere: the share of the fitted model where there are neither data nor comparison points. The fit can't see it, so it should be close to 0.",
    "Near: the share of simulated rows that are as near to a row of the data as 99 % of the rows are to each other, for simulations that start anywhere and for those that start at the data. Both should be high and alike; if they are not, the model has mass far from the data.",
    "Simulated: how many independent rows the simulated ones are worth; with few, only large differences from the data are seen."];
}
