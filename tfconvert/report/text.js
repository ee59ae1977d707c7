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

const count = (number) => Number(number).toLocaleString("en-US");
const many = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

function bytes(size) {
  if (size < 1000) return `${size} B`;
  if (size < 1e6) return `${(size / 1e3).toFixed(1)} kB`;
  return size < 1e9 ? `${(size / 1e6).toFixed(2)} MB` : `${(size / 1e9).toFixed(2)} GB`;
}

function duration(seconds) {
  const ms = seconds * 1000;
  if (ms >= 1000) return `${seconds.toFixed(2)} s`;
  return `${ms >= 100 ? ms.toFixed(0) : ms >= 10 ? ms.toFixed(1) : ms.toFixed(2)} ms`;
}

// A number of dB. Numbers that JSON can't represent are strings or missing.
const decibels = (snr) => (typeof snr === "number" ? `${snr.toFixed(1)} dB` : snr === "inf" ? "exact" : snr ? "not a number" : "");

// The fidelity of a quantized model in two parts: its signal-to-noise ratio, and how often the top-1 is the same.
function nearness(found) {
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
  return JSON.parse(document.getElementById(id).textContent);
}
