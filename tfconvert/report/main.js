// Builds the page from the report, the graphs and the times.

const report = data("report");
const graphs = data("graphs");
const latency = data("latency");
const times = data("times");
const main = document.getElementById("main");
const sum = (counts) => Object.values(counts || {}).reduce((total, value) => total + value, 0);

// The model: name, sizes, inputs and outputs.

function header() {
  const path = String(report.source || "model").split(/[\\/]/);
  const name = path.pop() || path.pop();
  const generic = ["saved_model", "model", "export"].includes(name) && path.length ? `${path.pop()}/${name}` : name;
  dress(document.getElementById("top"), {}, [
    el("p", { class: "over" }, "Conversion to LiteRT"),
    el("h1", {}, generic),
    generic !== report.source && el("p", { class: "path" }, report.source || ""),
  ]);
}

function tile(name, value, note, style) {
  return el("div", { class: `tile ${style || ""}` }, el("dt", {}, name), el("dd", {}, value, note && el("small", {}, note)));
}

function weightsBefore() {
  return graphs ? graphs.before.flatMap((each) => each.nodes).reduce((total, node) => total + (node.bytes || 0), 0) : 0;
}

function summary() {
  const [before, after] = [sum(report.operations_before), sum(report.operators)];
  const weights = weightsBefore();
  const live = graphs ? Math.max(0, ...graphs.after.map((each) => each.live_bytes)) : 0;
  const worst = (report.verification || []).reduce((most, each) => Math.max(most, Number(each.max_relative)), 0);
  const fidelity = (report.quantization || {}).fidelity;
  const [first, ...others] = fidelity ? nearness(fidelity) : [];
  const custom = Object.keys(report.custom_operators || {});
  const tiles = [
    first && tile("Fidelity", first, [...others, fidelity.is_low && fidelity.limits && `below ${fidelity.limits.snr} dB or ${fidelity.limits.agreement * 100}%`].filter(Boolean).join(", "), fidelity.is_low ? "bad" : "good"),
    tile("File", bytes(report.size || 0), weights ? `weights before: ${bytes(weights)}` : "", "strong"),
    tile("Operators", count(after), `from ${many(before, "TensorFlow op")}`),
    times.seconds !== undefined && tile("Time", duration(times.seconds), times.stages ? many(times.stages.length, "stage") : ""),
    live > 0 && tile("Peak memory", bytes(live), "of tensors, at batch 1"),
    report.arena > 0 && tile("Arena", bytes(report.arena), "of the main graph, with open sizes as stored"),
    report.frozen_variables > 0 && tile("Weights", count(report.frozen_variables), "variables frozen"),
    (report.min_runtime_version || custom.length > 0) && tile("Runtime", report.min_runtime_version || "any",
      `TensorFlow Lite, or later${custom.length ? `, with these registered: ${custom.join(", ")}` : ""}`),
    ...(report.accelerators || []).map((each) => tile("Accelerator", each.verdict,
      [...new Set(each.obstacles.map((one) => one.operator || one.reason))].join(", "), each.is_whole ? "good" : "bad")),
    (report.verification || []).length > 0 && tile("Largest error", worst.toExponential(1), "of the largest value", "good"),
  ];
  const rows = (report.functions || []).flatMap((each) => [
    ...Object.entries(each.inputs).map(([name, type]) => [each.signatures.join(", ") || "main", "input", name, type]),
    ...Object.entries(each.outputs).map(([name, type]) => [each.signatures.join(", ") || "main", "output", name, type]),
  ]);
  const cells = rows.map(([key, way, name, type]) => [key, way, el("b", {}, name), el("code", {}, typeof type === "string" ? type : JSON.stringify(type))]);
  return section("summary", "Summary", "", el("dl", { class: "tiles" }, tiles),
    cells.length > 0 && table("Inputs and outputs", ["Signature", "Kind", "Name", "Type"], cells, 20));
}

// The graphs: two drawings, one of which is visible, with a search field and details of the selected op.

class Graphs {
  constructor() {
    this.views = new Map();
    this.side = "after";
    this.number = 0;
    this.details = new Details(this);
    this.stage = el("div", { class: "stage" });
    this.became = new Map();
    graphs.after.forEach((each, number) => Object.entries(each.links || {}).forEach(([index, links]) => {
      for (const kind of ["from", "folded"]) {
        for (const place of links[kind]) {
          const known = this.became.get(place.join()) || { from: [], folded: [] };
          known[kind].push([number, Number(index)]);
          this.became.set(place.join(), known);
        }
      }
    }));
  }

  functions(side) {
    return graphs[side];
  }

  node(side, number, index) {
    return graphs[side][number].nodes[index];
  }

  links(side, number, index) {
    const known = side === "after" ? (graphs.after[number].links || {})[index] : this.became.get([number, index].join());
    return known || { from: [], folded: [] };
  }

  users(side, number, index) {
    const users = [];
    graphs[side][number].nodes.forEach((node, user) => {
      if ((node.operands || []).some((operand) => Array.isArray(operand) && operand[0] === index)) users.push(user);
    });
    return users;
  }

  get view() {
    const key = `${this.side} ${this.number}`;
    if (!this.views.has(key)) {
      const nodes = graphs[this.side][this.number].nodes;
      const title = `Graph ${this.side} the conversion, ${many(nodes.length, "node")}`;
      const [side, number] = [this.side, this.number];
      const view = new GraphView(buildTree(nodes), (item, enter) => this.selected(side, number, item, enter), title);
      view.isNew = true;
      this.views.set(key, view);
    }
    return this.views.get(key);
  }

  selected(side, number, item, enter) {
    this.details.show(side, number, item);
    if (item) say(item.kind === "group" ? `layer ${item.label}, ${many(item.ops, "op")}` : `${item.node.op} ${item.node.name}`);
    if (enter) this.details.element.focus();
    const other = side === "after" ? "before" : "after";
    for (const [key, view] of this.views) {
      view.marked.clear();
      if (!item || item.kind !== "op" || !key.startsWith(other)) continue;
      for (const [place, index] of this.links(side, number, item.index).from) {
        if (key === `${other} ${place}`) view.marked.add(view.tree.leaves[index]);
      }
    }
  }

  open(side, number) {
    this.side = side;
    this.number = number;
    const view = this.view;
    this.stage.replaceChildren(view.element);
    for (const tab of this.tabs) tab.setAttribute("aria-pressed", String(tab.side === side));
    this.fillPicker();
    if (view.isNew || !view.items) {
      view.isNew = false;
      view.arrange();
      view.fit();
    }
    view.drawNow();
    this.details.show(side, number, view.selected);
    this.find();
  }

  show(side, number, index) {
    if (side !== this.side || number !== this.number) this.open(side, number);
    this.view.reveal(this.view.tree.leaves[index], true);
  }

  toggle(item) {
    this.view.toggle(item);
  }

  fillPicker() {
    const names = graphs[this.side].map((each) => each.keys.join(", ") || each.name);
    this.picker.replaceChildren(...names.map((name, number) => el("option", { value: number, selected: number === this.number }, cut(plain(name), 60))));
    this.picker.hidden = names.length < 2;
  }

  // Finds ops whose kind, names or source lines contain all words.
  find() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.found.replaceChildren();
    this.found.hidden = !words.length;
    if (!words.length) return;
    const hits = [];
    graphs[this.side].forEach((each, number) => each.nodes.forEach((node, index) => {
      const text = [node.op, node.name, node.scope, ...(node.names || []), ...(node.sources || [])].join(" ").toLowerCase();
      if (words.every((word) => text.includes(word))) hits.push([number, index, node]);
    }));
    const rows = hits.slice(0, 60).map(([number, index, node]) => el("li", {}, el("button", {
      type: "button", class: "ref", onclick: () => this.show(this.side, number, index),
    }, el("b", {}, node.op), ` ${tail(plain(node.name), 70)}`)));
    const head = hits.length > 60 ? `${many(hits.length, "op")}, the first 60` : many(hits.length, "op");
    this.found.append(el("p", { class: "dim" }, head), el("ul", {}, rows));
    say(`${many(hits.length, "op")} found`);
  }

  section() {
    const tab = (side, words) => {
      const button = el("button", { type: "button", class: "tab", onclick: () => this.open(side, 0) }, words);
      button.side = side;
      return button;
    };
    const tool = (words, label, act) => el("button", { type: "button", class: "tool", title: label, "aria-label": label, onclick: act }, words);
    const total = (side) => count(graphs[side].reduce((all, each) => all + each.nodes.filter((node) => !["Input", "Output"].includes(node.op)).length, 0));
    this.tabs = [graphs.before.length && tab("before", `Before · ${total("before")}`), tab("after", `After · ${total("after")}`)].filter(Boolean);
    this.picker = el("select", { "aria-label": "Function", onchange: (event) => this.open(this.side, Number(event.target.value)) });
    this.search = el("input", { type: "search", placeholder: "Search ops, names, lines", "aria-label": "Search the graph", oninput: () => this.find() });
    this.search.addEventListener("keydown", (event) => {
      const first = this.found.querySelector("button");
      if (event.key === "Enter" && first) first.click();
      if (event.key === "ArrowDown" && first) first.focus();
    });
    this.found = el("div", { class: "found", hidden: true });
    this.found.addEventListener("keydown", (event) => {
      const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
      if (!step) return;
      event.preventDefault();
      const row = document.activeElement.closest("li")[step];
      (row ? row.querySelector("button") : this.search).focus();
    });
    const bar = el("div", { class: "bar-of-tools" },
      el("div", { class: "tabs", role: "group", "aria-label": "Which graph" }, this.tabs), this.picker, this.search,
      el("div", { class: "tools", role: "group", "aria-label": "Drawing" },
        tool("+", "Zoom in", () => this.view.zoom(1.3)), tool("−", "Zoom out", () => this.view.zoom(0.77)),
        tool("Fit", "Show the whole graph", () => this.view.fit(true)),
        tool("Open all", "Open all layers", () => this.view.toggleAll(true, 4000)),
        tool("Close all", "Close all layers", () => this.view.toggleAll(false, 0))));
    const keys = el("p", { class: "dim keys", id: "graph-keys" },
      "Drag to move, pinch or Ctrl+wheel to zoom. Keys: arrows go from op to op, Enter opens a layer or shows an op, + and − zoom, 0 shows everything.");
    return section("graph", "Graph", "Ops grouped in layers by their names, without constants and weights. Choose an op to see its origin or what it became.",
      bar, this.found, el("div", { class: "split" }, this.stage, this.details.element), keys);
  }
}

// Time, size and rewrites.

function timeSection() {
  const stages = times.stages || [];
  if (!stages.length) return null;
  const left = (graphs ? graphs.stages : []).slice();
  const rows = stages.map((stage) => {
    const known = left.length && left[0].name === stage.name ? left.shift() : null;
    return { label: stage.name, value: stage.seconds, text: duration(stage.seconds), note: known ? many(known.ops, "op") : "" };
  });
  return section("time", "Time by stage", `In the order of execution${graphs ? ", with the number of ops after each stage" : ""}.`,
    bars("Time by stage", ["Stage", "", "Time"], rows, 40));
}

// Returns a function that removes the common prefix of the names of layers.
function short(names) {
  const first = (names[0] || "").split("/");
  let same = 0;
  while (same + 1 < first.length && names.every((name) => name.split("/")[same] === first[same] && name.split("/").length > same + 1)) same++;
  return (name) => name.split("/").slice(same).join("/");
}

function sizeSection(drawing) {
  const found = [];
  if (graphs) {
    graphs.after.forEach((each, number) => each.nodes.forEach((node, index) => {
      if (node.bytes) found.push({ label: node.scope || node.name || node.op, note: node.op, value: node.bytes, text: bytes(node.bytes), onclick: () => go(drawing, number, index) });
    }));
    found.sort((one, other) => other.value - one.value);
    const brief = short(found.map((row) => row.label));
    for (const row of found) [row.title, row.label] = [row.label, brief(row.label)];
  }
  const kinds = Object.entries(report.bytes_by_operator || {}).map(([name, size]) => ({
    label: name, value: size, text: bytes(size), note: `× ${count((report.operators || {})[name] || 0)}`,
  }));
  for (const [name, times] of Object.entries(report.operators || {})) {
    if (!(name in (report.bytes_by_operator || {}))) kinds.push({ label: name, value: 0, text: "–", note: `× ${count(times)}` });
  }
  return section("size", "Size", "Bytes of constants, by the operator that uses them first.",
    el("div", { class: "columns" },
      el("div", {}, el("h3", {}, "By operator"), bars("Size by operator", ["Operator", "", "Size"], kinds)),
      found.length > 0 && el("div", {}, el("h3", {}, "By layer"), bars("Size by layer", ["Layer", "", "Size"], found))));
}

function latencySection() {
  const rows = Object.entries(latency || {}).map(([label, value]) => ({ label, value, text: duration(value / 1000) }));
  rows.sort((one, other) => other.value - one.value);
  return rows.length ? section("latency", "Latency by layer", "", bars("Latency by layer", ["Layer", "", "Latency"], rows)) : null;
}

function go(drawing, number, index) {
  document.getElementById("graph").scrollIntoView();
  drawing.show("after", number, index);
}

function fusionSection(drawing) {
  const rows = [];
  (graphs ? graphs.after : []).forEach((each, number) => each.nodes.forEach((node, index) => {
    if ((node.names || []).length < 2 || /^(DE)?QUANTIZE$/.test(node.op)) return;
    const from = drawing.links("after", number, index).from.map((place) => drawing.node("before", ...place));
    const parts = from.length ? from.map((one) => one.op).join(" + ") : `${node.names.length} ops`;
    const lines = (node.sources || []).length ? node.sources.join("\n") : "";
    rows.push([el("button", { type: "button", class: "ref", onclick: () => go(drawing, number, index) }, el("b", {}, node.op)), el("span", { class: "path" }, node.scope || node.name), parts, el("span", { class: "path lines" }, lines)]);
  }));
  const rewrites = Object.entries(report.rewrites || {}).flatMap(([name, counts]) => Object.entries(counts).map(([what, times]) => ({ label: what, note: name, value: times, text: count(times) })));
  rewrites.sort((one, other) => other.value - one.value);
  if (!rows.length && !rewrites.length) return null;
  const known = rows.some((row) => row[3].textContent);
  const heads = ["Operator", "Layer", "Replaces", "Source"].slice(0, known ? 4 : 3);
  const hint = known || !rows.length ? "" : "The model has no source lines. Save it with tf.saved_model.SaveOptions(save_debug_info=True) to record them.";
  return section("fusions", "Fusions and rewrites", hint,
    rows.length > 0 && [el("h3", {}, `Operators that replace several ops (${count(rows.length)})`), table("Fused operators", heads, rows.map((row) => row.slice(0, heads.length)))],
    rewrites.length > 0 && [el("h3", {}, "Rewrites by pass"), bars("Rewrites", ["Rewrite", "", "Times"], rewrites)]);
}

function quantizationSection() {
  const found = report.quantization;
  if (!found) return null;
  const layers = found.layers || [];
  const noisy = layers.filter((layer) => layer.weight_snr !== undefined && Number.isFinite(Number(layer.weight_snr)));
  noisy.sort((one, other) => one.weight_snr - other.weight_snr);
  const brief = short(noisy.map((layer) => layer.node || layer.op));
  const errors = noisy.map((layer) => ({
    label: brief(layer.node || layer.op), title: layer.node, note: `${layer.op}, ${layer.form}`, value: 10 ** (-layer.weight_snr / 20) * 100, style: "warm",
    text: `${layer.weight_snr.toFixed(1)} dB`,
  }));
  const rows = layers.map((layer) => [layer.op, el("span", { class: "path" }, layer.node || ""), layer.form, layer.weight_snr === undefined ? "" : `${Number(layer.weight_snr).toFixed(1)} dB`,
    layer.low === undefined ? "" : `${Number(layer.low).toPrecision(4)} to ${Number(layer.high).toPrecision(4)}`, layer.reason || ""]);
  const fidelity = found.fidelity;
  const share = (value) => (typeof value === "number" ? `${(value * 100).toFixed(2)}%` : "");
  const compared = fidelity ? (fidelity.layers || []).map((each) => [el("span", { class: "path" }, each.node), each.op, decibels(each.snr), decibels(each.channel_snr),
    `${Number(each.low).toPrecision(4)} to ${Number(each.high).toPrecision(4)}`, share(each.used), share(each.lost)]) : [];
  return section("quantization", "Quantization", `Weights: ${bytes(found.bytes_before)} before, ${bytes(found.bytes_after)} now.`,
    el("ul", { class: "chips" }, Object.entries(found.forms || {}).map(([form, times]) => el("li", {}, `${form} × ${count(times)}`))),
    fidelity && [el("h3", {}, `Compared with the float model on ${many(fidelity.samples, "sample")}`),
      table("Outputs", ["Output", "Signal to noise", "Same largest element"], fidelity.outputs.map((each) => [each.name, decibels(each.snr), each.agreement === undefined ? "" : `${(each.agreement * 100).toFixed(1)}%`])),
      fidelity.exclusions && el("p", {}, exclusions(fidelity.exclusions)),
      compared.length > 0 && [el("h3", {}, "Layers by decreasing loss"),
        table("Layers compared", ["Layer", "Operator", "Signal to noise", "Worst channel", "Range", "Range used", "Lost here"], compared)],
      !compared.length && [el("h3", {}, "Tensors that lose most precision"), bars("Tensors that lose most precision", ["Tensor", "", "Signal to noise"],
        Object.entries(fidelity.worst || {}).map(([label, snr]) => ({ label, value: 10 ** (-snr / 20) * 100, text: decibels(snr), style: "warm" })))]],
    errors.length > 0 && [el("h3", {}, "Error of the weights by layer"), bars("Error of the weights", ["Layer", "", "Signal to noise"], errors)],
    rows.length > 0 && el("details", {}, el("summary", {}, `All layers (${count(rows.length)})`), table("Layers", ["Operator", "Layer", "Form", "Weight", "Range", "Why not smaller"], rows, 100)));
}

function exclusions(found) {
  if (!found.exclude.length) return `The search for layers to exclude ${found.ran_out ? "ran out of time" : "found none"}.`;
  return [`Excluding ${found.exclude.length === 1 ? "this layer" : `these ${count(found.exclude.length)} layers`} gives ${nearness(found).join(", ")}: `, el("code", {}, found.exclude.join(", "))];
}

function verificationSection() {
  const found = report.verification || [];
  if (!found.length) return null;
  const number = (value) => (typeof value === "number" ? value.toExponential(2) : String(value));
  const rows = found.map((each) => [each.signature, el("b", {}, each.output), number(each.max_absolute), number(each.max_relative)]);
  return section("verification", "Verification", "LiteRT's results compared with the reference executor's.",
    table("Verification", ["Signature", "Output", "Largest error", "Of the largest value"], rows));
}

const OUTCOMES = { refused: "not supported", wrong: "computed wrongly", crashes: "crashes", "load-fails": "does not load", unknown: "never tried" };

// What accelerators do not compute, by the tables of what they accept; not by a run.
function acceleratorSection() {
  const found = report.accelerators || [];
  if (!found.length) return null;
  const parts = found.map((each) => {
    const rows = each.obstacles.map((one) => [one.operator || "the file", one.is_left ? "on the CPU with its neighbours" : OUTCOMES[one.outcome] || one.outcome, one.reason,
      el("span", { class: "path" }, [one.node, one.source].filter(Boolean).join(", ")), one.splits_off ? count(one.splits_off) : ""]);
    return [el("h3", {}, each.verdict), el("p", { class: "dim" }, `Measured with ${each.made_with}.`),
      rows.length > 0 && table(each.verdict, ["Operator", "Outcome", "Why", "Node", "Operators that it splits off"], rows)];
  });
  return section("accelerators", "Accelerators", "By the tables of what each accepts; the file was not run for it.", parts.flat());
}

function notesSection() {
  const notes = report.notes || [];
  if (!notes.length) return null;
  const rows = notes.map((note) => el("li", { class: `note ${note.severity === "warning" ? "warning" : ""}` },
    el("p", {}, el("b", {}, note.severity || "note"), " ", el("code", {}, note.code || "")), el("p", {}, note.message || ""),
    note.hint && el("p", {}, `Hint: ${note.hint}`),
    (note.op || note.node || note.location) && el("p", { class: "path" }, [note.op, note.node, note.location].filter(Boolean).join(", "))));
  return section("notes", `Notes (${count(notes.length)})`, "", el("ul", { class: "notes" }, rows));
}

function noGraphs() {
  return section("graph", "Graph", "", el("p", { class: "dim" }, "The graphs were not kept. `tfconvert MODEL -o model.tflite --report report.html` and `tfconvert.convert(model, keep_graphs=True)` keep them."));
}

header();
const drawing = graphs ? new Graphs() : null;
const sections = [summary(), drawing ? drawing.section() : noGraphs(), sizeSection(drawing), latencySection(), fusionSection(drawing),
  quantizationSection(), acceleratorSection(), verificationSection(), timeSection(), notesSection()].filter(Boolean);
main.append(...sections);
document.getElementById("contents").append(el("ul", {}, sections.map((each) => el("li", {}, el("a", { href: `#${each.id}` }, each.querySelector("h2").textContent.replace(/ \(.*/, ""))))));
if (drawing) drawing.open("after", 0);
