// The sections of the panel: the model, sizes, quantization, accelerators, ...

const sum = (counts) => Object.values(counts || {}).reduce((total, value) => total + value, 0);

function baseName(source) {
  const path = String(source || "model").split(/[\\/]/);
  const name = path.pop() || path.pop() || "model";
  return ["saved_model", "saved_model.pb", "export"].includes(name) && path.length ? `${path.pop()}/${name}` : name;
}

const CAPTIONS = { file: "LiteRT file", failed: "Conversion failed", comparison: "Comparison", conversion: "Model and its conversion" };

// The line at the top: the name, and what matters most.

function header(drawing, panel) {
  const title = report.kind === "comparison" ? `${baseName(report.first.source)} → ${baseName(report.source)}` : baseName(report.source);
  return [
    el("div", { class: "what" }, el("p", { class: "over" }, CAPTIONS[report.kind] || "Conversion to LiteRT"), el("h1", { title: report.source || "" }, title)),
    el("section", { id: "summary", "aria-label": "Summary" }, el("dl", { class: "tiles", tabindex: "0" }, tiles(drawing, panel))),
  ];
}

function tile(name, value, note, style, act, hint = note) {
  const inside = [value, note && [" ", el("small", {}, note)]];
  return el("div", { class: `tile ${style || ""}`, title: [name, hint].filter(Boolean).join(": ") }, el("dt", {}, name),
    el("dd", {}, act ? el("button", { type: "button", class: "plain", onclick: act }, inside) : inside));
}

function fidelityTile(panel) {
  const { fidelity } = report.quantization || {};
  if (!fidelity) return null;
  const [first, ...others] = nearness(fidelity);
  const limits = fidelity.is_low && fidelity.limits && `below ${fidelity.limits.snr} dB or ${fidelity.limits.agreement * 100}%`;
  return first && tile("Fidelity", first, [...others, limits].filter(Boolean).join(", "), fidelity.is_low ? "bad alarm" : "good", () => panel.open("quantization"));
}

function acceleratorTile(found, drawing, panel) {
  const none = ["does not", "crashes"].find((words) => found.verdict.startsWith(words));
  const value = found.is_whole ? "all" : none ? (none === "crashes" ? "crashes" : "no") : `${count(found.taken)} of ${count(found.operators)}`;
  const act = () => {
    if (drawing) drawing.recolor(`accelerator-${found.accelerator}`);
    panel.open("accelerators");
  };
  return tile(titleOf(found), value, "", found.is_whole ? "good" : none || !found.taken ? "bad" : "part", act, found.verdict);
}

function liveBytes() {
  return graphs ? Math.max(0, ...graphs.after.map((each) => each.live_bytes)) : 0;
}

function changeTiles() {
  const { changed = 0, added = 0, removed = 0 } = report.changes || {};
  const total = changed / 2 + added + removed;
  const parts = [changed && `${count(changed / 2)} changed`, removed && `${count(removed)} removed`, added && `${count(added)} added`].filter(Boolean);
  return [
    tile("Nodes that differ", total ? count(total) : "none", parts.join(", "), total ? "part" : "good"),
    tile("Size", `${bytes(report.first.size)} → ${bytes(report.size)}`, "", "strong"),
    tile("Operators", `${count(sum(report.first.operators))} → ${count(sum(report.operators))}`),
  ];
}

function tiles(drawing, panel) {
  if (report.kind === "comparison") return changeTiles();
  const accelerators = (report.accelerators || []).map((each) => acceleratorTile(each, drawing, panel));
  const [before, after] = [sum(report.operations_before), sum(report.operators)];
  if (report.kind === "failed") {
    const { errors } = report.failure;
    return [tile("Errors", count(errors.length), "", "bad alarm", () => panel.open("notes")), before > 0 && tile("Ops", count(before))];
  }
  const checked = report.verification || [];
  const worst = checked.reduce((most, each) => Math.max(most, Number(each.max_relative)), 0);
  return [
    fidelityTile(panel),
    checked.length > 0 && tile("Largest error", worst.toExponential(1), "of the largest value", "good", () => panel.open("verification")),
    tile("Size", bytes(report.size || 0), "", "strong", () => panel.open("size")),
    tile("Operators", count(after), before ? `from ${count(before)} ops` : ""),
    ...accelerators,
    report.arena ? tile("Arena", bytes(report.arena)) : liveBytes() > 0 && tile("Peak activations", bytes(liveBytes()), "at batch 1"),
    report.min_runtime_version && tile("Runtime", report.min_runtime_version, "or later"),
  ];
}

// Warnings and errors, where nobody overlooks them.
function banner(drawing, panel) {
  const { errors = [] } = report.failure || {};
  const found = [...errors, ...(report.notes || []).filter((note) => note.severity === "warning")];
  if (!found.length) return null;
  const [first] = found;
  const place = drawing && errors.length ? drawing.firstProblem() : null;
  return el("div", { id: "banner", class: errors.length ? "bad" : "", role: "region", "aria-label": errors.length ? "Errors" : "Warnings" },
    el("p", {}, el("b", {}, errors.length ? (graphs && graphs.after.length ? "The result was refused. " : "This model can't be converted. ") : "Warning. "), first.op ? `${first.op} ${first.node || ""}: ` : "", first.message.split("\n")[0]),
    place && el("button", { type: "button", class: "button", onclick: () => drawing.show(...place) }, "Show in the graph"),
    el("button", { type: "button", class: "button", onclick: () => panel.open("notes") }, found.length > 1 ? `All ${count(found.length)}` : "Details"));
}

// The model, while nothing is selected.

function overview() {
  const { file = {} } = report;
  const weights = graphs && report.kind !== "comparison" ? graphs.before.flatMap((each) => each.nodes).reduce((total, node) => total + (node.bytes || 0), 0) : 0;
  const listed = (counts) => Object.entries(counts || {}).map(([name, times]) => `${name} × ${count(times)}`).join("\n");
  const custom = Object.entries(report.custom_operators || {}).map(([name, times]) => `${name} × ${times}`).join("\n");
  const macs = graphs && graphs.after.length ? graphs.after[0].nodes.reduce((total, node) => total + (node.macs || 0), 0) : 0;
  return [
    el("p", { class: "over" }, "Model"), el("h2", {}, baseName(report.source)),
    facts([
      ["File", report.source || ""], ["Written by", file.description || ""], ["Size", report.size ? bytes(report.size) : ""],
      ["Weights", file.constants ? bytes(file.constants) : ""], ["Weights before", weights ? bytes(weights) : ""],
      ["MACs", macs ? `${big(macs)}, at batch 1` : ""], ["Arena", report.arena ? bytes(report.arena) : ""], ["Peak activations", liveBytes() && !report.arena ? `${bytes(liveBytes())}, at batch 1` : ""],
      ["Runtime", report.min_runtime_version ? `TensorFlow Lite ${report.min_runtime_version} or later` : ""], ["Custom operators", custom],
      ["Weight types", listed(file.constant_types)], ["Tensor types", listed(file.computed_types)],
      ["Subgraphs", file.subgraphs > 1 ? count(file.subgraphs) : ""],
      ["Metadata", Object.entries(file.metadata || {}).map(([name, size]) => `${name}, ${bytes(size)}`).join("\n")],
    ]),
    (report.functions || []).map(signature),
    converterSection(),
  ].flat(Infinity).filter(Boolean);
}

function signature(found) {
  const text = (type) => (typeof type === "string" ? type : JSON.stringify(type));
  const list = (ports) => el("ul", { class: "ports" }, Object.entries(ports).map(([name, type]) => el("li", {}, el("b", {}, name), " ", el("span", { class: "type" }, text(type)))));
  return [el("h3", { class: "minor" }, `Inputs of ${found.signatures.join(", ") || "main"}`), list(found.inputs), el("h3", { class: "minor" }, "Outputs"), list(found.outputs)];
}

// What the converter did, for those who work on it.
function converterSection() {
  const stages = times.stages || [];
  const rewrites = Object.entries(report.rewrites || {}).flatMap(([name, counts]) => Object.entries(counts).map(([what, times]) => ({ label: what, note: name, value: times, text: count(times) })));
  rewrites.sort((one, other) => other.value - one.value);
  if (!stages.length && !rewrites.length) return null;
  const left = (graphs ? graphs.stages : []).slice();
  const rows = stages.map((stage) => {
    const known = left.length && left[0].name === stage.name ? left.shift() : null;
    return { label: stage.name, value: stage.seconds, text: duration(stage.seconds), note: known ? many(known.ops, "op") : "" };
  });
  return el("details", { id: "converter" }, el("summary", {}, "Converter"),
    facts([["Time", times.seconds ? duration(times.seconds) : ""], ["Variables", report.frozen_variables ? `${count(report.frozen_variables)} became constants` : ""]]),
    rewrites.length > 0 && [el("h3", {}, "Rewrites by pass"), bars("Rewrites", ["Rewrite", "", "Times"], rewrites)],
    rows.length > 0 && [el("h3", {}, "Time by stage"), bars("Time by stage", ["Stage", "", "Time"], rows, 40)]);
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
      if (node.bytes) found.push({ label: node.scope || node.name || node.op, note: node.op, value: node.bytes, text: bytes(node.bytes), onclick: () => drawing.show("after", number, index) });
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

function latencySection(drawing) {
  const rows = latencyRows(drawing);
  rows.sort((one, other) => other.value - one.value);
  return rows.length ? section("speed", "Latency", "Median time of each operator in LiteRT, measured alone.", bars("Latency by layer", ["Layer", "", "Latency"], rows, 30)) : null;
}

function latencyRows(drawing) {
  if (!Array.isArray(latency)) return Object.entries(latency || {}).map(([label, value]) => ({ label, value, text: duration(value / 1000) }));
  const rows = [];
  graphs.after[0].nodes.forEach((node, index) => {
    if (node.ms === undefined) return;
    rows.push({ label: node.scope || node.name || node.op, note: node.op, value: node.ms, text: duration(node.ms / 1000), onclick: () => drawing.show("after", 0, index) });
  });
  const brief = short(rows.map((row) => row.label));
  for (const row of rows) [row.title, row.label] = [row.label, brief(row.label)];
  return rows;
}

function fusionSection(drawing) {
  const rows = [];
  (graphs ? graphs.after : []).forEach((each, number) => each.nodes.forEach((node, index) => {
    if ((node.names || []).length < 2 || /^(DE)?QUANTIZE$/.test(node.op)) return;
    const from = drawing.links("after", number, index).from.map((place) => drawing.node("before", ...place));
    const parts = from.length ? from.map((one) => one.op).join(" + ") : `${node.names.length} ops`;
    const lines = (node.sources || []).length ? node.sources.join("\n") : "";
    rows.push([el("button", { type: "button", class: "ref", onclick: () => drawing.show("after", number, index) }, el("b", {}, node.op)), el("span", { class: "path" }, node.scope || node.name), parts, el("span", { class: "path" }, linesOfText(lines))]);
  }));
  if (!rows.length || report.kind === "comparison") return null;
  const known = rows.some((row) => row[3].textContent);
  const heads = ["Operator", "Layer", "Replaces", "Source"].slice(0, known ? 4 : 3);
  const hint = known || !rows.length ? "" : "The model has no source lines. Save it with tf.saved_model.SaveOptions(save_debug_info=True) to record them.";
  return section("fusions", "Fusions", hint,
    el("h3", {}, `Operators that replace several ops (${count(rows.length)})`), table("Fused operators", heads, rows.map((row) => row.slice(0, heads.length)), 40));
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
  const rows = layers.map((layer) => [layer.op, el("span", { class: "path" }, layer.node || ""), layer.form, decibels(layer.weight_snr),
    layer.low === undefined ? "" : `${Number(layer.low).toPrecision(4)} to ${Number(layer.high).toPrecision(4)}`, layer.reason || ""]);
  const fidelity = found.fidelity;
  const share = (value) => (typeof value === "number" ? `${(value * 100).toFixed(2)}%` : "");
  const compared = fidelity ? (fidelity.layers || []).map((each) => [el("span", { class: "path" }, each.node), each.op, decibels(each.snr), decibels(each.channel_snr),
    `${Number(each.low).toPrecision(4)} to ${Number(each.high).toPrecision(4)}`, share(each.used), share(each.lost)]) : [];
  return section("quantization", "Quantization", found.bytes_before ? `Weights: ${bytes(found.bytes_before)} before, ${bytes(found.bytes_after)} now.` : "",
    el("ul", { class: "chips" }, Object.entries(found.forms || {}).map(([form, times]) => el("li", {}, `${form} × ${count(times)}`))),
    fidelity && [el("h3", {}, `Compared with the float model on ${many(fidelity.samples, "sample")}`),
      table("Outputs", ["Output", "Signal to noise", "Same largest element"], fidelity.outputs.map((each) => [each.name, decibels(each.snr), each.agreement === undefined ? "" : `${(each.agreement * 100).toFixed(1)}%`])),
      fidelity.metric && table("Metric", ["Metric", "Float", "Quantized", "Difference", "95% interval"], [metricRow(fidelity.metric)]),
      fidelity.exclusions && el("p", {}, exclusions(fidelity.exclusions)),
      compared.length > 0 && [el("h3", {}, "Layers by decreasing loss"),
        table("Layers compared", ["Layer", "Operator", "Signal to noise", "Worst channel", "Range", "Range used", "Lost here"], compared)],
      !compared.length && [el("h3", {}, "Tensors that lose most precision"), bars("Tensors that lose most precision", ["Tensor", "", "Signal to noise"],
        Object.entries(fidelity.worst || {}).map(([label, snr]) => ({ label, value: 10 ** (-snr / 20) * 100, text: decibels(snr), style: "warm" })))]],
    errors.length > 0 && [el("h3", {}, "Error of the weights by layer"), bars("Error of the weights", ["Layer", "", "Signal to noise"], errors)],
    rows.length > 0 && el("details", {}, el("summary", {}, `All layers (${count(rows.length)})`), table("Layers", ["Operator", "Layer", "Form", "Weight", "Range", "Why not smaller"], rows, 100)));
}

// Equal forms of operators, by their times on a device.
function tuningSection() {
  const found = report.tuning;
  if (!found) return null;
  const time = (value) => (value === undefined ? "" : `${Number(value).toFixed(1)} µs`);
  const rows = (found.forms || []).map((each) => [el("b", {}, each.pattern), each.shape, count(each.places), time(each.usual), time(each.fast), each.chosen, each.becomes]);
  const gain = `${Number(found.gain).toFixed(1)} µs less than with the other forms, ${Number(found.gain_over_default).toFixed(1)} µs less than without tuning.`;
  return section("tuning", "Tuning", found.directory ? `The forms were written to ${found.directory}, to be measured.` : `Measured on ${found.device}: ${gain}`,
    table("Forms", ["Pattern", "Shape", "Places", "Usual", "Fast", "Chosen", "The fast form"], rows, 60));
}

function metricRow(found) {
  const [low, high] = found.interval || [];
  return [found.name, measure(found.float), measure(found.quantized), measure(found.difference), found.interval ? `${measure(low)} to ${measure(high)}` : ""];
}

function exclusions(found) {
  if (!found.exclude.length) return `The search for layers to exclude ${found.ran_out ? "ran out of time" : "found none"}.`;
  return [`Excluding ${found.exclude.length === 1 ? "this layer" : `these ${count(found.exclude.length)} layers`} gives ${[found.metric && `a metric of ${measure(found.metric)}`, ...nearness(found)].filter(Boolean).join(", ")}: `, el("code", {}, found.exclude.join(", "))];
}

function verificationSection() {
  const found = report.verification || [];
  if (!found.length) return null;
  const witness = (each) => each.witness || "the reference executor";
  const rows = found.map((each) => [each.signature, el("b", {}, each.output), exponential(each.max_absolute), exponential(each.max_relative), witness(each)]);
  const names = [...new Set(found.map(witness))].join(" and ");
  return section("verification", "Verification", `What the file computes, compared with ${names}.`,
    table("Verification", ["Signature", "Output", "Largest error", "Of the largest value", "Compared with"], rows));
}

const OUTCOMES = { refused: "not supported", wrong: "computed wrongly", crashes: "crashes", "load-fails": "does not load", unknown: "never tried" };

// What accelerators do not compute, by the tables of what they accept; not by a run.
function acceleratorSection() {
  const found = report.accelerators || [];
  if (!found.length) return null;
  const parts = found.map((each) => {
    const rows = each.obstacles.map((one) => [one.operator || "the file", one.is_left ? "on the CPU with its neighbours" : OUTCOMES[one.outcome] || one.outcome, one.reason,
      el("span", { class: "path" }, [one.node, one.source].filter(Boolean).join(", ")), one.splits_off ? count(one.splits_off) : ""]);
    return [el("h3", {}, each.verdict), each.arena && el("p", {}, `In an arena of about ${bytes(each.arena)}.`), el("p", { class: "dim" }, `Measured with ${each.made_with}.`),
      rows.length > 0 && table(each.verdict, ["Operator", "Outcome", "Why", "Node", "Operators that it splits off"], rows)];
  });
  return section("accelerators", "Accelerators", "By the tables of what each accepts; the file was not run for it.", parts.flat());
}

function noteItem(note) {
  return el("li", { class: `note ${note.severity || ""}` },
    el("p", {}, el("b", {}, note.severity || "note"), " ", el("code", {}, note.code || "")), el("div", {}, linesOfText(note.message || "")),
    note.hint && el("p", {}, el("b", {}, "What to do: "), note.hint.replaceAll("\n", " ")),
    (note.op || note.node || note.location) && el("p", { class: "path" }, [note.op, note.node, note.location].filter(Boolean).join(", ")));
}

function notesSection(drawing) {
  const { errors = [], advice = [] } = report.failure || {};
  const notes = [...errors, ...(report.notes || [])];
  if (!notes.length) return null;
  const places = drawing ? drawing.problemPlaces() : new Map();
  const items = notes.map((note, number) => {
    const item = noteItem(note);
    const found = number < errors.length ? places.get(number) || [] : [];
    item.append(...found.slice(0, 8).map((place) => el("button", { type: "button", class: "ref link", onclick: () => drawing.show(...place) }, `Show ${drawing.node(...place).op} ${tail(plain(drawing.node(...place).name), 60)}`)));
    return item;
  });
  return section("notes", `${errors.length ? "Errors" : "Notes"} (${count(notes.length)})`, "", el("ul", { class: "notes" }, items), advice.map((words) => el("p", {}, words)));
}

function differencesSection(drawing) {
  if (report.kind !== "comparison") return null;
  const rows = [];
  for (const side of ["before", "after"]) {
    graphs[side].forEach((each, number) => each.nodes.forEach((node, index) => {
      if (!node.change || (side === "before" && node.change === "changed")) return;
      const name = el("button", { type: "button", class: "ref", onclick: () => drawing.show(side, number, index) }, el("b", {}, node.op), ` ${node.name}`);
      rows.push([name, node.change === "changed" ? node.changes.map((words) => el("div", {}, words)) : `only in ${drawing.titleOf(side)}`]);
    }));
  }
  return section("differences", "Differences", rows.length ? "" : "The graphs are the same.", rows.length > 0 && table("Differences", ["Node", "How"], rows, 60));
}
