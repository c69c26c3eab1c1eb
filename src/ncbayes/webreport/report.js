// The page from its data: verdict, head, result, predictions, diagnostics, how to repeat and to cite.

function headView(facts) {
  const parts = facts.flatMap(([name, words]) => [element("dt", { text: name }), element("dd", { text: words })]);
  return section("What was fitted", element("dl", { class: "facts" }, ...parts));
}

function furtherLines(lines) {
  if (!lines.length) return [];
  return [element("details", {}, element("summary", { text: "More about the noise" }), ...lines.map((line) => element("p", { text: line })))];
}

// The first line of the page: the verdict with its grade, and what to do next.
function headline(verdict) {
  const parts = [element("p", {}, badge(verdict.grade), element("strong", { text: ` ${verdict.line}` }))];
  if (verdict.next) parts.push(element("p", {}, element("b", { text: "Next: " }), verdict.next));
  if (verdict.hint) parts.push(element("p", { class: "hint", text: verdict.hint }));
  return element("div", { class: `headline ${verdict.grade}` }, ...parts);
}

function verdictView(boxes) {
  const made = boxes.map((box) => element("div", { class: `verdict ${box.grade}` },
    element("h3", {}, `${box.name}: `, badge(box.grade)),
    ...box.lines.map((line) => element("p", { text: line })), ...furtherLines(box.more)));
  return section("Verdict", element("div", { class: "verdicts" }, ...made));
}

function resultViews(view, failed) {
  if (view.network) {
    const more = view.besides.blocks.length ? [parametersView(view.besides, "Other parameters", failed)] : [];
    return [networkView(view.network, failed), ...more];
  }
  if (view.map) return [mapView(view.map, failed)];
  if (view.curve) return [curveView(view.curve, failed)];
  return [parametersView(view.parameters, "Parameters", failed)];
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

function fitView(fit) {
  const parts = [verdictView(fit.boxes), headView(fit.facts), ...resultViews(fit.view, fit.failed),
    predictionsView(fit.predictions), verificationView(fit.verification), diagnosticsView(fit.diagnostics, fit.noise), repeatView(fit.repeat), citeView(fit.repeat.cite)];
  const links = element("ul", {}, ...parts.map((part) => element("li", {},
    element("a", { href: `#${part.id}`, text: part.querySelector("h2").textContent }))));
  return { parts, links, head: headline(fit.verdict) };
}

// A button for each fit. The parts of a fit are made when it is first shown, and kept as they are left.
function fitButtons(fits, show) {
  const made = new Map();
  const buttons = fits.map((fit, k) => element("button", { type: "button", text: fit.title, onclick: () => choose(k) }));
  function choose(k) {
    if (!made.has(k)) made.set(k, fitView(fits[k]));
    buttons.forEach((button, other) => button.setAttribute("aria-pressed", String(other === k)));
    show(made.get(k));
  }
  choose(0);
  return element("div", { class: "fits", role: "group", "aria-label": "Fits of this page" }, ...buttons);
}

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const [main, contents, head] = ["main", "contents", "verdict"].map((id) => document.getElementById(id));
  const show = ({ parts, links, head: line }) => {
    head.replaceChildren(line);
    main.replaceChildren(...parts);
    contents.replaceChildren(links);
  };
  if (data.fits) head.before(fitButtons(data.fits, show));
  else show(fitView(data));
  const { repeat } = data.fits ? data.fits[0] : data;
  document.getElementById("footer").append(element("p", { text: repeat.written }));
}

start();
