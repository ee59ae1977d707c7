// The page: the form, the current job, and the list of jobs.

import { Form } from "./form.js";
import { JobView } from "./job.js";
import { JobsView } from "./jobs.js";
import { ReportView } from "./report.js";
import { token } from "./requests.js";

const by = (id) => document.getElementById(id);

const jobs = new JobsView(trouble);
const form = new Form((made) => {
  jobs.first();
  wanted = true;
  if (location.hash === `#job=${made.id}`) look();
  else location.hash = `job=${made.id}`;
}, (problem) => problem.status === 401 && askForToken(true));
const job = new JobView(form, () => jobs.load(), trouble);
const report = new ReportView(trouble);

// Whether the user has just opened the job, so that it gets the focus.
let wanted = false;

function trouble(problem) {
  if (problem.status === 401) return askForToken(token.get() !== "");
  by("trouble").textContent = plain(problem.message || problem);
  by("trouble").hidden = false;
}

function askForToken(wrong) {
  const shown = !by("access").hidden;
  by("access").hidden = false;
  if (wrong) trouble({ message: "The server doesn't know this token." });
  if (!shown || wrong) by("access-title").focus();
}

by("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token.set(by("token").value.trim());
  by("token").value = "";
  by("access").hidden = by("trouble").hidden = true;
  by("convert-title").focus();
  look();
  jobs.first();
});

function look() {
  by("trouble").hidden = true;
  const [, view, id] = /^#(job|report)=(.+)$/.exec(location.hash) || [];
  if (view === "report") report.show(decodeURIComponent(id));
  else report.leave();
  if (view === "job") job.show(decodeURIComponent(id), wanted);
  else if (view !== "report") job.leave();
  wanted = false;
}

document.addEventListener("click", (event) => {
  if (!event.target.closest("#jobs-body a, #report-back")) return;
  wanted = true;
  if (event.target.closest("a").hash === location.hash) look();
});
addEventListener("hashchange", look);
addEventListener("online", () => { by("trouble").hidden = true; jobs.load(); });
look();
jobs.load();
