// Requests to the server that this page came from, with the token where it asks for one.

import { byId } from "./format.js";

const TOKEN = "sketchnewton-token";
const SILENCE = 30_000; // the server speaks every 10 s, even if nothing happens

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

let asking = null;

/** Ask the person for the token; several requests that need one wait for the same answer. */
function askToken(why) {
  asking ??= new Promise((resolve) => {
    const dialog = byId("ask");
    if (why) byId("ask-why").textContent = why;
    byId("token").value = "";
    dialog.oncancel = (event) => event.preventDefault();
    byId("ask-form").addEventListener(
      "submit",
      () => {
        sessionStorage.setItem(TOKEN, byId("token").value.trim());
        asking = null;
        resolve();
      },
      { once: true },
    );
    dialog.showModal();
  });
  return asking;
}

/** The response, once the token is right. Addresses are relative: the server may live under a path. */
export async function request(path, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    const headers = { ...options.headers, ...(token && { Authorization: `Bearer ${token}` }) };
    const response = await fetch(path, { ...options, headers, cache: "no-store", redirect: "error" });
    if (response.ok) return response;
    if (response.status === 401) {
      await askToken(token ? "That token was refused. Try again." : "");
      continue;
    }
    throw await refusal(response);
  }
}

export const json = async (path, options) => (await request(path, options)).json();

async function refusal(response) {
  try {
    const { error } = await response.json();
    return new Refused(response.status, error.code, error.message);
  } catch {
    return new Refused(response.status, "", `the server answered ${response.status}`);
  }
}

/** Server-sent events. EventSource cannot send a token, so they are read as what they are: lines. */
export async function follow(path, onEvent, onState) {
  let wait = 1000;
  for (;;) {
    const stop = new AbortController();
    let silence;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => stop.abort(), SILENCE);
    };
    try {
      heard();
      const response = await request(path, { signal: stop.signal, headers: { Accept: "text/event-stream" } });
      onState("live");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        heard();
        wait = 1000;
        const frames = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
        rest = frames.pop();
        frames.forEach((frame) => dispatch(frame, onEvent));
      }
    } catch (error) {
      if (error instanceof Refused && error.status < 500 && error.status !== 429) {
        onState("refused", error.message);
        return;
      }
    } finally {
      clearTimeout(silence);
    }
    onState("lost");
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(2 * wait, 15_000);
  }
}

function dispatch(frame, onEvent) {
  let name = "message";
  const data = [];
  for (const line of frame.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  if (data.length) onEvent(name, JSON.parse(data.join("\n")));
}
