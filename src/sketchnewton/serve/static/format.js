// Numbers as people read them, and elements that hold text as text.

const NONE = "–";
const SPACE = "\u00a0"; // a unit stays with its number

/** Whether there is a figure: what is unknown is null. */
export const known = (x) => typeof x === "number" && Number.isFinite(x);

/** Significant digits: 0.4213, 12.34, 1.2e-7. */
export function number(x, digits = 4) {
  if (!known(x)) return NONE;
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size < 1e-4 || size >= 1e9) return x.toExponential(2).replace("e+", "e");
  if (size >= 10 ** digits) return count(x);
  return Number(x.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits });
}

export const count = (x) => (known(x) ? Math.round(x).toLocaleString("en") : NONE);

export function percent(x) {
  if (!known(x)) return NONE;
  return x > 0 && x < 1e-4 ? `<${SPACE}0.01${SPACE}%` : `${number(100 * x, 3)}${SPACE}%`;
}

export const signed = (x, digits = 3) => (known(x) && x > 0 ? `+${number(x, digits)}` : number(x, digits).replace("-", "−"));

export function milliseconds(x) {
  if (!known(x)) return NONE;
  if (x < 1) return `${number(1000 * x, 3)}${SPACE}µs`;
  return x < 1000 ? `${number(x, 3)}${SPACE}ms` : seconds(x / 1000);
}

export function seconds(x) {
  if (!known(x)) return NONE;
  if (x < 1) return `${number(1000 * x, 3)}${SPACE}ms`;
  if (x < 120) return `${number(x, 3)}${SPACE}s`;
  if (x < 7200) return `${number(x / 60, 3)}${SPACE}min`;
  return x < 172800 ? `${number(x / 3600, 3)}${SPACE}h` : `${number(x / 86400, 3)}${SPACE}days`;
}

export function bytes(x) {
  if (!known(x)) return NONE;
  const units = ["B", "KB", "MB", "GB", "TB"];
  const power = x < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(x) / 3));
  return `${number(x / 1000 ** power, 3)}${SPACE}${units[power]}`;
}

export const clock = (unix) => new Date(1000 * unix).toLocaleTimeString(undefined, { hourCycle: "h23" });

// Names of features and messages come from anywhere: characters that turn the direction of text, or cannot be
// seen, are shown by their code.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

/** Text that shows what is in it. */
export function plain(text, longest = 300) {
  const whole = String(text ?? "");
  const cut = whole.length > longest ? `${whole.slice(0, longest)}…` : whole;
  return cut.replace(UNSEEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A figure by the name of the metric. */
export const metricValue = (name, x) => (["error", "accuracy"].includes(name) ? percent(x) : number(x));

const METRICS = { auc: "AUC", error: "Error rate", log_loss: "Log loss", brier: "Brier score", f1: "F1", mae: "MAE", rmse: "RMSE", r2: "R²" };

export const metricName = (name) => METRICS[name] ?? plain(name, 40);

/** An element with a class, and text or children: never markup. */
export function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

export const byId = (id) => document.getElementById(id);

/** Sets the text where it has changed: what reads the page aloud hears no repetitions. */
export function put(id, text) {
  const place = byId(id);
  if (place.textContent !== text) place.textContent = text;
}
