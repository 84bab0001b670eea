// The page: figures from the server's events, put where they belong.

import { DECADES, TimeChart, restyleCharts } from "./charts.js";
import { Refused, follow, json } from "./connection.js";
import { bars, calibration, spectrum } from "./drawings.js";
import { byId, bytes, clock, count, element, known, metricName, metricValue, milliseconds, number, percent, plain, put, seconds, signed } from "./format.js";
import { History } from "./history.js";
import { startForm, suggest } from "./predict.js";

const TOP = 10;
const MODEL_EVERY = 30_000; // kind and columns change seldom

const history = new History();
let range = 0;
let paused = false;
let latest = null;
let started = null; // of the server: another one begins other curves
let chosen = null;

const charts = {
  loss: new TimeChart(byId("plot-loss"), {
    label: "Loss",
    format: number,
    series: [
      { name: "recent", colour: "--blue", fill: true, value: (s) => s.loss_recent },
      { name: "since the start", colour: "--orange", dash: [6, 4], value: (s) => s.loss },
    ],
  }),
  metric: new TimeChart(byId("plot-metric"), {
    label: "Metric",
    format: number,
    series: [{ name: "recent", colour: "--violet", fill: true, value: (s) => metrics(s)[chosen] }],
  }),
  speed: new TimeChart(byId("plot-speed"), {
    label: "Throughput",
    format: (x) => (known(x) ? `${number(x, 3)}/s` : "–"),
    least: 0,
    series: [
      { name: "rows", colour: "--blue", fill: true, value: (s) => s.rows_per_second },
      { name: "requests", colour: "--orange", dash: [6, 4], value: (s) => s.requests_per_second },
    ],
  }),
  latency: new TimeChart(byId("plot-latency"), {
    label: "Latency",
    format: milliseconds,
    lines: DECADES,
    series: [
      { name: "predict p50", colour: "--blue", value: (s) => s.latency_ms?.predict?.p50 },
      { name: "predict p99", colour: "--blue", thin: true, dash: [6, 4], value: (s) => s.latency_ms?.predict?.p99 },
      { name: "learn p50", colour: "--orange", value: (s) => s.latency_ms?.learn?.p50 },
      { name: "learn p99", colour: "--orange", thin: true, dash: [6, 4], value: (s) => s.latency_ms?.learn?.p99 },
    ],
  }),
  delay: new TimeChart(byId("plot-delay"), {
    label: "Label delay",
    format: seconds,
    lines: [...DECADES.filter((line) => line <= 10), 60, 600, 3600, 36_000, 86_400, 864_000, 8_640_000],
    series: [
      { name: "p50", colour: "--blue", value: (s) => s.label_delay_s?.p50 },
      { name: "p90", colour: "--orange", dash: [6, 4], value: (s) => s.label_delay_s?.p90 },
    ],
  }),
};

/** The metrics of a point: the server may keep several. */
function metrics(stats) {
  return stats.metrics ?? (stats.metric ? { [stats.metric.name]: stats.metric.value } : {});
}

// -- drawing

function tiles(s) {
  put("rows", count(s.version));
  put("rows-note", s.queue ? `${count(s.queue)} in the queue` : "");
  put("loss", number(known(s.loss_recent) ? s.loss_recent : s.loss));
  put("loss-note", known(s.loss) ? `${number(s.loss)} since the start` : "no labels yet");
  const name = chosen ?? s.metric?.name;
  put("metric-name", name ? metricName(name) : "Metric");
  put("metric", metricValue(name, metrics(s)[name]));
  put("metric-note", name ? "recent" : "no labels yet");
  put("speed", known(s.rows_per_second) ? `${number(s.rows_per_second, 3)}/s` : "–");
  put("speed-note", `rows; ${number(s.requests_per_second, 3)} requests/s`);
  put("latency", milliseconds(s.latency_ms?.predict?.p50));
  put("latency-note", known(s.latency_ms?.predict?.p99) ? `p99 ${milliseconds(s.latency_ms.predict.p99)}` : "no predictions yet");
  put("pending", count(s.pending));
  put("pending-note", known(s.label_delay_s?.p50) ? `median delay ${seconds(s.label_delay_s.p50)}` : "no late labels yet");
}

function weights(s) {
  const by = (key) => (s.weights ?? []).filter((w) => known(w[key]) && w[key] !== 0).sort((a, b) => Math.abs(b[key]) - Math.abs(a[key])).slice(0, TOP);
  const drawn = (key) => by(key).map((w) => ({ name: w.name, value: w[key], text: signed(w[key]) }));
  bars(byId("largest"), drawn("weight"), { signed: true, empty: "Nothing is learned yet." });
  bars(byId("fastest"), drawn("change"), { signed: true, empty: "No weight is moving." });
}

function experts(s) {
  const sorted = [...(s.experts ?? [])].sort((a, b) => b.weight - a.weight).slice(0, 14);
  bars(byId("experts"), sorted.map(({ name, weight }) => ({ name, value: weight, text: percent(weight) })), { most: 1, empty: "This learner is no bank of experts." });
}

function labels(s) {
  if (!s.labels) return;
  const kinds = { direct: "with the record", late: "late", assumed: "assumed", expired: "never came" };
  const parts = Object.entries(kinds).filter(([key]) => s.labels[key]).map(([key, words]) => `${count(s.labels[key])} ${words}`);
  put("labels", parts.length ? `Labels: ${parts.join(", ")}.` : "");
}

let errorsShown = null;

function errors(list) {
  const key = JSON.stringify(list ?? []);
  if (key === errorsShown) return;
  errorsShown = key;
  const host = byId("errors");
  if (!list?.length) {
    host.replaceChildren(element("p", "empty", "No errors."));
    return;
  }
  const head = element("tr", "", ...["Time", "Status", "Code", "Message"].map((name) => element("th", "", name)));
  for (const cell of head.children) cell.scope = "col";
  const rows = [...list].sort((a, b) => b.time - a.time).map((e) =>
    element("tr", "", element("td", "", clock(e.time)), element("td", "", element("span", e.status >= 500 ? "badge bad" : "badge", plain(e.status, 5))), element("td", "code", plain(e.code, 60)), element("td", "", plain(e.message))),
  );
  host.replaceChildren(element("table", "", element("thead", "", head), element("tbody", "", ...rows)));
}

function offerMetrics(s) {
  const names = Object.keys(metrics(s)).filter((name) => known(metrics(s)[name]));
  if (!chosen && names.length) choose(names.includes(s.metric?.name) ? s.metric.name : names[0]);
  const select = byId("metric-choice");
  if (names.length < 2 || names.length === select.options.length) return;
  select.replaceChildren(...names.map((name) => new Option(metricName(name), name, false, name === chosen)));
  select.parentElement.hidden = false;
}

function choose(name) {
  chosen = name;
  put("h-metric", metricName(name));
  charts.metric.change({ label: metricName(name), format: (x) => metricValue(name, x) });
}

function draw() {
  if (!latest || document.hidden) return;
  byId("hello").hidden = latest.version !== 0;
  offerMetrics(latest);
  tiles(latest);
  const points = history.within(range);
  Object.values(charts).forEach((chart) => chart.draw(points));
  calibration(byId("calibration"), latest.calibration);
  experts(latest);
  spectrum(byId("spectrum"), latest.spectrum);
  weights(latest);
  labels(latest);
  errors(latest.errors);
}

// -- what the server says

function receive(name, stats) {
  if (name !== "stats") return;
  latest = stats;
  history.add(stats);
  notify(stats.problem);
  if (!paused) requestAnimationFrame(draw);
}

/** What is wrong with the server, such as a full disk; nothing if it is well. */
function notify(message) {
  byId("notice").hidden = !message;
  put("notice", plain(message));
}

const STATES = { live: "Live", lost: "Reconnecting", refused: "Refused", paused: "Paused" };
let connection = "waiting";

function showState() {
  const state = paused && connection === "live" ? "paused" : connection;
  byId("state").dataset.state = state;
  put("state", STATES[state] ?? "Connecting");
}

function connected(state, message) {
  if (state !== connection) {
    byId("announcer").textContent = { live: "Connected", lost: "Connection lost, trying again" }[state] ?? "";
    const before = connection;
    connection = state;
    if (state === "live" && before === "lost") refresh();
  }
  if (state !== "live") notify(message);
  showState();
}

/** How to send the first record. */
function example(classes) {
  const record = { user: "anna", price: 3.5, label: classes?.at(-1) ?? 1 };
  const address = new URL("v1/learn", location.href);
  const quoted = JSON.stringify(record).replaceAll("'", "'\\''");
  return `curl ${address} -H 'Content-Type: application/json' -d '${quoted}'`;
}

async function describe() {
  const model = await json("v1/model");
  const name = plain(model.name ?? model.title, 80);
  document.title = `${name} · sketchnewton`;
  put("title", name);
  const classes = model.classes?.length ? `${count(model.classes.length)} classes` : "";
  const facts = [model.name ? plain(model.title, 60) : "", `${plain(model.loss, 40)} loss`, classes, `${count(model.features)} features`];
  put("subtitle", facts.filter(Boolean).join(" · "));
  suggest(model.columns, model.weights);
  put("hello-command", example(model.classes));
  const server = model.server ?? {};
  const parts = [server.version && `sketchnewton ${plain(server.version, 20)}`, known(server.uptime) && `up for ${seconds(server.uptime)}`, known(server.log_bytes) && `log of ${bytes(server.log_bytes)}`, server.readers?.length && `${count(server.readers.length)} readers`];
  put("server", parts.filter(Boolean).join(" · "));
  if (started !== null && server.started !== started) history.clear();
  started = server.started ?? null;
}

async function refresh() {
  try {
    await describe();
  } catch (error) {
    if (error instanceof Refused) put("subtitle", plain(error.message));
  }
}

async function start() {
  startForm();
  byId("pause").addEventListener("click", () => {
    paused = !paused;
    byId("pause").setAttribute("aria-pressed", String(paused));
    put("pause", paused ? "Resume" : "Pause");
    showState();
    if (!paused) draw();
  });
  for (const button of document.querySelectorAll("[data-range]")) {
    button.addEventListener("click", () => {
      range = Number(button.dataset.range);
      for (const other of document.querySelectorAll("[data-range]")) other.setAttribute("aria-pressed", String(other === button));
      draw();
    });
  }
  byId("metric-choice").addEventListener("change", (event) => {
    choose(event.target.value);
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyleCharts);
  document.addEventListener("visibilitychange", () => !paused && draw());
  await refresh();
  try {
    (await json("v1/stats/history")).history.forEach((point) => history.add(point));
  } catch {
    // The curves begin now, then.
  }
  setInterval(refresh, MODEL_EVERY);
  follow("v1/events", receive, connected);
}

start();
