// Shows a run that goes on. The server sends the parts of its state that have changed, and on every new connection all of
// them, so a page that was opened late, or that has lost its connection for a while, shows the same as any other.
"use strict";

const SILENCE_MS = 20_000; // the server says something every few seconds
const RETRY_MS = 2_000;
const NO_VALUE = "–";
const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 240, HEIGHT = 48;

const at = id => document.getElementById(id);
const make = (tag, text = "", className = "") => {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
};
const drawn = (tag, attributes) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};
const setText = (element, text) => { if (element.textContent !== text) element.textContent = text; };
const whole = value => value == null ? NO_VALUE : Math.round(value).toLocaleString("en");
const cores = value => value == null ? NO_VALUE : value.toFixed(2);
const lastOf = values => values.length ? values[values.length - 1] : null;

function duration(seconds) {
  const all = Math.round(seconds);
  if (all < 60) return `${all} s`;
  if (all < 3600) return `${Math.floor(all / 60)} min ${all % 60} s`;
  return `${Math.floor(all / 3600)} h ${Math.floor(all % 3600 / 60)} min`;
}

// --- charts ---

const CHARTS = [
  { title: "records stored per second", show: whole, series: found => ({ rate: found.rate }) },
  { title: "lag, in records", show: whole, series: found => ({ lag: found.lag }) },
  { title: "connections", show: whole, series: found => ({ clients: found.clients, server: found.servers }) },
  { title: "CPU cores used", show: cores, series: found => found.cpu, sum: true },
];

for (const chart of CHARTS) {
  const figure = make("figure");
  chart.value = make("output");
  chart.value.setAttribute("aria-live", "off");
  const caption = make("figcaption");
  caption.append(make("span", chart.title), chart.value);
  chart.svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  chart.most = make("div", "", "most");
  chart.key = make("ul", "", "key");
  chart.colours = new Map();
  figure.append(caption, chart.svg, chart.most, chart.key);
  at("charts").append(figure);
}

function colourOf(chart, name) {
  if (!chart.colours.has(name)) chart.colours.set(name, `s${chart.colours.size % 8}`);
  return chart.colours.get(name);
}

function lineOf(seconds, values, most) {
  const end = lastOf(seconds), span = Math.max(end - seconds[0], 1);
  let path = "", pen = "M";
  values.forEach((value, index) => {
    if (value == null) { pen = "M"; return; }
    const x = WIDTH * (1 - (end - seconds[index]) / span), y = HEIGHT - 2 - (HEIGHT - 4) * value / most;
    path += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = "L";
  });
  return path;
}

function drawCharts(found) {
  for (const chart of CHARTS) {
    const series = Object.entries(chart.series(found)).filter(([, values]) => values.some(value => value != null));
    const values = series.flatMap(([, each]) => each.filter(value => value != null));
    const most = Math.max(...values, 0);
    chart.svg.replaceChildren(...series.map(([name, each]) =>
      drawn("path", { class: colourOf(chart, name), d: lineOf(found.seconds, each, most || 1) })));
    const last = series.map(([, each]) => lastOf(each));
    const known = last.filter(value => value != null);
    const total = chart.sum ? known.reduce((sum, value) => sum + value, 0) : last[0];
    setText(chart.value, series.length > 1 && !chart.sum ? "" : known.length ? chart.show(total) : NO_VALUE);
    const past = found.seconds.length ? lastOf(found.seconds) - found.seconds[0] : 0;
    setText(chart.most, values.length ? `highest ${chart.show(most)} in the last ${Math.round(past)} s` : "");
    chart.key.replaceChildren(...(series.length < 2 ? [] : series.map(([name, each]) => {
      const item = make("li");
      const sign = drawn("svg", { viewBox: "0 0 24 10", "aria-hidden": "true" });
      sign.append(drawn("path", { class: colourOf(chart, name), d: "M0 5L24 5" }));
      item.append(sign, `${name} ${chart.show(lastOf(each))}`);
      return item;
    })));
  }
}

// --- the rest of the state ---

const ENDINGS = {
  complete: "The run has ended.",
  interrupted: "The run was interrupted; its finished trials are kept.",
  failed: "The run has ended by an error, see below.",
};
const now = { run: null, heard: 0, step: null };

function showRun(run) {
  now.run = run;
  now.heard = performance.now();
  setText(at("name"), run.name);
  document.title = run.name ? `${run.name} – sinkbench` : "sinkbench";
  showClock();
}

function showClock() {
  if (!now.run) return;
  const since = now.run.ending ? 0 : (performance.now() - now.heard) / 1000;
  const parts = [`${duration(now.run.elapsed_seconds + since)} so far`];
  if (now.run.ending) parts[0] = `took ${duration(now.run.elapsed_seconds)}`;
  if (now.step && now.step.number) parts.unshift(`trial ${now.step.number} of ${now.step.total}`);
  if (now.run.left_seconds != null && !now.run.ending)
    parts.push(`about ${duration(Math.max(now.run.left_seconds - since, 0))} left`);
  setText(at("clock"), parts.join(", "));
}

function showStep(step) {
  now.step = step;
  setText(at("step"), step.name);
  const known = step.done != null && step.records;
  const records = known ? `: ${whole(step.done)} of ${whole(step.records)} records` : "";
  setText(at("phase"), step.phase + records);
  at("progress").hidden = !known;
  if (known) at("progress").value = Math.min(step.done / step.records, 1);
  showClock();
}

function trialsOf(cell) {
  if (!cell.taken && cell.of == null) return "";
  const parts = [cell.of == null ? `${cell.taken}` : `${cell.taken} of ${cell.of}`];
  if (cell.invalid) parts.push(`${cell.invalid} invalid`);
  if (cell.lost) parts.push(`${whole(cell.lost)} lost`);
  return parts.join(", ");
}

function showCells(cells) {
  at("cells").replaceChildren(...cells.map(cell => {
    const row = make("tr", "", cell.state);
    const name = make("th", cell.cell);
    name.scope = "row";
    const rate = cell.records_per_second == null ? "" : whole(cell.records_per_second);
    row.append(name, make("td", cell.state, "state"), make("td", trialsOf(cell)), make("td", rate, "n"));
    return row;
  }));
}

let newest = 0;

function showLines(lines) {
  const list = at("lines");
  for (const line of lines) {
    if (line.number <= newest) continue;
    newest = line.number;
    list.prepend(make("li", line.text, `${line.verdict ? "verdict" : ""} ${line.bad ? "bad" : ""}`.trim()));
  }
  while (list.childElementCount > 50) list.lastElementChild.remove();
}

const SHOW = { run: showRun, step: showStep, cells: showCells, readings: drawCharts, lines: showLines };

// --- the connection ---

function showConnection(state, text) {
  at("connection").className = state;
  setText(at("connection"), text);
}

let source = null, silence = 0, retry = 0, runId = null;

function heard() {
  clearTimeout(silence);
  // Of a connection that is only half closed the browser learns nothing.
  silence = setTimeout(again, SILENCE_MS);
}

function lost() {
  showConnection("lost", "connection lost, trying again");
  // After most errors the browser tries again by itself.
  if (source.readyState === EventSource.CLOSED) again();
}

function again() {
  showConnection("lost", "connection lost, trying again");
  source.close();
  clearTimeout(silence);
  clearTimeout(retry);
  retry = setTimeout(connect, RETRY_MS);
}

function connect() {
  source = new EventSource("events");
  heard();
  source.onerror = lost;
  source.addEventListener("ping", heard);
  source.addEventListener("state", event => {
    heard();
    showConnection("", "live");
    const found = JSON.parse(event.data);
    // Of another run on the same port.
    if (found.id !== runId) { runId = found.id; newest = 0; at("lines").replaceChildren(); }
    for (const [part, value] of Object.entries(found.parts)) SHOW[part](value);
  });
  source.addEventListener("end", event => {
    source.close();
    clearTimeout(silence);
    const ending = JSON.parse(event.data).ending;
    showConnection(ending === "complete" ? "over" : "failed", ENDINGS[ending]);
  });
}

setInterval(showClock, 1000);
connect();
