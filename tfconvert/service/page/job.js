// One job: its progress by stage, its outcome, and the actions on it.

import { badge } from "./jobs.js";
import { download, jobPath, json, request, sentence } from "./requests.js";
import { follow } from "./progress.js";
import { inBrowser, summary } from "./settings.js";

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
  // `form` takes a job's model and settings, to convert it again.
  constructor(form, onChange, onProblem) {
    this.form = form;
    this.onChange = onChange;
    this.onProblem = onProblem;
    this.stages = [];
    this.job = null;
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
      else this.loadFindings(stopper.signal);
    } catch (problem) {
      if (!stopper.signal.aborted) this.onProblem(problem);
    }
  }

  leave() {
    if (this.stopper) this.stopper.abort();
    by("job").hidden = true;
    this.job = null;
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
      this.loadFindings(signal);
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
      el("ul", { id: "job-settings", class: "settings", "aria-label": "Settings" }),
      el("p", { id: "job-trouble", class: "problem", role: "status" }),
      el("details", { id: "stages-box", open: !ENDED.includes(job.state) }, el("summary", { id: "stages-title" }), el("ol", { id: "stages", class: "stages", "aria-label": "Stages" })),
      el("div", { id: "outcome" }, this.tiles()),
      el("div", { id: "findings" }),
      el("div", { class: "row", id: "actions" }, this.actions()),
    );
    this.drawState();
    this.drawSettings();
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
    by("stages-title").textContent = many(stages.length, "stage");
    by("stages-box").hidden = !stages.length;
  }

  async drawSettings() {
    const { job } = this;
    const found = await summary(job.settings);
    if (this.job !== job && (!this.job || this.job.id !== job.id)) return;
    by("job-settings").replaceChildren(...found.map(([label, value]) => el("li", {}, value ? `${label}: ` : label, value && el("b", {}, value))));
    by("job-settings").hidden = !found.length;
  }

  tiles() {
    const { job } = this;
    if (job.state !== "succeeded") return [];
    const tile = (name, value, note, style) => Boolean(value) && el("div", { class: `tile ${style || ""}` }, el("dt", {}, name), el("dd", {}, value, note && el("small", {}, note)));
    const { size, operators, notes, fidelity, max_absolute: difference, accelerators } = explained(job.summary || {});
    return el("dl", { class: "tiles" },
      fidelity && tile("Fidelity", ...[...nearness(fidelity), ""].slice(0, 2), fidelity.is_low && "bad"),
      difference !== undefined && tile("Verified", "yes", `largest difference ${exponential(difference)}`),
      Object.entries(accelerators || {}).map(([name, verdict]) => tile(name.toUpperCase(), verdict, "", "words")),
      tile("File", size && bytes(size)),
      tile("Operators", operators && count(operators)),
      tile("Time", job.seconds && duration(job.seconds)),
      tile("Memory", job.peak && bytes(job.peak)),
      tile("Notes", notes && count(notes)));
  }

  // Shows why a job failed, or what the report notes about the result.
  async loadFindings(signal) {
    const { job } = this;
    try {
      if (job.state === "failed") {
        const { errors = [], advice = [] } = job.problem || {};
        const known = await Promise.all(advice.map(inBrowser));
        this.put(job, el("h3", {}, "Why it failed"), await findings(errors), known.map((text) => el("p", { class: "dim" }, sentence(text))));
      } else if (job.state === "succeeded" && (job.summary || {}).notes) {
        const { notes = [] } = await json(jobPath(job.id, "report"), { signal });
        this.put(job, el("h3", {}, "Notes"), await findings(notes));
      }
    } catch (problem) {
      if (!signal.aborted) this.onProblem(problem);
    }
  }

  put(job, ...content) {
    if (this.job && this.job.id === job.id) by("findings").replaceChildren(...content.flat());
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
      job.state === "succeeded" && el("a", { class: "button strong", href: `#report=${encodeURIComponent(job.id)}` }, "Open the report"),
      job.state === "succeeded" && file("report.html", "Report (HTML)", `${name}.html`),
      job.state === "succeeded" && file("report", "Report (JSON)", `${name}.json`),
      job.state === "succeeded" && file("log", "Log", `${name}.log`),
      !ended && act("Cancel", () => this.change("cancel")),
      this.mayUseFlex() && act("Try again with Select TF ops", () => this.form.again(job, { ...job.settings, allow_flex: true })),
      (job.state === "failed" || job.state === "cancelled") && act("Try again", () => this.change("retry")),
      ended && act("Change the settings", () => this.form.edit(job)),
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

  // Whether the job failed for ops that TensorFlow's kernels in the app could compute.
  mayUseFlex() {
    const { state, settings, problem } = this.job;
    return state === "failed" && !(settings || {}).allow_flex && /allow_flex/.test(JSON.stringify(problem));
  }

  async remove() {
    const { job } = this;
    if (!(await sure(`Delete ${job.model_name}?`, "The result, the report and the log are deleted, too."))) return;
    await request(jobPath(job.id), { method: "DELETE" });
    say(`${job.model_name} was deleted`);
    location.hash = "";
    this.onChange();
    by("jobs-title").focus();
  }
}

// Diagnostics, with each hint once.
async function findings(diagnostics) {
  const groups = new Map();
  for (const each of diagnostics) groups.set(each.hint || "", [...(groups.get(each.hint || "") || []), each]);
  const hints = await Promise.all([...groups.keys()].map(inBrowser));
  const item = (each) => {
    const where = [each.op, each.node && `node "${each.node}"`, each.location].filter(Boolean).join(", ");
    return el("p", {}, where && el("b", {}, where), where && ": ", each.message, " ", el("code", {}, each.code));
  };
  return el("ul", { class: "problems" }, [...groups.values()].map((group, index) =>
    el("li", {}, group.map(item), hints[index] && el("p", { class: "dim" }, sentence(hints[index])))));
}

// Asks before something that can't be undone.
function sure(title, text) {
  by("asked-title").textContent = plain(title);
  by("asked-text").textContent = text;
  by("asked").returnValue = "no";
  by("asked").showModal();
  return new Promise((resolve) => by("asked").addEventListener("close", () => resolve(by("asked").returnValue === "yes"), { once: true }));
}
