// One job: its progress by stage, its outcome, and the actions on it.

import { badge } from "./jobs.js";
import { download, jobPath, json, request } from "./requests.js";
import { follow } from "./progress.js";

const by = (id) => document.getElementById(id);
const ENDED = ["succeeded", "failed", "cancelled"];
const SAYS = {
  queued: "is queued", running: "is being converted", succeeded: "is converted", failed: "can't be converted",
  cancelled: "was cancelled",
};

// The extension of a job's result.
const extension = (settings) => ({ stablehlo: settings.mlir_artifact ? ".mlirbc" : ".mlir", iree: ".vmfb" })[settings.target] || ".tflite";

export const stem = (name) => String(name || "model").split(/[\\/]/).filter(Boolean).pop()?.replace(/\.(tar|zip|tgz|gz|pb|pbtxt|mlir|mlirbc|bin)$/g, "") || "model";

export class JobView {
  constructor(onChange, onProblem) {
    this.onChange = onChange;
    this.onProblem = onProblem;
    this.stages = [];
    this.job = null;
    addEventListener("message", (event) => this.handReport(event));
  }

  async show(id, focus) {
    this.leave();
    const stopper = (this.stopper = new AbortController());
    try {
      const job = await json(jobPath(id), { signal: stopper.signal });
      if (stopper.signal.aborted) return;
      this.job = job;
      this.stages = [];
      by("job").hidden = false;
      this.draw();
      if (focus) by("job-title").focus();
      if (!ENDED.includes(job.state)) this.follow(stopper.signal);
      else this.loadReport(stopper.signal);
    } catch (problem) {
      if (!stopper.signal.aborted) this.onProblem(problem);
    }
  }

  leave() {
    if (this.stopper) this.stopper.abort();
    by("job").hidden = true;
    this.job = this.frame = this.report = null;
    clearTimeout(this.saying);
  }

  async follow(signal) {
    const { id } = this.job;
    try {
      await follow(id, signal, (type, event) => this.heard(type, event), (text) => this.trouble(text));
      if (signal.aborted) return;
      this.job = await json(jobPath(id), { signal });
      this.draw();
      say(`${this.job.model_name} ${SAYS[this.job.state]}`);
      this.loadReport(signal);
      this.onChange();
    } catch (problem) {
      if (!signal.aborted) this.onProblem(problem);
    }
  }

  heard(type, event) {
    if (type === "stage") this.stages.push(event);
    else if (event.name === "queued") this.stages = [];
    if (type === "state") this.job = { ...this.job, state: event.name };
    this.drawState();
    // Stages change too fast to announce each of them.
    clearTimeout(this.saying);
    this.saying = setTimeout(() => say(type === "stage" ? `Stage: ${event.name}` : `${this.job.model_name} ${SAYS[event.name] || ""}`), 400);
  }

  trouble(text) {
    by("job-trouble").textContent = text;
  }

  draw() {
    const { job } = this;
    by("job-title").textContent = plain(job.model_name);
    by("job-body").replaceChildren(
      el("p", { id: "job-state" }),
      el("p", { id: "job-trouble", class: "problem", role: "status" }),
      el("ol", { id: "stages", class: "stages", "aria-label": "Stages" }),
      el("div", { id: "outcome" }, this.outcome()),
      el("div", { class: "row", id: "actions" }, this.actions()),
      el("div", { id: "report" }),
    );
    this.drawState();
  }

  drawState() {
    const { job, stages } = this;
    const runs = !ENDED.includes(job.state);
    by("job-state").replaceChildren(el("span", { class: `state ${job.state}` }, job.state), ...badge(job), job.is_cached ? " (cached result of the same conversion)" : "");
    by("stages").replaceChildren(...stages.map((stage, index) => {
      const next = stages[index + 1];
      const current = runs && !next;
      return el("li", { "aria-current": current && "step" }, stage.name, next && el("small", {}, ` ${duration(Math.max(0, next.at - stage.at))}`));
    }));
    by("stages").hidden = !stages.length;
  }

  outcome() {
    const { job } = this;
    if (job.state === "failed") return this.problems();
    if (job.state !== "succeeded") return [];
    const tile = (name, value, note, style) => Boolean(value) && el("div", { class: `tile ${style || ""}` }, el("dt", {}, name), el("dd", {}, value, note && el("small", {}, note)));
    const { size, operators, notes, fidelity } = job.summary || {};
    return el("dl", { class: "tiles" },
      fidelity && tile("Fidelity", ...[...nearness(fidelity), ""].slice(0, 2), fidelity.is_low && "bad"),
      tile("File", size && bytes(size)),
      tile("Operators", operators && count(operators)),
      tile("Time", job.seconds && duration(job.seconds)),
      tile("Memory", job.peak && bytes(job.peak)),
      tile("Notes", notes && count(notes)));
  }

  problems() {
    const { errors = [], advice = [] } = this.job.problem || {};
    const item = (each) => el("li", {},
      el("p", {}, [each.op, each.node && `node "${each.node}"`, each.location].filter(Boolean).join(", "), each.op || each.node || each.location ? ": " : "", each.message, " ", el("code", {}, each.code)),
      each.hint && el("p", { class: "dim" }, each.hint));
    return [el("h3", {}, "Why it failed"), el("ul", { class: "problems" }, errors.map(item)), advice.map((text) => el("p", {}, text))];
  }

  actions() {
    const { job } = this;
    const name = stem(job.model_name);
    const file = (part, label, as, strong) => el("button", { class: `button ${strong ? "strong" : ""}`, type: "button",
      onclick: () => this.does(() => download(jobPath(job.id, part), as)) }, label);
    const act = (label, work) => el("button", { class: "button", type: "button", onclick: () => this.does(work) }, label);
    const ended = ENDED.includes(job.state);
    return [
      job.state === "succeeded" && file("result", "Download the model", `${name}${extension(job.settings || {})}`, true),
      job.state === "succeeded" && ((job.summary || {}).beside || []).map((each) =>
        file(`result/${each.slice(1)}`, each === ".mlir" ? "StableHLO text" : "Weights", `${name}${each}`, true)),
      job.state === "succeeded" && file("report", "Report (JSON)", `${name}.json`),
      job.state === "succeeded" && file("report.html", "Report (HTML)", `${name}.html`),
      job.state === "succeeded" && file("log", "Log", `${name}.log`),
      !ended && act("Cancel", () => this.change("cancel")),
      (job.state === "failed" || job.state === "cancelled") && act("Try again", () => this.change("retry")),
      ended && act("Delete", () => this.remove()),
    ];
  }

  async does(work) {
    try {
      await work();
    } catch (problem) {
      this.onProblem(problem);
    }
  }

  async change(verb) {
    const { id } = this.job;
    await request(jobPath(id, verb), { method: "POST" });
    await this.show(id, true);
    this.onChange();
  }

  async remove() {
    await request(jobPath(this.job.id), { method: "DELETE" });
    say(`${this.job.model_name} was deleted`);
    location.hash = "";
    this.onChange();
    by("jobs-title").focus();
  }

  // The report is a separate page with contents from the model's author, so it runs in a sandboxed frame.
  async loadReport(signal) {
    if (this.job.state !== "succeeded") return;
    try {
      const text = await (await request(jobPath(this.job.id, "report.html"), { signal })).text();
      if (signal.aborted) return;
      this.report = text;
      this.frame = el("iframe", { class: "report", title: "Report of the conversion", src: "page/frame.html", sandbox: "allow-scripts" });
      // The report has hundreds of tab stops.
      const skip = el("button", { class: "button passing", type: "button", onclick: () => by("jobs-title").focus() }, "Skip the report");
      by("report").replaceChildren(el("h3", {}, "Report"), skip, this.frame);
    } catch (problem) {
      if (!signal.aborted) this.onProblem(problem);
    }
  }

  handReport(event) {
    if (this.frame && event.source === this.frame.contentWindow && event.data === "ready") event.source.postMessage(this.report, "*");
  }
}
