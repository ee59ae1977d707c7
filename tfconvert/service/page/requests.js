// Requests to the server, and readable messages for its errors.

const KEY = "tfconvert-token";

export const token = {
  get: () => sessionStorage.getItem(KEY) || "",
  set: (text) => (text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY)),
};

// A failed request. `status` is 0 if the server was not reached.
export class Problem extends Error {
  constructor(status, body, wait) {
    super(told(status, body, wait));
    this.status = status;
    this.wait = wait;
    this.diagnostics = (body && body.diagnostics) || [];
  }
}

const SENTENCES = {
  0: () => "The server can't be reached. Check that it is running and that this machine is online, then try again.",
  401: () => "The server doesn't know this token.",
  403: () => "This token doesn't permit that.",
  404: () => "This job doesn't exist any more.",
  413: () => "The upload exceeds the server's size limit.",
  429: (wait) => `The server is busy. Try again in ${wait || 10} seconds.`,
  503: (wait) => `The server can't accept jobs at the moment. Try again in ${wait || 10} seconds.`,
};

// A diagnostic's text as a sentence.
export function sentence(text) {
  const begun = /^[a-z]+[ ,]/.test(text) ? text[0].toUpperCase() + text.slice(1) : text;
  return /[.!?:]$/.test(begun) ? begun : `${begun}.`;
}

function told(status, body, wait) {
  const detail = body && (body.detail || body.title);
  const own = SENTENCES[status];
  if (!own) return detail ? sentence(detail) : `The server answered with status ${status}.`;
  return detail ? `${own(wait)} (${detail})` : own(wait);
}

function headers(more) {
  const secret = token.get();
  return secret ? { ...more, Authorization: `Bearer ${secret}` } : { ...more };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null; // A response from a proxy.
  }
}

const waits = (text) => (/^\d+$/.test(text || "") ? Number(text) : 0);

export async function request(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { ...options, headers: headers(options.headers), cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0);
  }
  if (answer.ok) return answer;
  const body = parsed(await answer.text());
  const wait = waits(answer.headers.get("Retry-After"));
  if (body && body.code === "page-not-ready") {
    await new Promise((resolve) => setTimeout(resolve, 1000 * wait));
    return request(path, options);
  }
  throw new Problem(answer.status, body, wait);
}

export const json = async (path, options) => (await request(path, options)).json();
export const jobPath = (id, part) => `v1/jobs/${encodeURIComponent(id)}${part ? `/${part}` : ""}`;

// Uploads a job, with XMLHttpRequest because fetch reports no upload progress. Returns the job, or `null` if cancelled.
export function submit(form, key, onProgress, signal) {
  return new Promise((resolve, reject) => {
    const call = new XMLHttpRequest();
    call.open("POST", "v1/jobs");
    for (const [name, value] of Object.entries(headers({ "Idempotency-Key": key }))) call.setRequestHeader(name, value);
    call.upload.addEventListener("progress", (event) => event.total && onProgress(event.loaded / event.total));
    call.addEventListener("abort", () => resolve(null));
    call.addEventListener("error", () => reject(new Problem(0)));
    call.addEventListener("load", () => {
      const body = parsed(call.responseText);
      if (call.status >= 200 && call.status < 300 && body) resolve(body);
      else reject(new Problem(call.status, body, waits(call.getResponseHeader("Retry-After"))));
    });
    signal.addEventListener("abort", () => call.abort());
    call.send(form);
  });
}

export function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Saves a part of a job as a file. A plain link can't send a token.
export async function download(path, name) {
  const answer = await request(path);
  const link = el("a", { href: URL.createObjectURL(await answer.blob()), download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
