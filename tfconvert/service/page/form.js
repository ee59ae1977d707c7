// The form: the model, its settings, and the upload.

import { newKey, sentence, submit } from "./requests.js";
import { SettingFields, inBrowser } from "./settings.js";
import { pack, walk } from "./tar.js";

const by = (id) => document.getElementById(id);
const STATIC = ["int8", "int16"];
const HELP = {
  dynamic: "Weights take a quarter of their size; no samples are needed.",
  float16: "Weights take half their size; best on GPUs.",
  weights: "Weights are stored as integers and used as floats.",
  int8: "Integers, and floats where CPUs are faster with them.",
  int16: "8-bit weights and 16-bit activations.",
};

export class Form {
  constructor(onSubmitted, onRefused) {
    this.onSubmitted = onSubmitted;
    this.onRefused = onRefused;
    this.model = null; // `{name, blob}`, or `{name, job, samples}` for the model of a job.
    this.key = "";
    this.fields = new SettingFields();
    this.drawn = this.fields.draw(by("common"), by("rare")).then(() => this.changed());
    by("form").addEventListener("submit", (event) => { event.preventDefault(); this.send(); });
    by("form").addEventListener("input", () => { this.key = ""; });
    for (const id of ["quantize", "verify", "target"]) by(id).addEventListener("change", () => this.changed());
    by("file").addEventListener("change", () => this.pickedFile());
    by("folder").addEventListener("change", () => this.pickedFolder());
    by("samples").addEventListener("change", () => { by("trained").checked = false; this.showSamples(); });
    by("trained").addEventListener("change", () => { if (by("trained").checked) by("samples").value = ""; this.showSamples(); });
    by("stop").addEventListener("click", () => this.stopper && this.stopper.abort());
    this.takeDrops();
    this.drawn.catch(onRefused);
  }

  get mode() {
    return by("target").value === "litert" ? by("quantize").value : "";
  }

  changed() {
    const { mode } = this;
    by("quantize-field").hidden = by("target").value !== "litert";
    by("samples-field").hidden = !STATIC.includes(mode);
    by("quantize-help").textContent = HELP[mode] || "";
    by("quantize-help").hidden = !mode;
    this.fields.show({ target: by("target").value, quantize: mode, verify: by("verify").checked });
  }

  showSamples() {
    const [file] = by("samples").files;
    const again = this.model && this.model.samples ? "those of the former job" : "";
    by("samples-picked").textContent = plain(file ? `${file.name}: ${bytes(file.size)}` : again);
  }

  pickedFile() {
    const [file] = by("file").files;
    if (!file) return;
    by("folder").value = "";
    this.take(file.name, file, bytes(file.size));
  }

  pickedFolder() {
    const files = [...by("folder").files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
    if (!files.length) return;
    by("file").value = "";
    this.takeFiles(files);
  }

  takeFiles(files) {
    const size = files.reduce((sum, { file }) => sum + file.size, 0);
    const name = files[0].path.split("/")[0];
    this.take(`${name}.tar`, pack(files), `${many(files.length, "file")}, ${bytes(size)}`);
  }

  take(name, blob, note) {
    this.model = { name, blob };
    this.key = "";
    by("picked").textContent = plain(`${name}: ${note}`);
    this.show("");
    this.showSamples();
  }

  // Fills the form with a job: its model, which the server has, and its settings.
  async edit(job) {
    await this.drawn;
    by("form").reset();
    this.model = { name: job.model_name, job: job.id, samples: job.has_samples };
    this.key = "";
    by("picked").textContent = plain(`${job.model_name}: the model of the former job, which need not be sent again`);
    const { quantize, verify, batch, target, ...rest } = this.fields.fill(job.settings || {});
    const given = (job.settings || {}).quantize;
    by("quantize").value = (given && given.mode) || given || "";
    by("verify").checked = Boolean((job.settings || {}).verify);
    by("batch").value = batch ?? "";
    by("target").value = target || "litert";
    const own = ["mode", "trained"];
    const left = Object.fromEntries(Object.entries(quantize && typeof quantize === "object" ? quantize : {}).filter(([name]) => !own.includes(name)));
    if (Object.keys(left).length) rest.quantize = given;
    if (verify && typeof verify === "object") rest.verify = job.settings.verify;
    by("more").value = Object.keys(rest).length ? JSON.stringify(rest) : "";
    by("trained").checked = Boolean(given && given.trained);
    this.changed();
    this.showSamples();
    this.show("");
    by("more-settings").open = true;
    by("convert-title").focus();
    by("convert").scrollIntoView();
  }

  // Accept a drop anywhere on the page. Otherwise the browser would leave the page and open the file.
  takeDrops() {
    const zone = by("drop");
    document.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over-it"); });
    document.addEventListener("dragleave", (event) => event.relatedTarget || zone.classList.remove("over-it"));
    document.addEventListener("drop", async (event) => {
      event.preventDefault();
      zone.classList.remove("over-it");
      const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
      try {
        await this.takeEntries(entries);
      } catch (error) {
        this.show(`The dropped files can't be read: ${error.message}`);
      }
    });
  }

  async takeEntries(entries) {
    if (!entries.length) return;
    by("file").value = by("folder").value = "";
    const files = [];
    for (const entry of entries) for await (const each of walk(entry, entries.length > 1 ? "model/" : "")) files.push(each);
    if (entries.length === 1 && entries[0].isFile) this.take(files[0].path, files[0].file, bytes(files[0].file.size));
    else if (files.length) this.takeFiles(files);
    else this.show("The folder is empty.");
  }

  // Returns the settings, or `null` if they are invalid.
  settings() {
    let more = {};
    by("more-problem").textContent = "";
    document.querySelectorAll("#form [aria-invalid]").forEach((each) => each.removeAttribute("aria-invalid"));
    try {
      more = JSON.parse(by("more").value.trim() || "{}");
      if (typeof more !== "object" || more === null || Array.isArray(more)) throw new Error("it must be an object, {...}");
    } catch (error) {
      by("more-problem").textContent = plain(`The settings are not valid JSON: ${error.message}`);
      return this.point(by("more"));
    }
    if (!by("batch").validity.valid) {
      this.show("The batch size must be a whole number, at least 1.");
      return this.point(by("batch"));
    }
    const { mode } = this;
    const [batch, target] = [by("batch").value, by("target").value];
    let rest;
    try {
      rest = this.fields.read();
    } catch (wrong) {
      this.show(wrong.message);
      return this.point(wrong.input);
    }
    const how = { ...rest.quantize, ...(STATIC.includes(mode) && by("trained").checked && { trained: true }) };
    return {
      ...rest,
      ...(target !== "litert" && { target }),
      ...(mode && { quantize: Object.keys(how).length ? { mode, ...how } : mode }),
      ...(batch && { batch: Number(batch) }),
      ...(by("verify").checked && { verify: rest.verify || true }),
      ...more,
    };
  }

  // Shows which field is wrong.
  point(input) {
    for (let at = input.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
    input.setAttribute("aria-invalid", "true");
    input.focus();
    return null;
  }

  // Returns the form data to send, or `null` if something is missing.
  content() {
    const settings = this.settings();
    if (settings === null) return null;
    const form = new FormData();
    const place = by("place").value.trim();
    if (!this.model && !place) {
      this.show("Choose a model first: drop it above, or choose a file or a folder.");
      by("file").focus();
      return null;
    }
    const { blob, name, job, samples } = this.model || {};
    const [chosen] = by("samples-field").hidden ? [] : by("samples").files;
    const how = settings.quantize && settings.quantize.mode ? settings.quantize : { mode: settings.quantize };
    const given = how.mode;
    if (STATIC.includes(given) && !chosen && !(samples && !place) && !(how.trained || how.trained_only || how.default_range)) {
      this.show(`The mode ${given} needs calibration samples: typical inputs of the model.`, "Choose a file of them, or a mode without samples, such as dynamic; or say that the model was trained for quantization.");
      by("samples").focus();
      return null;
    }
    form.append("options", JSON.stringify(settings));
    if (place) form.append("place", place);
    else if (job) form.append("job", job);
    else form.append("model", blob, name);
    if (chosen) form.append("calibration", chosen, chosen.name);
    return form;
  }

  async send() {
    if (this.stopper) return;
    this.show("");
    const form = this.content();
    if (form !== null) await this.post(form);
  }

  // Converts the model of a job again with some settings.
  async again(job, settings) {
    const form = new FormData();
    form.append("options", JSON.stringify(settings));
    form.append("job", job.id);
    this.key = "";
    await this.post(form);
  }

  async post(form) {
    if (this.stopper) return;
    this.key = this.key || newKey(); // The same key when the upload is repeated after a lost connection.
    this.stopper = new AbortController();
    this.busy(true);
    try {
      const job = await submit(form, this.key, (part) => { by("sent").value = part; }, this.stopper.signal);
      if (job === null) return this.show("The upload was cancelled.");
      this.key = "";
      this.onSubmitted(job);
    } catch (problem) {
      const hints = new Set(problem.diagnostics.map((each) => each.hint).filter(Boolean));
      this.show(problem.message, await inBrowser([...hints].join("; ")));
      this.onRefused(problem);
    } finally {
      this.stopper = null;
      this.busy(false);
    }
  }

  busy(is) {
    by("sent").value = 0;
    by("sent").hidden = by("stop").hidden = !is;
    by("submit").setAttribute("aria-disabled", String(is));
    by("form").setAttribute("aria-busy", String(is));
    if (is) say("Uploading the model");
  }

  // Shows what is wrong, and what to do about it.
  show(text, hint) {
    by("form-problem").replaceChildren(...(text ? [el("p", { class: "problem" }, text)] : []), ...(hint ? [el("p", { class: "dim" }, sentence(hint))] : []));
  }
}
