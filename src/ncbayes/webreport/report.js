// The page from its data: head, verdict, result, diagnostics, how to repeat and to cite.

const GRADES = { good: ["✓", "Good"], fair: ["!", "Fair"], attention: ["⚠", "Needs attention"] };

function headView(facts) {
  const parts = facts.flatMap(([name, words]) => [element("dt", { text: name }), element("dd", { text: words })]);
  return section("What was fitted", element("dl", { class: "facts" }, ...parts));
}

function furtherLines(lines) {
  if (!lines.length) return [];
  return [element("details", {}, element("summary", { text: "More about the noise" }), ...lines.map((line) => element("p", { text: line })))];
}

function verdictView(verdicts) {
  const boxes = verdicts.map((verdict) => {
    const [icon, words] = GRADES[verdict.grade];
    return element("div", { class: `verdict ${verdict.grade}` },
      element("h3", {}, element("span", { "aria-hidden": "true", text: `${icon} ` }), `${verdict.name}: ${words.toLowerCase()}`),
      ...verdict.lines.map((line) => element("p", { text: line })), ...furtherLines(verdict.more || []));
  });
  return section("Verdict", element("div", { class: "verdicts" }, ...boxes));
}

function resultViews(view) {
  if (view.network) {
    const more = view.besides.blocks.length ? [parametersView(view.besides, "Other parameters")] : [];
    return [networkView(view.network), ...more];
  }
  if (view.map) return [mapView(view.map)];
  if (view.curve) return [curveView(view.curve)];
  return [parametersView(view.parameters, "Parameters")];
}

const code = (name, text) => element("pre", { tabindex: 0, role: "region", "aria-label": name }, element("code", { text }));

function repeatView(repeat) {
  const parts = [];
  if (repeat.command) parts.push(element("p", { text: "The command that repeats this run:" }), code("Command", repeat.command));
  const seed = repeat.seed ? `, the same seed (${repeat.seed})` : "";
  parts.push(element("p", { text: `The same data and settings${seed} and the same version of ncbayes (${repeat.version}) give the same result, on another processor up to rounding.` }));
  parts.push(element("p", { text: "Go on from the draws in Python:" }), code("Python code", repeat.code));
  return section("How to repeat", ...parts);
}

function citeView(cite) {
  return section("How to cite", element("p", { text: "Please cite the paper of the method, and the software with its version:" }),
    element("ul", {}, ...cite.map((text) => element("li", { text }))));
}

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const parts = [headView(data.facts), verdictView(data.verdicts), ...resultViews(data.view),
    diagnosticsView(data.diagnostics, data.noise), repeatView(data.repeat), citeView(data.repeat.cite)];
  document.getElementById("main").append(...parts);
  document.getElementById("contents").append(element("ul", {}, ...parts.map((part) => element("li", {},
    element("a", { href: `#${part.id}`, text: part.querySelector("h2").textContent })))));
  document.getElementById("footer").append(element("p", { text: data.repeat.written }));
}

start();
