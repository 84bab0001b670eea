// The form: a record in, a prediction and what each feature adds to it out.

import { Refused, json } from "./connection.js";
import { bars } from "./drawings.js";
import { byId, element, known, number, percent, plain, signed } from "./format.js";

const SHOWN = 25;
const EXAMPLES = { number: 1.5, category: "a", boolean: true, text: "some words", date: "2026-01-31" };

let touched = false;

/** Fill the form with a record as the model knows them, until the person types; values are those of large weights. */
export function suggest(columns, weights) {
  if (touched || !columns?.length) return;
  const seen = (name) => (weights ?? []).find((weight) => weight.name.startsWith(`${name}=`))?.name.slice(name.length + 1);
  const example = ({ name, kind }) => (kind === "category" && seen(name)) || (EXAMPLES[kind] ?? 1);
  const record = Object.fromEntries(columns.slice(0, 12).map((column) => [column.name, example(column)]));
  byId("record").value = JSON.stringify(record, null, 2);
}

export function startForm() {
  const form = byId("form");
  byId("record").addEventListener("input", () => {
    touched = true;
    complain("");
  });
  byId("record").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    predict();
  });
}

function complain(message) {
  byId("record-error").textContent = message;
  byId("record").toggleAttribute("aria-invalid", Boolean(message));
}

function read(text) {
  const record = JSON.parse(text);
  if (record === null || typeof record !== "object" || Array.isArray(record)) {
    throw new SyntaxError('a record is an object, such as {"user": "anna", "price": 3.5}');
  }
  return record;
}

async function predict() {
  const button = byId("form").querySelector("button");
  button.disabled = true;
  try {
    const record = read(byId("record").value);
    const answer = await json("v1/predict?explain=true&remember=false", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ record }),
    });
    complain("");
    show(answer);
  } catch (error) {
    if (error instanceof SyntaxError) complain(`Not a record: ${plain(error.message)}`);
    else if (error instanceof Refused) complain(plain(error.message));
    else complain("The server cannot be reached.");
  } finally {
    button.disabled = false;
  }
}

function show(answer) {
  const result = byId("result");
  const value = typeof answer.prediction === "number" ? number(answer.prediction) : plain(answer.prediction, 80);
  const parts = [element("p", "answer", element("span", "", "Prediction"), element("strong", "", value))];
  const probabilities = Object.entries(answer.probabilities ?? {});
  if (probabilities.length) {
    const places = element("div", "bars");
    const sorted = probabilities.sort((a, b) => b[1] - a[1]).slice(0, 10);
    bars(places, sorted.map(([name, p]) => ({ name, value: p, text: percent(p) })), { most: 1 });
    parts.push(element("h3", "", "Probabilities"), places);
  } else if (known(answer.probability)) {
    parts.push(element("p", "about", `Probability ${percent(answer.probability)}`));
  }
  if (answer.contributions) parts.push(...explained(answer));
  result.replaceChildren(...parts);
  byId("announcer").textContent = `Prediction ${value}`;
}

/** The score as a sum: features by size, the intercept, and what is left. */
function explained(answer) {
  const score = answer.score ?? answer.scores?.[answer.prediction];
  const rows = answer.contributions.slice(0, SHOWN).map(({ name, value, contribution }) => ({
    name: value === 1 || !known(value) ? name : `${name} = ${number(value)}`,
    value: contribution,
    text: signed(contribution),
  }));
  if (known(answer.intercept)) rows.push({ name: "intercept", value: answer.intercept, text: signed(answer.intercept) });
  const left = score - rows.reduce((sum, row) => sum + row.value, 0);
  // Features not shown; and of a model that is not linear, what features do together. The rest is rounding.
  if (Math.abs(left) > 1e-4 * Math.max(1, Math.abs(score))) rows.push({ name: "together, and all else", value: left, text: signed(left) });
  const places = element("div", "bars signed");
  bars(places, rows, { signed: true, empty: "No feature of this record has a weight yet." });
  const of = answer.scores ? ` for ${plain(answer.prediction, 40)}` : "";
  return [
    element("h3", "", `Contributions to the score${of}`),
    places,
    element("p", "about", `Each is what the score of ${signed(score, 4)} would lose without that feature.`),
  ];
}
