// Curves over time, drawn by uPlot in the colours of the page, with a legend that follows the pointer.

import { element, known } from "./format.js";

const all = new Set();
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Seconds that charts span at least: the first points of a server are not stretched over all of the width. */
const LEAST_SPAN = 60;

/** Times of the axis: hours and minutes, seconds where ticks are closer, the day where the charts span days. */
function times(plot, ticks, axis, space, step) {
  const [low, high] = [plot.scales.x.min, plot.scales.x.max];
  const day = high - low > 129_600 ? { month: "short", day: "numeric" } : {};
  const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(step < 60 && { second: "2-digit" }) };
  const form = new Intl.DateTimeFormat(undefined, step >= 86_400 ? day : { ...day, ...clock });
  return ticks.map((tick) => form.format(1000 * tick));
}

/** Powers of ten: where a logarithmic axis has its lines, unless others are given. */
export const DECADES = Array.from({ length: 25 }, (_, i) => 10 ** (i - 12));

/**
 * `series`: {name, colour, value: (point) => number, dash, fill, thin}; `format`: of values; `least`: where the axis
 * begins; `lines`: of a logarithmic axis.
 */
export class TimeChart {
  #host;
  #options;
  #legend;
  #plot = null;
  #points = [];

  constructor(host, options) {
    this.#host = host;
    this.#options = options;
    this.#legend = options.series.map((series) => {
      const value = element("b", "", "–");
      const swatch = element("i", "");
      swatch.style.setProperty("--swatch", `var(${series.colour})`);
      swatch.classList.toggle("dashed", Boolean(series.dash));
      return { value, item: element("li", "", swatch, `${series.name} `, value) };
    });
    host.before(element("ul", "legend", ...this.#legend.map(({ item }) => item)));
    host.setAttribute("role", "img");
    new ResizeObserver(() => this.#resize()).observe(host);
    all.add(this);
  }

  /** Show these points. */
  draw(points) {
    this.#points = points;
    if (!this.#plot) this.#make();
    this.#plot.setData(this.#data(), false);
    if (points.length) {
      const max = points.at(-1).time;
      this.#plot.setScale("x", { min: Math.min(points[0].time, max - LEAST_SPAN), max });
    }
    this.#say(points.at(-1));
  }

  /** Other formats or values, of the same number of series. */
  change(options) {
    Object.assign(this.#options, options);
    this.restyle();
  }

  restyle() {
    this.#plot?.destroy();
    this.#plot = null;
    if (this.#points.length) this.draw(this.#points);
  }

  #data() {
    const usable = this.#options.lines ? (x) => known(x) && x > 0 : known;
    const read = (value) => this.#points.map((point) => (usable(value(point)) ? value(point) : null));
    return [this.#points.map((point) => point.time), ...this.#options.series.map(({ value }) => read(value))];
  }

  /** The legend at a point, and in words for those who do not see the curves. */
  #say(point, spoken = true) {
    const texts = this.#options.series.map(({ value }) => this.#options.format(point ? value(point) : null));
    texts.forEach((text, i) => {
      if (this.#legend[i].value.textContent !== text) this.#legend[i].value.textContent = text;
    });
    if (!spoken) return;
    const words = this.#options.series.map(({ name }, i) => `${name} ${texts[i]}`).join(", ");
    this.#host.setAttribute("aria-label", `${this.#options.label} over time. Now: ${words}.`);
  }

  #size() {
    return { width: Math.max(160, this.#host.clientWidth), height: Math.max(120, this.#host.clientHeight) };
  }

  #resize() {
    this.#plot?.setSize(this.#size());
  }

  #make() {
    const { series, format, lines, least } = this.#options;
    const grid = { stroke: colour("--line"), width: 1 };
    const axis = { stroke: colour("--muted"), font: "12px system-ui, sans-serif", grid, ticks: { show: false } };
    const range = (plot, low, high) => {
      if (lines) return [lines.findLast((line) => line <= (low ?? 1)), lines.find((line) => line > (high ?? 1))];
      if (!known(low)) return [0, 1];
      const bottom = least ?? low - 0.08 * (high - low);
      return [Math.min(bottom, low), high > bottom ? high + 0.08 * (high - Math.min(bottom, low)) : bottom + 1];
    };
    const within = (plot, axis, low, high) => lines.filter((line) => line >= low && line <= high);
    this.#plot = new uPlot(
      {
        ...this.#size(),
        legend: { show: false },
        padding: [10, 28, 0, 0], // half of the last time is beyond the axis
        cursor: { sync: { key: "time" }, drag: { x: false, y: false }, points: { size: 7 }, y: false },
        scales: { x: { time: true }, y: { distr: lines ? 3 : 1, range } },
        axes: [
          { ...axis, size: 30, space: 80, grid: { show: false }, values: times },
          { ...axis, size: 62, space: 34, gap: 6, values: (plot, ticks) => ticks.map((tick) => format(tick)), ...(lines && { filter: (plot, ticks) => ticks, splits: within }) },
        ],
        series: [
          {},
          ...series.map((one) => ({
            stroke: colour(one.colour),
            width: one.thin ? 1.25 : 2,
            dash: one.dash,
            fill: one.fill ? `${colour(one.colour)}1f` : undefined, // of colours in hexadecimal: 12 %
            points: { show: (plot, i, first, last) => last === first }, // a line of one point is none
          })),
        ],
        hooks: {
          setCursor: [(plot) => this.#say(this.#points[plot.cursor.idx] ?? this.#points.at(-1), false)],
        },
      },
      this.#data(),
      this.#host,
    );
  }
}

/** Redraw all charts, in the colours of the scheme that holds now. */
export function restyleCharts() {
  all.forEach((chart) => chart.restyle());
}
