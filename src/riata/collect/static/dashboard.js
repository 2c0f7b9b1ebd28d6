/* The organiser's page: counts, forecasts and, once it is learned, the model.
 *
 * The key stands behind the # of the link, which browsers do not send, and goes into a header: so no
 * log of addresses holds it. */

const at = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en");
const reports = (count) => `${number(count)} ${count === 1 ? "report" : "reports"}`;
/** Two decimals, and of a small number two digits. */
const part = (value) => Math.abs(value) < 0.1 ? String(Number(value.toPrecision(2))) : value.toFixed(2);
const share = (one) => one === null ? "no reports yet"
  : `${part(one.share)} on average, ${part(one.low)} to ${part(one.high)} in 80% of collections, with ${number(one.people)} ${one.people === 1 ? "person" : "people"}`;

function rows(lines) {
  at("facts").tBodies[0].replaceChildren(...lines.map(([name, value]) => {
    const row = document.createElement("tr");
    const head = Object.assign(document.createElement("th"), { scope: "row", textContent: name });
    row.append(head, Object.assign(document.createElement("td"), { textContent: value }));
    return row;
  }));
}

/** What each whole answer does, as points with bars of two standard errors. */
function plot(columns) {
  const shown = columns.map((one) => ({ name: one.name, value: one.value * one.reach, error: one.error * one.reach })).sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, 20);
  const far = Math.max(...shown.map((one) => Math.abs(one.value) + 2 * one.error), 1e-12);
  const line = 26, left = 190, width = 560, middle = left + (width - left) / 2;
  const x = (value) => middle + (value / far) * (width - left - 20) / 2;
  const space = "http://www.w3.org/2000/svg";
  const make = (tag, properties, text = "") => {
    const element = document.createElementNS(space, tag);
    Object.entries(properties).forEach(([name, value]) => element.setAttribute(name, value));
    element.textContent = text;
    return element;
  };
  const svg = make("svg", { viewBox: `0 0 ${width} ${line * shown.length + 8}`, role: "img", width: "100%" });
  svg.append(make("title", {}, "Coefficients with two standard errors"));
  svg.append(make("line", { x1: middle, x2: middle, y1: 0, y2: line * shown.length, stroke: "currentColor", opacity: 0.4 }));
  shown.forEach((one, i) => {
    const y = line * i + line / 2;
    svg.append(make("text", { x: left - 10, y: y + 5, "text-anchor": "end", "font-size": 13, fill: "currentColor" }, one.name));
    svg.append(make("line", { x1: x(one.value - 2 * one.error), x2: x(one.value + 2 * one.error), y1: y, y2: y, stroke: "currentColor", "stroke-width": 2 }));
    svg.append(make("circle", { cx: x(one.value), cy: y, r: 5, fill: "currentColor" }));
    svg.lastChild.append(make("title", {}, `${one.name}: ${one.value.toPrecision(3)} ± ${one.error.toPrecision(2)}`));
  });
  at("plot").replaceChildren(svg);
}

async function show() {
  const headers = { Authorization: `Bearer ${location.hash.slice(1)}` };
  const answer = await fetch("/dashboard/facts", { headers, credentials: "omit" });
  if (!answer.ok) throw new Error("key");
  const facts = await answer.json();
  document.title = at("title").textContent = facts.title || facts.kind;
  const plan = facts.expected ? ` of ${number(facts.expected)} expected` : "";
  at("progress").textContent = `${reports(facts.reports)}${plan}`;
  at("bar").hidden = !facts.expected;
  if (facts.expected) at("bar").value = facts.reports / facts.expected;
  rows([
    ["Kind", `${facts.kind}, epsilon ${facts.epsilon}`],
    ["Last day", facts.deadline || "none"],
    ["Requests refused", number(facts.refused)],
    ["Share of the gain now", share(facts.now)],
    ["Share at the end", share(facts.then)],
    ["Advice", facts.then ? facts.then.advice : "-"],
  ]);
  at("model").hidden = !facts.model;
  if (facts.model) {
    at("model-text").textContent = facts.model.signal
      ? `Learned from ${reports(facts.model.reports)}. Points show what an answer at the bound does, against one in the middle; bars are two standard errors.`
      : `No signal in ${reports(facts.model.reports)}.`;
    if (facts.model.columns) plot(facts.model.columns);
  }
  at("state").textContent = "";
}

const again = () => show().catch(() => { at("state").textContent = "The dashboard cannot be shown. Use the link that the collector printed."; });
again();
addEventListener("hashchange", again);
setInterval(again, 10000);
