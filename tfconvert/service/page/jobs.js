// The list of jobs, one page at a time.

import { json } from "./requests.js";
import { summary } from "./settings.js";

const by = (id) => document.getElementById(id);
const LIMIT = 20;
const NARROW = ["Size", "Time", "Notes"];

const when = (seconds) => (seconds ? new Date(seconds * 1000).toLocaleString() : "");

// Badges for what verifying a result told: whether a quantized model is near to the float model, or any to the original.
export function badge(job) {
  const { fidelity, max_absolute: difference } = job.summary || {};
  const is_low = fidelity && fidelity.is_low;
  if (!fidelity && difference === undefined) return [];
  return [" ", el("span", { class: `state ${is_low ? "low" : "succeeded"}` }, is_low ? "low fidelity" : "verified")];
}

export class JobsView {
  constructor(onProblem) {
    this.onProblem = onProblem;
    this.cursors = [""]; // Of the pages up to the current one.
    by("filter").addEventListener("submit", (event) => event.preventDefault());
    by("filter-state").addEventListener("change", () => this.first());
    by("filter-name").addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.first(), 250);
    });
    by("older").addEventListener("click", () => this.turn(() => this.next && this.cursors.push(this.next)));
    by("newer").addEventListener("click", () => this.turn(() => this.cursors.length > 1 && this.cursors.pop()));
  }

  first() {
    this.cursors = [""];
    return this.load();
  }

  async turn(step) {
    if (!step()) return;
    await this.load();
    by("jobs-title").focus();
  }

  async load() {
    const query = new URLSearchParams({ limit: LIMIT });
    for (const [name, value] of [["state", by("filter-state").value], ["name", by("filter-name").value.trim()], ["cursor", this.cursors.at(-1)]]) {
      if (value) query.set(name, value);
    }
    const turn = (this.last = {});
    try {
      const found = await json(`v1/jobs?${query}`);
      const told = await Promise.all(found.jobs.map((job) => summary(job.settings)));
      if (turn === this.last) this.draw(found, told.map((pairs) => pairs.map(([label, value]) => (value ? `${label}: ${value}` : label)).join(", ")));
    } catch (problem) {
      if (turn === this.last) this.onProblem(problem);
    }
  }

  draw({ jobs, next }, settings) {
    this.next = next;
    by("newer").disabled = this.cursors.length < 2;
    by("older").disabled = !next;
    const filtered = by("filter-state").value || by("filter-name").value;
    by("jobs-body").replaceChildren(jobs.length ? this.table(jobs, settings) : el("p", { class: "dim" }, filtered ? "No job matches." : "No jobs yet."));
  }

  table(jobs, settings) {
    // Narrow screens show the cells below each other, which removes the table's semantics in browsers. Roles restore them.
    const cell = (head, ...content) => el("td", { role: "cell", "data-head": head, class: NARROW.includes(head) ? "narrow" : "" }, content);
    const row = (job, index) => el("tr", { role: "row" },
      el("th", { scope: "row", role: "rowheader" }, el("a", { href: `#job=${encodeURIComponent(job.id)}` }, job.model_name)),
      cell("State", el("span", { class: `state ${job.state}` }, job.state), badge(job)),
      cell("Settings", settings[index]),
      cell("Notes", (job.summary && job.summary.notes) || ""),
      cell("Created", when(job.created)),
      cell("Size", job.summary && job.summary.size ? bytes(job.summary.size) : ""),
      cell("Time", job.seconds ? duration(job.seconds) : ""));
    const heads = ["Model", "State", "Settings", "Notes", "Created", "Size", "Time"];
    return el("table", { class: "rows", role: "table" },
      el("caption", { class: "unseen" }, "Jobs, newest first"),
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads.map((head) => el("th", { scope: "col", role: "columnheader" }, head)))),
      el("tbody", { role: "rowgroup" }, jobs.map(row)));
  }
}
