// Questions to the server: an answer in one piece, or lines of progress with the answer at the end.

export class Refusal extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function refusal(response) {
  let message = `The server says ${response.status}.`;
  try {
    message = (await response.json()).error ?? message;
  } catch { /* no sentence came */ }
  return new Refusal(message, response.status);
}

const fileOf = ({ type, data }) => new Blob([Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0))], { type });

async function* linesOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts;
  }
  if (rest) yield rest;
}

// `progress({done, total, what})` is told how far it is; a signal ends the work on the server as well.
export async function ask(path, body, { progress = () => {}, signal } = {}) {
  const how = body === undefined ? {} : { method: "POST", body: JSON.stringify(body),
    headers: { "content-type": "application/json" } };
  let response;
  try {
    response = await fetch(path, { ...how, signal, credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("The server does not answer: is it still running?", 0);
  }
  if (!response.ok) throw await refusal(response);
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("application/json")) return response.json();
  if (!type.startsWith("application/x-ndjson")) return response.blob();
  for await (const line of linesOf(response.body)) {
    if (!line) continue;
    const told = JSON.parse(line);
    if (told.error) throw new Refusal(told.error, told.status);
    if (told.progress) progress(told.progress);
    if (told.file) return fileOf(told.file);
    if (told.result) return told.result;
  }
  throw new Refusal("The answer ended too early: is the server still running?", 0);
}
