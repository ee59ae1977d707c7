// The events of a job as they happen. After a lost connection, the stream continues where it stopped.

import { Problem, jobPath, request } from "./requests.js";

const MIN_DELAY = 500; // Milliseconds between attempts.
const MAX_DELAY = 10000;

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// Yields events `{id, type, data}` from the lines of a stream.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = { type: "message", data: "" };
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) {
      const [, field, text] = /^([^:]*):? ?(.*)$/.exec(line);
      if (field === "id") event.id = text;
      else if (field === "event") event.type = text;
      else if (field === "data") event.data += text;
      else if (!line) {
        if (event.data || event.type === "end") yield event;
        event = { type: "message", data: "" };
      }
    }
  }
}

// Calls `onEvent` with each event of a job until it has ended, and `onTrouble` with a message about the connection, which
// is empty once it works again.
export async function follow(id, signal, onEvent, onTrouble) {
  let last = "";
  let wait = MIN_DELAY;
  while (!signal.aborted) {
    try {
      const more = last ? { "Last-Event-ID": last } : {};
      const answer = await request(jobPath(id, "events"), { headers: { Accept: "text/event-stream", ...more }, signal });
      onTrouble("");
      for await (const event of events(answer.body)) {
        if (event.type === "end") return;
        if (event.id) last = event.id;
        wait = MIN_DELAY;
        onEvent(event.type, JSON.parse(event.data));
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status && error.status !== 429 && error.status !== 503) throw error;
      onTrouble("The connection to the server is lost. Retrying.");
    }
    await sleep(wait);
    wait = Math.min(wait * 2, MAX_DELAY);
  }
}
