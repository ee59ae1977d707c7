// The form: the model, its settings, and the upload.

import { newKey, submit } from "./requests.js";
import { pack, walk } from "./tar.js";

const by = (id) => document.getElementById(id);
const STATIC = ["int8", "int16"];
const HELP = {
  dynamic: "Weights take a quarter of their size; no samples are needed.",
  float16: "Weights take half their size; best on GPUs.",
  weights: "Weights are stored as integers and used as floats.",
  int8: "All operators compute with integers. Add typical inputs, unless the model was trained for quantization.",
  int16: "8-bit weights and 16-bit activations. Add typical inputs.",
};

export class Form {
  constructor(onSubmitted, onRefused) {
    this.onSubmitted = onSubmitted;
    this.onRefused = onRefused;
    this.model = null; // `{name, blob, note}`
    this.key = "";
    by("form").addEventListener("submit", (event) => { event.preventDefault(); this.send(); });
    by("form").addEventListener("input", () => { this.key = ""; });
    by("quantize").addEventListener("change", () => this.quantizeChanged());
    by("file").addEventListener("change", () => this.pickedFile());
    by("folder").addEventListener("change", () => this.pickedFolder());
    by("stop").addEventListener("click", () => this.stopper && this.stopper.abort());
    this.quantizeChanged();
    this.takeDrops();
  }

  quantizeChanged() {
    const mode = by("quantize").value;
    by("samples-field").hidden = !STATIC.includes(mode);
    by("quantize-help").textContent = HELP[mode] || "";
    by("quantize-help").hidden = !mode;
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
    by("form-problem").textContent = "";
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
    by("more").removeAttribute("aria-invalid");
    try {
      more = JSON.parse(by("more").value.trim() || "{}");
      if (typeof more !== "object" || more === null || Array.isArray(more)) throw new Error("it must be an object, {...}");
    } catch (error) {
      by("more-problem").textContent = plain(`The settings are not valid JSON: ${error.message}`);
      by("more").setAttribute("aria-invalid", "true");
      by("more").closest("details").open = true;
      by("more").focus();
      return null;
    }
    const [mode, batch] = [by("quantize").value, by("batch").value];
    if (!by("batch").validity.valid) {
      this.show("The batch size must be a whole number, at least 1.");
      by("batch").focus();
      return null;
    }
    return { ...(mode && { quantize: mode }), ...(batch && { batch: Number(batch) }), ...(by("verify").checked && { verify: true }), ...more };
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
    form.append("options", JSON.stringify(settings));
    if (place) form.append("place", place);
    else form.append("model", this.model.blob, this.model.name);
    const [samples] = by("samples").files;
    if (samples && !by("samples-field").hidden) form.append("calibration", samples, samples.name);
    return form;
  }

  async send() {
    if (this.stopper) return;
    this.show("");
    const form = this.content();
    if (form === null) return;
    this.key = this.key || newKey(); // The same key when the upload is repeated after a lost connection.
    this.stopper = new AbortController();
    this.busy(true);
    try {
      const job = await submit(form, this.key, (part) => { by("sent").value = part; }, this.stopper.signal);
      if (job === null) return this.show("The upload was cancelled.");
      this.key = "";
      this.onSubmitted(job);
    } catch (problem) {
      this.show([problem.message, ...problem.diagnostics.map((each) => each.hint).filter(Boolean)].join(" "));
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

  show(text) {
    by("form-problem").textContent = plain(text);
  }
}
