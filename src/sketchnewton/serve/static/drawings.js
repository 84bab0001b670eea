// Bars, the calibration curve and the spectrum. Names are text: nothing here is ever markup.

import { count, element, known, number, percent, plain } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";

function shape(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const hint = (text) => shape("title", {}, text);
const nothing = (host, text) => host.replaceChildren(element("p", "empty", text));

/** `items`: {name, value, text}; lengths are relative to the largest. Negative values go left where `signed`. */
export function bars(host, items, { signed = false, empty = "None yet.", most = null } = {}) {
  const shown = items.filter(({ value }) => known(value));
  if (!shown.length) return nothing(host, empty);
  const longest = most ?? (Math.max(...shown.map(({ value }) => Math.abs(value))) || 1);
  const list = host.querySelector("ol") ?? element("ol", "");
  while (list.children.length > shown.length) list.lastChild.remove();
  while (list.children.length < shown.length) {
    const row = element("li", "");
    row.append(element("span", "name"), element("span", "bar", element("i", "")), element("span", "value"));
    list.append(row);
  }
  shown.forEach(({ name, value, text }, i) => {
    const [label, bar, figure] = list.children[i].children;
    const readable = plain(name);
    if (label.textContent !== readable) label.textContent = label.title = readable;
    if (figure.textContent !== text) figure.textContent = text;
    const share = Math.min(1, Math.abs(value) / longest);
    const fill = bar.firstChild;
    fill.className = value < 0 ? "negative" : "";
    fill.style.width = `${(signed ? 50 : 100) * share}%`;
  });
  if (!list.parentNode) host.replaceChildren(list);
  return undefined;
}

/** Predicted against observed, the area of a dot by its count. */
export function calibration(host, bins) {
  const used = (bins ?? []).filter((bin) => bin.count > 0 && known(bin.predicted) && known(bin.observed));
  if (!used.length) return nothing(host, "None: either no labels yet, or a model without probabilities.");
  const [left, top, side] = [40, 10, 220];
  const x = (p) => left + side * p;
  const y = (p) => top + side * (1 - p);
  const largest = Math.max(...used.map((bin) => bin.count));
  const parts = [0, 0.25, 0.5, 0.75, 1].flatMap((p) => [
    shape("line", { class: "grid", x1: x(0), x2: x(1), y1: y(p), y2: y(p) }),
    shape("text", { class: "tick", x: left - 8, y: y(p) + 4, "text-anchor": "end" }, `${100 * p}%`),
    shape("text", { class: "tick", x: x(p), y: y(0) + 18, "text-anchor": "middle" }, `${100 * p}%`),
  ]);
  parts.push(shape("line", { class: "ideal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }));
  const line = used.map((bin) => `${x(bin.predicted)},${y(bin.observed)}`).join(" ");
  parts.push(shape("polyline", { class: "curve", points: line }));
  for (const bin of used) {
    const words = `predicted ${percent(bin.predicted)}, observed ${percent(bin.observed)}, ${count(bin.count)} rows`;
    const radius = 3 + 7 * Math.sqrt(bin.count / largest);
    parts.push(shape("circle", { class: "dot", cx: x(bin.predicted), cy: y(bin.observed), r: radius }, hint(words)));
  }
  const axes = [
    shape("text", { class: "axis", x: x(0.5), y: y(0) + 36, "text-anchor": "middle" }, "predicted"),
    shape("text", { class: "axis", x: 0, y: 0, "text-anchor": "middle", transform: `translate(-1 ${y(0.5)}) rotate(-90)` }, "observed"),
  ];
  const words = used.map((bin) => `${percent(bin.predicted)}: ${percent(bin.observed)}`).join(", ");
  const label = `Calibration, predicted and observed: ${words}`;
  host.replaceChildren(
    shape("svg", { class: "drawing", viewBox: "-12 0 296 276", role: "img", "aria-label": label }, ...parts, ...axes),
  );
  return undefined;
}

/** Eigenvalues as bars on a logarithmic scale; those of 0 have none. */
export function spectrum(host, values) {
  const used = (values ?? []).filter((value) => known(value) && value > 0);
  if (!used.length) return nothing(host, "None yet, or a learner without a sketch.");
  const [left, top, width, height] = [48, 10, 232, 220];
  const high = Math.ceil(Math.log10(used[0]) + 1e-9);
  const low = Math.max(high - 12, Math.min(high - 1, Math.floor(Math.log10(used.at(-1)))));
  const y = (power) => top + (height * (high - power)) / (high - low);
  const parts = [];
  const step = Math.ceil((high - low) / 6);
  for (let power = high; power >= low; power -= step) {
    parts.push(shape("line", { class: "grid", x1: left, x2: left + width, y1: y(power), y2: y(power) }));
    const tick = shape("text", { class: "tick", x: left - 8, y: y(power) + 4, "text-anchor": "end" }, "10");
    tick.append(shape("tspan", { dy: -5, "font-size": 9 }, String(power).replace("-", "−")));
    parts.push(tick);
  }
  const slot = width / used.length;
  used.forEach((value, i) => {
    const from = y(Math.max(low, Math.min(high, Math.log10(value))));
    const bar = { class: "eigenvalue", x: left + slot * (i + 0.14), y: from, width: slot * 0.72, height: Math.max(1.5, top + height - from), rx: Math.min(3, slot / 4) };
    parts.push(shape("rect", bar, hint(`eigenvalue ${i + 1}: ${number(value)}`)));
  });
  parts.push(shape("text", { class: "axis", x: left + width / 2, y: top + height + 24, "text-anchor": "middle" }, used.length === 1 ? "1 eigenvalue" : `${used.length} eigenvalues, largest first`));
  const label = `Eigenvalues: ${used.slice(0, 20).map((value) => number(value, 3)).join(", ")}`;
  host.replaceChildren(shape("svg", { class: "drawing", viewBox: "-4 0 288 276", role: "img", "aria-label": label }, ...parts));
  return undefined;
}
