// Text and elements. Names come from the model and can't be trusted: they become text nodes, never markup, and
// invisible characters, or characters that change the direction of text, are escaped.
"use strict";

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

const plain = (text) => String(text).replace(HIDDEN, (char) => `\\u{${char.codePointAt(0).toString(16)}}`);

const SVG = "http://www.w3.org/2000/svg";

// Adds attributes, listeners (`onclick`) and children. Children that aren't elements become text.
function dress(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : plain(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : plain(child));
  }
  return element;
}

const el = (tag, attributes, ...children) => dress(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => dress(document.createElementNS(SVG, tag), attributes, children);

// The lines of a text, each in a block of its own.
const linesOfText = (text) => String(text).split("\n").map((line) => el("div", {}, line));

const count = (number) => Number(number).toLocaleString("en-US");
const many = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

function bytes(size) {
  if (size < 1000) return `${size} B`;
  if (size < 1e6) return `${(size / 1e3).toFixed(1)} kB`;
  return size < 1e9 ? `${(size / 1e6).toFixed(2)} MB` : `${(size / 1e9).toFixed(2)} GB`;
}

function duration(seconds) {
  const ms = seconds * 1000;
  if (ms < 0.1) return `${(ms * 1000).toFixed(1)} µs`;
  if (ms >= 1000) return `${seconds.toFixed(2)} s`;
  return `${ms >= 100 ? ms.toFixed(0) : ms >= 10 ? ms.toFixed(1) : ms.toFixed(2)} ms`;
}

// JSON has no infinite and undefined numbers: a record says in `why_null` what they are.
const explained = (found) => (found && found.why_null ? { ...found, ...found.why_null } : found);

const exponential = (value) => (typeof value === "number" ? value.toExponential(2) : String(value));

// A number of dB, or the word for one that JSON can't represent.
const decibels = (snr) => (typeof snr === "number" ? `${snr.toFixed(1)} dB` : snr === "infinite" ? "exact" : snr && snr !== "undefined" ? "not a number" : "");

const measure = (value) => Number(value).toFixed(4);

// The fidelity of a quantized model in two parts: its signal-to-noise ratio, and how often the top-1 is the same.
function nearness(fidelity) {
  const found = explained(fidelity);
  const share = typeof found.agreement === "number" ? `${Number((found.agreement * 100).toFixed(1))}% same top-1` : "";
  return [decibels(found.snr) || (share || found.is_low ? "" : "exact"), share].filter(Boolean);
}

// The end of a long name is more informative than its start.
const tail = (text, limit) => (text.length <= limit ? text : `…${text.slice(text.length - limit + 1)}`);
const cut = (text, limit) => (text.length <= limit ? text : `${text.slice(0, limit - 1)}…`);

function say(text) {
  document.getElementById("live").textContent = plain(text);
}

function data(id) {
  return JSON.parse(document.getElementById(id).textContent, (key, value) => explained(value));
}

// A type as the report writes it, `i8[1,?,8] * 0.02`, in parts.
function typeParts(type) {
  const found = /^([^[\]]*)\[([^\]]*)\](.*)$/.exec(type || "");
  if (!found) return { element: type || "", dims: [], scale: "" };
  return { element: found[1], dims: found[2] ? found[2].split(",") : [], scale: found[3].replace(/^ \* /, "") };
}

// The shape of a type as graphs show it: `1×?×8`; `scalar` without dimensions.
function shapeText(type) {
  const { dims } = typeParts(type);
  return dims.length ? dims.join("×") : /\[\]/.test(type) ? "scalar" : plain(type);
}

// The elements of a tensor; dynamic dimensions count as 1.
const elements = (type) => typeParts(type).dims.reduce((product, dim) => product * (Number(dim) > 0 ? Number(dim) : 1), 1);

const BITS = /(\d+)/;
const bytesOf = (type) => Math.ceil((elements(type) * Number((BITS.exec(typeParts(type).element) || [0, 0])[1])) / 8);

// What constants are to the operators that have them, by the place of the operand.
const ROLES = {
  CONV_2D: ["", "filter", "bias"], DEPTHWISE_CONV_2D: ["", "filter", "bias"], CONV_3D: ["", "filter", "bias"],
  FULLY_CONNECTED: ["", "weights", "bias"], TRANSPOSE_CONV: ["", "filter", "", "bias"], RESHAPE: ["", "shape"],
  BATCH_MATMUL: ["", "weights"], GATHER: ["table", "indices"], EMBEDDING_LOOKUP: ["", "table"], TRANSPOSE: ["", "order"],
  MEAN: ["", "axes"], SUM: ["", "axes"], PAD: ["", "padding"], PRELU: ["", "alpha"], STRIDED_SLICE: ["", "begin", "end", "strides"],
  Conv2D: ["", "filter"], Conv3D: ["", "filter"], DepthwiseConv2dNative: ["", "filter"], MatMul: ["", "weights"], BiasAdd: ["", "bias"],
  BatchMatMulV2: ["", "weights"], GatherV2: ["table", "indices", "axis"], Reshape: ["", "shape"], Transpose: ["", "order"], Mean: ["", "axes"], Sum: ["", "axes"], Pad: ["", "padding"],
};
const roleOf = (node, place) => (ROLES[node.op] || [])[place] || (place === 1 && node.op === "Conv2DBackpropInput" ? "filter" : "");

const MAX_LINES = 4;

// The lines below the title of a node: its name, and its constants.
function linesOf(node) {
  if (node.lines) return node.lines;
  const constants = (node.operands || []).flatMap((operand, place) => {
    if (Array.isArray(operand) || operand.value === "none" || operand.value === "") return [];
    const role = roleOf(node, place);
    const { element } = typeParts(operand.type);
    const value = operand.value !== undefined ? operand.value : `${shapeText(operand.type)} ${element}`;
    return [{ role: role || (operand.bytes > 64 ? "constant" : "value"), words: value }];
  });
  const name = (node.scope || node.name || "").split("/").slice(-2).join("/");
  Object.defineProperty(node, "lines", { value: [{ words: name, isName: true }, ...constants].slice(0, MAX_LINES) });
  return node.lines;
}

// The activation that is fused into an operator, or nothing.
function fusedInto(node) {
  const name = (node.attributes || {}).fused_activation_function;
  return name && name !== "NONE" ? name.replace(/^RELU/, "ReLU").replace("ReLU_N1_TO_1", "ReLU −1…1").replace("TANH", "tanh") : "";
}
