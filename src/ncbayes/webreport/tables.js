// Tables that sort and grow, parameters with bars, and the numbers of chains and noise.

// Rows shown at first, and more at each press.
const ROWS = 50;

// Columns have key, name and number; a row has [value, text] for each key, and an id.
function sortableTable(name, columns, sortedBy) {
  const table = { name, columns, key: sortedBy, down: true, rows: [], most: ROWS, picked: null };
  table.caption = element("caption", {});
  table.body = element("tbody", {});
  table.heads = columns.map((column) => sortHead(table, column));
  table.more = element("button", { type: "button", onclick: () => { table.most += 4 * ROWS; drawRows(table); } });
  const whole = element("table", {}, table.caption, element("thead", {}, element("tr", {}, ...table.heads)), table.body);
  table.box = element("div", {}, scrolling(name, whole), table.more);
  table.show = (rows, words) => { table.rows = rows; table.caption.textContent = words; drawRows(table); };
  table.pick = (id) => { table.picked = id; for (const row of table.body.children) row.classList.toggle("picked", Number(row.dataset.id) === id); };
  return table;
}

function sortHead(table, column) {
  const sort = () => {
    table.down = table.key === column.key ? !table.down : Boolean(column.number);
    table.key = column.key;
    drawRows(table);
  };
  return element("th", { scope: "col", class: column.number ? "number" : null },
    element("button", { type: "button", text: column.name, onclick: sort }));
}

function compared(one, other) {
  if (typeof one === "string") return one.localeCompare(other, undefined, { numeric: true });
  return (one ?? -Infinity) - (other ?? -Infinity);
}

function drawRows(table) {
  const sign = table.down ? -1 : 1;
  const sorted = [...table.rows].sort((one, other) => sign * compared(one[table.key][0], other[table.key][0]));
  table.heads.forEach((head, k) => {
    const mine = table.columns[k].key === table.key;
    head.setAttribute("aria-sort", mine ? (table.down ? "descending" : "ascending") : "none");
    head.firstChild.textContent = table.columns[k].name + (mine ? (table.down ? " ▼" : " ▲") : "");
  });
  table.body.replaceChildren(...sorted.slice(0, table.most).map((row) => tableRow(table, row)));
  const left = sorted.length - table.most;
  table.more.hidden = left <= 0;
  table.more.textContent = `Show more rows (${left} left)`;
}

function tableRow(table, row) {
  const cells = table.columns.map((column, k) => element(k ? "td" : "th", {
    scope: k ? null : "row", class: column.number ? "number" : null, title: k ? null : row[column.key][1], text: row[column.key][1],
  }));
  return element("tr", { "data-id": row.id, class: row.id === table.picked && row.id !== null ? "picked" : null }, ...cells);
}

// A table of fixed rows: heads are [text, is a number].
function plainTable(name, caption, heads, rows) {
  return scrolling(name, element("table", {}, element("caption", { text: caption }),
    element("thead", {}, element("tr", {}, ...heads.map(([text, number]) => element("th", { scope: "col", class: number ? "number" : null, text })))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell, k) => cell instanceof Element
      ? element("td", {}, cell)
      : element(k ? "td" : "th", { scope: k ? null : "row", class: heads[k][1] ? "number" : null, title: k ? null : cell, text: cell })))))));
}

// Parameters with their intervals as bars, and a search.
function parametersView(found, title, failed) {
  const lists = element("div", {}), count = element("p", { class: "hint", role: "status" });
  const id = newId("parameter");
  const show = (text) => {
    const wanted = text.trim().toLowerCase();
    let shown = 0, all = 0;
    lists.replaceChildren(...found.blocks.flatMap((block) => {
      const rows = block.rows.filter((row) => row[0].toLowerCase().includes(wanted));
      [shown, all] = [shown + Math.min(rows.length, 4 * ROWS), all + rows.length];
      return rows.length ? [...failedBanner(failed), forest(block, rows, found.level)] : [];
    }));
    count.textContent = `${shown} of ${found.total} parameters are shown${all > shown ? ": search for the others" : ""}.` +
      (found.left ? ` The page has no room for ${found.left}.` : "");
  };
  show("");
  return section(title, element("p", { text: `Posterior means, medians and ${levelWords(found.level)}s. The bars of one variable share a scale.` }),
    element("div", { class: "controls" }, searchBox("Find a parameter", show, show, id).box), count, lists);
}

function forest(block, rows, level) {
  const ends = block.rows.flatMap((row) => [row[3], row[4]]).filter((value) => value !== null);
  const low = Math.min(...ends), high = Math.max(...ends);
  const heads = [["parameter", false], ["mean", true], ["median", true], [`${levelPercent(level)} interval`, true], [`${digits(low)} to ${digits(high)}`, false]];
  const table = rows.slice(0, 4 * ROWS).map((row) => [row[0], digits(row[1]), digits(row[2]), `${digits(row[3])} to ${digits(row[4])}`, bar(row, low, high)]);
  return plainTable(block.name, `${block.name}: ${many(rows.length, "parameter")}`, heads, table);
}

function bar(row, low, high) {
  const x = scaled(low, high, 4, 196);
  const [, , median, from, to] = row;
  const parts = low < 0 && high > 0 ? [drawn("path", { d: `M${x(0)},0V18`, stroke: "#767b82", "stroke-dasharray": "2 2" })] : [];
  parts.push(drawn("path", { d: `M${x(from)},9H${x(to)}`, stroke: "#0072B2", "stroke-width": 4 }), drawn("circle", { cx: x(median), cy: 9, r: 4, fill: "#08264f" }));
  return drawn("svg", { width: 200, height: 18, viewBox: "0 0 200 18", "aria-hidden": "true" }, ...parts);
}

function diagnosticsView(found, noise) {
  const heads = [["quantity", false], ["R-hat", true], ["bulk ESS", true], ["tail ESS", true], ["mean", true], ["Monte Carlo error", true]];
  const rows = found.rows.map((row) => [row.name, fixed(row.r_hat, 3), fixed(row.bulk, 0), fixed(row.tail, 0), digits(row.mean), digits(row.mcse, 2)]);
  const screened = found.measured < found.total ? ` Measured were the ${found.measured}, of ${found.total}, whose chains look worst.` : "";
  const words = `R-hat compares the chains with each other and should be at most ${found.limits.r_hat}. ESS is the number of effective draws, in the middle (bulk) and at the ends (tail) of a distribution; there should be ${found.limits.effective} a chain.${screened}`;
  return section("Diagnostics", element("p", { text: words }),
    plainTable("Worst quantities", `The ${found.rows.length} worst of ${found.measured} quantities, by R-hat and by ESS in turn`, heads, rows),
    element("h3", { text: "Chains of the worst quantities" }),
    element("p", { class: "hint", text: "Left: draws in their order. Right: how the ranks of all draws fall on each chain. Chains that have mixed look alike, and their ranks keep to the dashed line." }),
    chainLegend(found.chains), element("div", { class: "small" }, ...found.pictures.map(chainPicture)),
    ...(noise ? noiseParts(noise) : []));
}

function noiseParts(noise) {
  const heads = [["group", false], ["noise set", false], ["noise points", true], ["worth, drawn from the model", true], ["AUC", true], ["information kept", true], ["intervals wider by", true]];
  const rows = noise.rows.map((row) => [row.group, row.set, fixed(row.noise_points, 0), fixed(row.ideal_noise, 0), fixed(row.auc, 3),
    percent(row.information_kept, 0), row.widening > 10 ? "more than 1000 %" : percent(row.widening, 0)]);
  const few = noise.rows.length < noise.total ? ` The ${noise.rows.length} of ${noise.total} rows that keep least.` : "";
  return [element("h3", { text: "Comparison points (noise) and data" }), noisePicture(noise),
    plainTable("Noise", `How good the noise is. AUC 0.5: noise like the data; 1: never alike.${few}`, heads, rows),
    ...(noise.rounds.length ? [roundsTable(noise.rounds)] : [])];
}

function roundsTable(rounds) {
  const heads = [["round", true], ["group", false], ["near the rows", true], ["mass elsewhere", true], ["means off", true],
    ["log Z off (limit)", true], ["moved", true], ["passed", false]];
  const rows = rounds.map((row) => [String(row.round), row.group, percent(row.near, 0), percent(row.elsewhere, 0), fixed(row.moments, 2),
    row.log_z === null ? "unknown" : `${fixed(row.log_z, 2)} (${fixed(row.limit, 2)})`, fixed(row.moved, 2), row.passed ? "yes" : "no"]);
  const words = "How the noise was made: in each round of the model at an estimate, with a short fit and a simulation from it. Means of statistics are off in standard errors, estimates moved in posterior sds.";
  return plainTable("Rounds of the noise", words, heads, rows);
}
