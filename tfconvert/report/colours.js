// The colours of the graph: those of the theme, and what they tell: the kind of an op, its bytes, its error, ...

const KINDS = [
  ["math", /conv|matmul|fullyconnected|einsum|lstm|rnn|gru|svdf|embedding|attention/, "Convolution, matmul"],
  ["pool", /pool|mean|sum|reduce|argm|topk|softmax|norm|l2/, "Pooling, reduction"],
  ["act", /relu|sigmoid|tanh|gelu|elu|swish|logistic|prelu|^exp$|erf|silu/, "Activation"],
  ["quant", /quant/, "Quantization"],
  ["flow", /^if$|while|call|case|^cond|loop|switch|merge/, "Control flow"],
  ["move", /reshape|transpose|concat|slice|pad|pack|gather|split|squeeze|expanddims|shape|tile|broadcast|identity|cast|space|depth|resize|fill|range|scatter|select|where|reverse/, "Data movement"],
  ["arith", /add|sub|mul|div|sqrt|square|pow|max|min|neg|abs|less|greater|equal|logical|floor|round|log/, "Arithmetic"],
  ["other", /^/, "Other"],
];

const kinds = new Map();

function kindOf(op) {
  if (!kinds.has(op)) {
    const name = op.toLowerCase().replaceAll("_", "");
    kinds.set(op, KINDS.find(([, pattern]) => pattern.test(name))[0]);
  }
  return kinds.get(op);
}

// The theme's colours as numbers; read again when the system's mode changes.
const theme = {};

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["page", "card", "ink", "dim", "line", "soft", "accent", "accent-soft", "warm", "bad", "good", "wire", ...KINDS.map((each) => each[0])])
    theme[name] = style.getPropertyValue(`--${name}`).trim();
  kinds.shades = new Map();
}

const channels = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
const toHex = (parts) => `#${parts.map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;

function mixed(one, other, share) {
  const [a, b] = [channels(one), channels(other)];
  return toHex(a.map((part, index) => part + (b[index] - part) * share));
}

function isLight(color) {
  const [r, g, b] = channels(color).map((part) => ((part /= 255) <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2;
}

const HEAT = ["#fff3c4", "#fdc34f", "#f5822f", "#d1392c", "#7f0f3d"];
const CATEGORIES = ["#3b7dd8", "#e08a1e", "#2f9e5b", "#c2418f", "#7f6ad6", "#18a0a6", "#b5563a", "#6f7d8f"];
const RED = "#d6342c", GREEN = "#2f9e5b", AMBER = "#e5a11c", GREY = "#9aa5b4";

function heat(share) {
  const at = Math.min(Math.max(share, 0), 1) * (HEAT.length - 1);
  const index = Math.min(Math.floor(at), HEAT.length - 2);
  return mixed(HEAT[index], HEAT[index + 1], at - index);
}

// A mode that colours numbers, from pale to dark; `isBadLow` turns it round, for ratios of signal to noise.
class Scale {
  constructor(id, label, valueOf, format, { isBadLow = false, sums = true, log = true } = {}) {
    Object.assign(this, { id, label, valueOf, format, isBadLow, sums, log });
  }

  prepare(leaves) {
    const values = leaves.map((leaf) => this.valueOf(leaf.node)).filter((value) => Number.isFinite(value) && (!this.log || value > 0));
    [this.low, this.high] = [Math.min(...values), Math.max(...values)];
    this.found = values.length;
    this.sum = new Map();
  }

  // The value of an op, or the sum or the worst of those in a group.
  of(item) {
    if (item.kind === "op") return this.valueOf(item.node);
    if (!this.sum.has(item)) {
      const values = item.children.map((child) => this.of(child)).filter(Number.isFinite);
      const joined = this.sums ? values.reduce((total, value) => total + value, 0) : Math.min(...values);
      this.sum.set(item, values.length ? joined : undefined);
    }
    return this.sum.get(item);
  }

  colorOf(item) {
    const value = this.of(item);
    if (!Number.isFinite(value) || (this.log && value <= 0)) return null;
    if (this.high <= this.low) return heat(0.5);
    const share = this.log ? Math.log(value / this.low) / Math.log(this.high / this.low) : (value - this.low) / (this.high - this.low);
    return heat(this.isBadLow ? 1 - share : share);
  }

  textOf(item) {
    const value = this.of(item);
    return Number.isFinite(value) ? this.format(value) : "";
  }

  // What boxes say beside their titles.
  noteOf(item) {
    return this.textOf(item);
  }

  legend() {
    if (!this.found) return [el("p", {}, "No values")];
    const ends = [this.format(this.low), this.format(this.high)];
    return [el("div", { class: `ramp ${this.isBadLow ? "turned" : ""}` }), el("div", { class: "ends" }, ends.map((words) => el("span", {}, words)))];
  }
}

// A mode with a colour for each of some classes.
class Classes {
  constructor(id, label, valueOf, entries = null) {
    Object.assign(this, { id, label, valueOf, entries });
    this.isFixed = entries !== null;
  }

  prepare(leaves) {
    const counts = new Map();
    for (const leaf of leaves) {
      const value = this.valueOf(leaf.node);
      if (value !== undefined) counts.set(value, (counts.get(value) || 0) + 1);
    }
    this.counts = counts;
    this.common = new Map();
    if (this.isFixed) return;
    const names = [...counts.keys()].sort((one, other) => counts.get(other) - counts.get(one));
    this.entries = names.map((name, index) => [name, () => CATEGORIES[Math.min(index, CATEGORIES.length - 1)], name]);
  }

  // The class of an op, or in a group the last of the list that occurs if its order is one of severity, else the most common.
  of(item) {
    if (item.kind === "op") return this.valueOf(item.node);
    if (!this.common.has(item)) {
      const counts = new Map();
      for (const child of item.children) {
        const value = this.of(child);
        if (value !== undefined) counts.set(value, (counts.get(value) || 0) + child.ops);
      }
      const names = [...counts.keys()];
      const order = (name) => this.entries.findIndex((entry) => entry[0] === name);
      names.sort((one, other) => (this.isWorstFirst ? order(one) - order(other) : counts.get(other) - counts.get(one)));
      this.common.set(item, names[0]);
    }
    return this.common.get(item);
  }

  colorOf(item) {
    const value = this.of(item);
    const entry = value === undefined ? null : this.entries.find((each) => each[0] === value);
    return entry ? entry[1]() : null;
  }

  textOf(item) {
    const entry = this.entries.find((each) => each[0] === this.of(item));
    return entry ? entry[2] : "";
  }

  // Classes are told by their colours.
  noteOf() {
    return "";
  }

  legend() {
    const known = this.entries.filter(([name]) => this.counts.get(name));
    return [el("ul", {}, known.map(([name, color, words]) => {
      const swatch = el("i", {});
      swatch.style.background = color();
      return el("li", {}, swatch, el("span", {}, words), el("span", { class: "dim" }, count(this.counts.get(name))));
    }))];
  }
}

const VERDICTS = { refused: "Not supported", wrong: "Computed wrongly", crashes: "Crashes", "load-fails": "Does not load", unknown: "Never tried", left: "On the CPU", ok: "Supported" };

function acceleratorMode(found, title) {
  const verdicts = new Map();
  for (const each of found.obstacles) {
    if (each.operator) verdicts.set(`${each.operator} ${each.node}`, each.is_left ? "left" : each.outcome);
  }
  const valueOf = (node) => {
    if (node.op === "Input" || node.op === "Output") return undefined;
    const known = [node.name, ...(node.names || [])].map((name) => verdicts.get(`${node.op} ${name}`)).find(Boolean);
    return known || "ok";
  };
  const colors = { refused: RED, "load-fails": RED, crashes: RED, wrong: "#8a2be2", left: AMBER, unknown: GREY, ok: GREEN };
  const mode = new Classes(`accelerator-${found.accelerator}`, title, valueOf, Object.entries(colors).map(([name, color]) => [name, () => color, VERDICTS[name]]));
  mode.isWorstFirst = true;
  mode.isForResult = true;
  return mode;
}

// Returns the modes that a report has data for.
function colourModes(report) {
  const isOp = (node) => node.op !== "Input" && node.op !== "Output";
  const kind = new Classes("kind", "Kind", (node) => (isOp(node) ? kindOf(node.op) : undefined), KINDS.map(([name, , words]) => [name, () => theme[name], words]));
  const type = new Classes("type", "Data type", (node) => (isOp(node) ? typeParts((node.types || [])[0]).element || undefined : undefined));
  const modes = [kind, type,
    new Scale("weights", "Bytes of weights", (node) => node.bytes, bytes),
    new Scale("activations", "Bytes of results", (node) => (isOp(node) ? (node.types || []).reduce((total, each) => total + bytesOf(each), 0) : undefined), bytes),
    new Scale("macs", "MACs", (node) => node.macs, big)];
  const { quantization } = report;
  const fidelity = (quantization || {}).fidelity || {};
  const snr = new Map([...Object.entries(fidelity.worst || {}), ...(fidelity.layers || []).map((each) => [each.node, each.snr])]);
  const byName = (known) => (node) => [node.name, ...(node.names || [])].map((name) => known.get(name)).find(Number.isFinite);
  const ratio = { isBadLow: true, sums: false, log: false };
  if (snr.size) modes.push(new Scale("error", "Error of results", byName(snr), decibels, ratio));
  const weights = new Map(((quantization || {}).layers || []).filter((each) => each.weight_snr !== undefined).map((each) => [each.node, Number(each.weight_snr)]));
  if (weights.size) modes.push(new Scale("weight-error", "Error of weights", byName(weights), decibels, ratio));
  if (report.hasLatency) modes.push(new Scale("latency", "Latency", (node) => node.ms, (ms) => duration(ms / 1000)));
  for (const found of report.accelerators || []) modes.push(acceleratorMode(found, titleOf(found)));
  const changes = { changed: ["Changed", AMBER], removed: ["Only here", RED], added: ["Only here", GREEN], same: ["Same", GREY] };
  const change = new Classes("change", "Differences", (node) => node.change || "same", Object.entries(changes).map(([name, [words, color]]) => [name, () => color, words]));
  change.isWorstFirst = true;
  if (report.kind === "comparison") modes.unshift(change);
  return modes;
}

const titleOf = (found) => ({ gpu: "GPU", npu: "NPU (Intel)", micro: "Microcontrollers", "ethos-u": "Ethos-U" })[found.accelerator] || found.accelerator;

function big(number) {
  for (const [unit, name] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (number >= unit) return `${(number / unit).toPrecision(3)} ${name}`;
  return String(number);
}
