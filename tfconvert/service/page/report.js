// The report of a job as the whole page. It has contents from the model's author, so it runs in a sandboxed frame.

import { jobPath, request } from "./requests.js";

const by = (id) => document.getElementById(id);

export class ReportView {
  constructor(onProblem) {
    this.onProblem = onProblem;
    addEventListener("message", (event) => {
      if (this.frame && event.source === this.frame.contentWindow && event.data === "ready") event.source.postMessage(this.text, "*");
    });
  }

  async show(id) {
    this.leave();
    const stopper = (this.stopper = new AbortController());
    document.body.classList.add("reporting");
    by("report").hidden = false;
    by("report-back").href = `#job=${encodeURIComponent(id)}`;
    by("report-state").textContent = "Loading the report…";
    by("report-back").focus();
    try {
      this.text = await (await request(jobPath(id, "report.html"), { signal: stopper.signal })).text();
      if (stopper.signal.aborted) return;
      this.frame = el("iframe", { class: "report", title: "Report of the conversion", src: "page/frame.html", sandbox: "allow-scripts allow-downloads" });
      by("report-state").textContent = "";
      by("report").append(this.frame);
    } catch (problem) {
      if (stopper.signal.aborted) return;
      this.leave();
      this.onProblem(problem);
    }
  }

  leave() {
    if (this.stopper) this.stopper.abort();
    if (this.frame) this.frame.remove();
    this.frame = this.text = null;
    by("report").hidden = true;
    document.body.classList.remove("reporting");
  }
}
